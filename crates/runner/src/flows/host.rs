//! A process that runs flows and serves requests about them from many threads.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use undaunted_engine::job::{Job, Plans};
use undaunted_engine::workflow::Operator;
use undaunted_store::Store;

use crate::catalog::{CatalogHandle, Steps};
use crate::drive::{EventLoop, JobResult, LoopHandle, Observer, Services, in_background};
use crate::endpoints::Endpoints;
use crate::executor::is_there;
use crate::journal::ClaimedJob;
use crate::lock::locked;
use crate::secrets::Secrets;

pub struct HostSettings {
    pub operator: Operator,
    /// Where steps send results of accepted attempts.
    pub webhooks: String,
    pub release: String,
    /// The working directory of flows.
    pub directory: String,
    pub watch: WatchFlows,
    pub left: HearLeft,
}

pub type WatchFlows = Box<dyn Fn(&Job) -> Box<dyn Observer> + Send>;

pub type HearLeft = Box<dyn FnMut(&str, &JobResult) + Send>;

pub struct FlowHost {
    pub(super) store: Arc<dyn Store>,
    pub(super) book: CatalogHandle,
    pub(super) hub: LoopHandle,
    pub(super) operator: Operator,
    pub(super) endpoints: Endpoints,
    pub(super) release: String,
    pub(super) directory: String,
    pub(super) plans: Arc<Plans>,
    pub(super) steps: Steps,
    /// The flows it runs, without sub-flows.
    here: Arc<Mutex<BTreeSet<String>>>,
    leaving: AtomicBool,
    running: Mutex<Option<JoinHandle<()>>>,
}

impl FlowHost {
    pub fn begin(world: Services, book: CatalogHandle, settings: HostSettings) -> Self {
        let store = Arc::clone(&world.store);
        let endpoints = world.endpoints.clone();
        let (webhooks, watch, mut left) = (settings.webhooks, settings.watch, settings.left);
        let here: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let left_here = Arc::clone(&here);
        let world = Services { catalog: Some(book.clone()), ..world };
        let plans = Arc::<Plans>::default();
        let shared = Arc::clone(&plans);
        let prepare = move |hub: &mut EventLoop<'_>| {
            hub.share_plans(shared);
            hub.send_results_to(webhooks);
            hub.watched_by(Box::new(move |job| watch(job)));
        };
        let (hub, running) = in_background(world, prepare, move |name, how| {
            locked(&left_here).remove(name);
            left(name, &how);
        });
        Self {
            store,
            steps: Steps::new(book.clone(), settings.operator),
            book,
            hub,
            operator: settings.operator,
            endpoints,
            release: settings.release,
            directory: settings.directory,
            plans,
            here,
            leaving: AtomicBool::new(false),
            running: Mutex::new(Some(running)),
        }
    }

    pub const fn book(&self) -> &CatalogHandle {
        &self.book
    }

    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// The plans of its flows, so that the text of a flow is checked only once.
    pub fn plans(&self) -> Arc<Plans> {
        Arc::clone(&self.plans)
    }

    /// Checks whether a step answers at an address, if that may be called.
    pub fn is_there(&self, address: &str, patience: Duration) -> Result<(), String> {
        if !self.endpoints.allow(address) {
            return Err("its address may not be called from here".to_owned());
        }
        is_there(address, patience)
    }

    /// Asks the event loop to leave: the first time in good order, the second time at once.
    pub fn interrupt(&self) {
        self.leaving.store(true, Ordering::Release);
        self.hub.interrupt();
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }

    pub(super) fn take_on(&self, held: ClaimedJob, secrets: Secrets) {
        locked(&self.here).insert(held.job.id().to_owned());
        self.hub.add(held, secrets);
    }

    pub(super) fn runs(&self, flow: &str) -> bool {
        locked(&self.here).contains(flow)
    }

    /// Waits until every flow was left. Only the first caller waits.
    pub fn wait(&self) {
        let running = locked(&self.running).take();
        if let Some(running) = running {
            // A panic has been shown already.
            drop(running.join());
        }
    }
}
