//! Checks from time to time whether steps are healthy.
//!
//! Only changes are recorded. They are compared with the catalog when they are written, so that of several
//! servers on one store only the first records a change.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinSet, spawn_blocking};
use undaunted_engine::catalog::{Catalog, CatalogEvent};

use crate::answer::object;
use crate::api::Served;
use crate::listen::ListenerEnd;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthChecks {
    pub every: Duration,
    /// How long an answer may take.
    pub patience: Duration,
}

impl Default for HealthChecks {
    fn default() -> Self {
        Self { every: Duration::from_secs(30), patience: Duration::from_secs(5) }
    }
}

const MAX_CONCURRENT: usize = 8;

/// Checks all steps again and again, until the server is shutting down.
pub(crate) async fn check_steps(served: Served, how: HealthChecks, mut ending: ListenerEnd) {
    let served = Arc::new(served);
    loop {
        let round = round(&served, how.patience);
        tokio::select! {
            () = round => {}
            () = ending.reached() => return,
        }
        tokio::select! {
            () = tokio::time::sleep(how.every) => {}
            () = step_is_unchecked(&served) => {}
            () = ending.reached() => return,
        }
    }
}

/// Waits until a step was registered that was not checked yet.
async fn step_is_unchecked(served: &Arc<Served>) {
    /// Bounds the checks of the catalog while many records are stored.
    const PAUSE: Duration = Duration::from_millis(200);
    let mut news = served.changes.subscribe();
    loop {
        tokio::time::sleep(PAUSE).await;
        let unknown = served.host.catalog().cached(|catalog, _| {
            let mut steps = addresses(catalog).into_iter();
            steps.any(|(id, _)| !catalog.health.contains_key(&id))
        });
        if unknown || news.changed().await.is_err() {
            return;
        }
    }
}

async fn round(served: &Arc<Served>, patience: Duration) {
    let asking = Arc::clone(served);
    let addresses = spawn_blocking(move || asking.host.catalog().read(addresses));
    // If the catalog cannot be read now, the next round tries again.
    let Ok(Ok(addresses)) = addresses.await else {
        return;
    };
    let mut checks = JoinSet::new();
    for (id, address) in addresses {
        if checks.len() >= MAX_CONCURRENT {
            let _ = checks.join_next().await;
        }
        let served = Arc::clone(served);
        let _ = checks.spawn_blocking(move || check_step(&served, &id, &address, patience));
    }
    while checks.join_next().await.is_some() {}
}

fn addresses(catalog: &Catalog) -> Vec<(String, String)> {
    let steps = catalog.steps.iter().filter_map(|(id, definition)| {
        let definition = object(definition);
        let address = definition.get("http")?.get("health_check")?.as_str()?;
        (!address.is_empty()).then(|| (id.clone(), address.to_owned()))
    });
    steps.collect()
}

fn check_step(served: &Served, id: &str, address: &str, patience: Duration) {
    let error = served.host.is_there(address, patience).err();
    let healthy = error.is_none();
    let id = id.to_owned();
    let decide = move |catalog: &Catalog| {
        let known = catalog.health.get(&id);
        let same = known.is_some_and(|known| known.healthy == healthy && known.error == error);
        // A step that was unregistered meanwhile has no health.
        if same || !catalog.steps.contains_key(&id) {
            return Ok::<_, std::convert::Infallible>(Vec::new());
        }
        let (id, error) = (id.clone(), error.clone());
        Ok(vec![CatalogEvent::StepHealthChanged { id, healthy, error }])
    };
    // A change that cannot be written now is found again in the next round.
    if let Ok(Ok(written)) = served.host.catalog().change(decide)
        && !written.is_empty()
    {
        served.changes.notify();
    }
}
