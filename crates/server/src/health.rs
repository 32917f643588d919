//! Looks from time to time whether steps are there.
//!
//! Only what has changed is recorded, and it is compared with what is recorded when it is written: of
//! several servers on one store one is the first to say it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::{JoinSet, spawn_blocking};
use undaunted_engine::catalog::{Catalog, CatalogEvent};

use crate::api::Served;
use crate::flow_state::object;
use crate::listen::Ending;

/// How often, and how patiently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthChecks {
    /// How often every step is looked at.
    pub every: Duration,
    /// How long an answer may take.
    pub patience: Duration,
}

impl Default for HealthChecks {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(30),
            patience: Duration::from_secs(5),
        }
    }
}

/// The most that are asked at once.
const AT_ONCE: usize = 8;

/// Looks again and again, until the end.
pub(crate) async fn look_after(served: Served, how: HealthChecks, mut ending: Ending) {
    let served = Arc::new(served);
    loop {
        let round = round(&served, how.patience);
        tokio::select! {
            () = round => {}
            () = ending.comes() => return,
        }
        tokio::select! {
            () = tokio::time::sleep(how.every) => {}
            () = somebody_is_unknown(&served) => {}
            () = ending.comes() => return,
        }
    }
}

/// Waits until a step was registered that nobody has looked at.
async fn somebody_is_unknown(served: &Arc<Served>) {
    /// Much may happen at once.
    const PAUSE: Duration = Duration::from_millis(200);
    let mut news = served.news.listen();
    loop {
        tokio::time::sleep(PAUSE).await;
        let unknown = served.host.book().known(|catalog, _| {
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
    let addresses = spawn_blocking(move || asking.host.book().read(addresses));
    // If the catalog cannot be read now it may be the next time.
    let Ok(Ok(addresses)) = addresses.await else {
        return;
    };
    let mut asked = JoinSet::new();
    for (id, address) in addresses {
        if asked.len() >= AT_ONCE {
            let _ = asked.join_next().await;
        }
        let served = Arc::clone(served);
        let _ = asked.spawn_blocking(move || ask(&served, &id, &address, patience));
    }
    while asked.join_next().await.is_some() {}
}

/// The steps that say where they can be asked.
fn addresses(catalog: &Catalog) -> Vec<(String, String)> {
    let steps = catalog.steps.iter().filter_map(|(id, definition)| {
        let definition = object(definition);
        let address = definition.get("http")?.get("health_check");
        let address = address.and_then(Value::as_str);
        let address = address.filter(|address| !address.is_empty())?;
        Some((id.clone(), address.to_owned()))
    });
    steps.collect()
}

fn ask(served: &Served, id: &str, address: &str, patience: Duration) {
    let error = served.host.is_there(address, patience).err();
    let healthy = error.is_none();
    let id = id.to_owned();
    let decide = move |catalog: &Catalog| {
        let known = catalog.health.get(&id);
        let same = known.is_some_and(|known| known.healthy == healthy && known.error == error);
        let (id, error) = (id.clone(), error.clone());
        let changed = CatalogEvent::StepHealthChanged { id, healthy, error };
        // A step that is gone has no health.
        let told = !same && catalog.steps.contains_key(changed_id(&changed));
        Ok::<_, std::convert::Infallible>(if told { vec![changed] } else { Vec::new() })
    };
    // What cannot be written now is found again the next time.
    if let Ok(Ok(written)) = served.host.book().change(decide)
        && !written.is_empty()
    {
        served.news.stir();
    }
}

fn changed_id(event: &CatalogEvent) -> &str {
    if let CatalogEvent::StepHealthChanged { id, .. } = event {
        id
    } else {
        ""
    }
}
