//! A server on a store in memory, with the flow of `waiting_flow`, for one input.
//!
//! Steps may call only an address at which nothing can listen, so requests go nowhere. Every input gets a
//! server of its own and leaves nothing behind.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use undaunted_engine::event::Record;
use undaunted_engine::workflow::Operator;
use undaunted_runner::catalog::{CatalogHandle, activated};
use undaunted_runner::drive::{NoJobObserver, Services};
use undaunted_runner::endpoints::Endpoints;
use undaunted_runner::flows::{FlowHost, HostSettings};
use undaunted_runner::folder::LocalFolder;
use undaunted_runner::journal::aggregate;
use undaunted_runner::machine::LocalMachine;
use undaunted_server::{Access, ChangeSignal, Metrics, Offline, OfflineServer, Served, ServerSettings};
use undaunted_store::{Append, MemoryStore, Store, Version};

use super::waiting_flow::{FLOW, waiting_flow};

/// The only address that may be called: nothing listens on port 0.
const NOWHERE: &str = "http://127.0.0.1:0";

/// Runs `act` on a server; `None` if no server can be made here.
pub(super) fn with_server<T>(access: Access, act: impl FnOnce(&OfflineServer<'_>) -> T) -> Option<T> {
    static OFFLINE: OnceLock<Option<Offline>> = OnceLock::new();
    let offline = OFFLINE.get_or_init(|| Offline::begin().ok()).as_ref()?;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let book = CatalogHandle::open(Arc::clone(&store)).ok()?;
    set(&*store, &book)?;
    let world = Services {
        store,
        local: LocalFolder::new(""),
        machine: Arc::new(LocalMachine::default()),
        grace: Duration::ZERO,
        check_interval: Duration::from_secs(5),
        catalog: None,
        endpoints: Endpoints::of([NOWHERE]).ok()?,
        env: Vec::new(),
    };
    let settings = HostSettings {
        operator: Operator::default(),
        webhooks: "http://localhost".to_owned(),
        release: String::new(),
        directory: "/".to_owned(),
        watch: Box::new(|_| Box::new(NoJobObserver)),
        left: Box::new(|_, _| {}),
    };
    let host = Arc::new(FlowHost::begin(world, book, settings));
    let served = Served {
        host: Arc::clone(&host),
        metrics: Arc::new(Metrics::default()),
        changes: ChangeSignal::default(),
        others: None,
    };
    let manner = ServerSettings { access, ..ServerSettings::default() };
    let done = act(&offline.serve(manner, served));
    // The second interrupt stops at once.
    host.interrupt();
    host.interrupt();
    host.wait();
    Some(done)
}

fn set(store: &dyn Store, book: &CatalogHandle) -> Option<()> {
    let flow = waiting_flow()?;
    let claim = store.claim(&aggregate(FLOW).ok()?).ok()?;
    let records = flow.records.iter().map(Record::encode).collect();
    let append = Append::new(claim.aggregate.clone(), Version::EMPTY, claim.epoch, records);
    store.append(vec![append]).ok()?;
    store.unclaim(&claim).ok()?;
    let activated = activated(&flow.job)?;
    let entered = move |_: &_| Ok::<_, ()>(vec![activated.clone()]);
    book.change(entered).ok()?.ok()?;
    Some(())
}
