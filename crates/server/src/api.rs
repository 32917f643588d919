//! What the route handlers have access to.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use undaunted_engine::catalog::Catalog;
use undaunted_runner::flows::Host;
use undaunted_runner::journal::JournalError;

use crate::answer::Refused;
use crate::listen::Ending;
use crate::metrics::Metrics;
use crate::news::News;

#[derive(Clone)]
pub struct Served {
    pub host: Arc<Host>,
    pub metrics: Arc<Metrics>,
    /// Signals that records were stored.
    pub news: News,
}

/// [`Served`], with the end and the limits of one listener.
#[derive(Clone)]
pub(crate) struct Api {
    served: Arc<Served>,
    ending: Ending,
    patience: Duration,
}

impl Api {
    pub(crate) fn of(served: Served, ending: Ending, patience: Duration) -> Self {
        Self { served: Arc::new(served), ending, patience }
    }

    pub(crate) fn host(&self) -> &Host {
        &self.served.host
    }

    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.served.metrics)
    }

    pub(crate) fn news(&self) -> &News {
        &self.served.news
    }

    pub(crate) const fn patience(&self) -> Duration {
        self.patience
    }

    pub(crate) fn ending(&self) -> Ending {
        self.ending.clone()
    }

    /// Runs blocking work on another thread.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Served) -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, Refused> {
        let served = Arc::clone(&self.served);
        let worked = spawn_blocking(move || work(&served)).await;
        worked.unwrap_or_else(|_| Err(Refused::failed("it was given up halfway")))
    }

    pub(crate) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Catalog) -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, Refused> {
        self.work(|served| served.host.book().read(look).map_err(unavailable)?).await
    }
}

pub(crate) fn unavailable(error: JournalError) -> Refused {
    match error {
        JournalError::NotFound { job } => Refused::missing(format!("there is no flow `{job}`")),
        other => Refused::unavailable(undaunted_runner::with_causes(&other)),
    }
}
