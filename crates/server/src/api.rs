//! What the route handlers have access to.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use undaunted_engine::catalog::Catalog;
use undaunted_runner::flows::FlowHost;
use undaunted_runner::journal::JournalError;

use crate::answer::HttpRefusal;
use crate::listen::ListenerEnd;
use crate::metrics::Metrics;
use crate::store_watch::StoreWatch;
use crate::watch::ChangeSignal;

#[derive(Clone)]
pub struct Served {
    pub host: Arc<FlowHost>,
    pub metrics: Arc<Metrics>,
    /// Signals that records were stored.
    pub changes: ChangeSignal,
    /// Counts the jobs of other processes.
    pub others: Option<Arc<StoreWatch>>,
}

/// [`Served`], with the end and the limits of one listener.
#[derive(Clone)]
pub(crate) struct Api {
    served: Arc<Served>,
    ending: ListenerEnd,
    patience: Duration,
}

impl Api {
    pub(crate) fn of(served: Served, ending: ListenerEnd, patience: Duration) -> Self {
        Self { served: Arc::new(served), ending, patience }
    }

    pub(crate) fn host(&self) -> &FlowHost {
        &self.served.host
    }

    pub(crate) fn changes(&self) -> &ChangeSignal {
        &self.served.changes
    }

    pub(crate) const fn patience(&self) -> Duration {
        self.patience
    }

    pub(crate) fn ending(&self) -> ListenerEnd {
        self.ending.clone()
    }

    /// Runs blocking work on another thread.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Served) -> Result<T, HttpRefusal> + Send + 'static,
    ) -> Result<T, HttpRefusal> {
        let served = Arc::clone(&self.served);
        let worked = spawn_blocking(move || work(&served)).await;
        worked.unwrap_or_else(|_| Err(HttpRefusal::internal("the request was interrupted")))
    }

    pub(crate) async fn read_catalog<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Catalog) -> Result<T, HttpRefusal> + Send + 'static,
    ) -> Result<T, HttpRefusal> {
        self.blocking(|served| served.host.catalog().read(look).map_err(unavailable)?).await
    }
}

pub(crate) fn unavailable(error: JournalError) -> HttpRefusal {
    match error {
        JournalError::NotFound { job } => HttpRefusal::not_found(format!("flow `{job}` not found")),
        other => HttpRefusal::unavailable(undaunted_runner::with_causes(&other)),
    }
}
