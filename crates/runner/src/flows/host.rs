//! A host: it runs flows in one event loop, delivers results to them, and can be called from many threads.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use undaunted_engine::id::ItemId;
use undaunted_engine::input::Input;
use undaunted_engine::job::{Job, JobStage, Plans};
use undaunted_engine::task::{TokenStatus, find_token};
use undaunted_engine::workflow::{Operator, WorkflowMode};
use undaunted_store::{ClaimError, Store};

use crate::catalog::CheckedSteps;
use crate::drive::{DeliveryOutcome, EventLoop, LoopHandle, Observer, TokenOwner, in_background};
use crate::executor::is_there;
use crate::{
    ArrivedResult, CatalogHandle, ClaimedJob, Endpoints, JobResult, JournalError, Secrets, Services,
    failpoint, journal, locked, request,
};

pub struct HostSettings {
    pub operator: Operator,
    /// The URL to which steps send results of accepted attempts.
    pub webhooks: String,
    pub release: String,
    /// The working directory of flows.
    pub directory: String,
    pub watch: WatchFlows,
    pub left: OnFlowLeft,
}

pub type WatchFlows = Box<dyn Fn(&Job) -> Box<dyn Observer> + Send>;

pub type OnFlowLeft = Box<dyn FnMut(&str, &JobResult) + Send>;

pub struct FlowHost {
    pub(super) store: Arc<dyn Store>,
    pub(super) catalog: CatalogHandle,
    pub(super) event_loop: LoopHandle,
    pub(super) operator: Operator,
    pub(super) endpoints: Endpoints,
    pub(super) release: String,
    pub(super) directory: String,
    pub(super) plans: Arc<Plans>,
    pub(super) steps: CheckedSteps,
    /// The flows it runs, without sub-flows.
    here: Arc<Mutex<BTreeSet<String>>>,
    leaving: AtomicBool,
    recovered: AtomicBool,
    running: Mutex<Option<JoinHandle<()>>>,
}

impl FlowHost {
    pub fn begin(services: Services, catalog: CatalogHandle, settings: HostSettings) -> Self {
        let store = Arc::clone(&services.store);
        let endpoints = services.endpoints.clone();
        let (webhooks, watch, mut left) = (settings.webhooks, settings.watch, settings.left);
        let here: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let left_here = Arc::clone(&here);
        let services = Services { catalog: Some(catalog.clone()), ..services };
        let plans = Arc::<Plans>::default();
        let shared = Arc::clone(&plans);
        let prepare = move |event_loop: &mut EventLoop<'_>| {
            event_loop.share_plans(shared);
            event_loop.send_results_to(webhooks);
            event_loop.observe_with(Box::new(move |job| watch(job)));
        };
        let (event_loop, running) = in_background(services, prepare, move |name, how| {
            locked(&left_here).remove(name);
            left(name, &how);
        });
        Self {
            store,
            steps: CheckedSteps::new(catalog.clone(), settings.operator),
            catalog,
            event_loop,
            operator: settings.operator,
            endpoints,
            release: settings.release,
            directory: settings.directory,
            plans,
            here,
            leaving: AtomicBool::new(false),
            recovered: AtomicBool::new(false),
            running: Mutex::new(Some(running)),
        }
    }

    pub const fn catalog(&self) -> &CatalogHandle {
        &self.catalog
    }

    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// The plans of its flows, so that the text of a flow is checked only once.
    pub fn plans(&self) -> Arc<Plans> {
        Arc::clone(&self.plans)
    }

    /// Checks whether a step answers at a URL, if that is an allowed endpoint.
    pub fn is_there(&self, address: &str, patience: Duration) -> Result<(), String> {
        if !self.endpoints.allow(address) {
            return Err("the URL is not among the allowed endpoints".to_owned());
        }
        is_there(address, patience)
    }

    /// Asks the event loop to shut down: the first time in good order, the second time at once.
    pub fn interrupt(&self) {
        self.leaving.store(true, Ordering::Release);
        self.event_loop.interrupt();
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }

    pub(super) fn note_recovered(&self) {
        self.recovered.store(true, Ordering::Release);
    }

    /// Whether the flows of the store were examined after the start.
    pub fn has_recovered(&self) -> bool {
        self.recovered.load(Ordering::Acquire)
    }

    pub(super) fn run_here(&self, claimed: ClaimedJob, secrets: Secrets) {
        locked(&self.here).insert(claimed.job.id().to_owned());
        self.event_loop.add(claimed, secrets);
    }

    pub(super) fn runs(&self, flow: &str) -> bool {
        locked(&self.here).contains(flow)
    }

    /// Waits until the event loop has ended. Only the first caller waits.
    pub fn wait(&self) {
        let running = locked(&self.running).take();
        if let Some(running) = running {
            // A panic has been printed already.
            drop(running.join());
        }
    }
}

impl FlowHost {
    /// Whether a step of a flow has given out this token. Nothing is changed. None if that cannot be found out
    /// now.
    pub fn knows_token(&self, flow: &str, step: &str, token: &str) -> Option<bool> {
        match self.event_loop.find_token(flow, step, token)? {
            TokenOwner::Here(found) => Some(found != TokenStatus::Unknown),
            TokenOwner::Elsewhere => match journal::load(&*self.store, flow, &self.plans) {
                Ok(job) if job.workflow().mode == WorkflowMode::Flow => {
                    Some(find_token(&job, step, token) != TokenStatus::Unknown)
                }
                Ok(_) | Err(JournalError::NotFound { .. }) => Some(false),
                Err(_) => None,
            },
        }
    }

    /// Delivers a result to the process that runs the flow. None if it could not be recorded; then the sender
    /// should send it again.
    pub fn deliver(&self, flow: &str, arrived: &ArrivedResult) -> Option<DeliveryOutcome> {
        let taken = match self.event_loop.deliver(flow, arrived.clone()) {
            Some(DeliveryOutcome::Elsewhere) => self.deliver_elsewhere(flow, arrived),
            other => other,
        };
        failpoint::pass("result-taken");
        taken
    }

    fn deliver_elsewhere(&self, flow: &str, arrived: &ArrivedResult) -> Option<DeliveryOutcome> {
        let job = match journal::load(&*self.store, flow, &self.plans) {
            Ok(job) if job.workflow().mode == WorkflowMode::Flow => job,
            Ok(_) | Err(JournalError::NotFound { .. }) => return Some(DeliveryOutcome::Unknown),
            Err(_) => return None,
        };
        match find_token(&job, &arrived.step, &arrived.token) {
            TokenStatus::Unknown => Some(DeliveryOutcome::Unknown),
            TokenStatus::Expired => Some(DeliveryOutcome::Taken),
            TokenStatus::Late(item) if job.stage.has_ended() => self.record_late(flow, item, arrived),
            TokenStatus::Running(_) | TokenStatus::Waiting(_) | TokenStatus::Late(_)
                if job.stage == JobStage::Suspended =>
            {
                self.leave_for_owner(flow, arrived)
            }
            TokenStatus::Running(_) | TokenStatus::Waiting(_) | TokenStatus::Late(_) => {
                match journal::claim(&*self.store, flow, &self.plans) {
                    Ok(claimed) => self.resume_and_deliver(claimed, arrived),
                    Err(JournalError::Claim(ClaimError::OwnedBy { .. })) => {
                        self.leave_for_owner(flow, arrived)
                    }
                    Err(_) => None,
                }
            }
        }
    }

    /// Stores the result for the process that runs the flow, or resumes it later.
    fn leave_for_owner(&self, flow: &str, arrived: &ArrivedResult) -> Option<DeliveryOutcome> {
        request::store_result(&*self.store, flow, arrived).ok()?;
        failpoint::pass("result-handed-on");
        Some(DeliveryOutcome::Taken)
    }

    /// Records a late result for a flow that has ended. The event loop runs the flow for that long, so that its
    /// observers learn of it.
    fn record_late(&self, flow: &str, item: ItemId, arrived: &ArrivedResult) -> Option<DeliveryOutcome> {
        let mut claimed = self.claim_ended(flow)?;
        let secrets = Secrets::of_job(&claimed.job).ok().filter(|_| !self.is_leaving());
        let Some(secrets) = secrets.filter(|_| claimed.job.stage.has_ended()) else {
            self.store.unclaim_in_background(&claimed.claim);
            return None;
        };
        let result = match arrived.result.clone() {
            Ok(output) => Ok(secrets.redact(output)),
            Err(error) => Err(secrets.redact(error)),
        };
        claimed.first = Some(Input::Late { item, result });
        self.run_here(claimed, secrets);
        match self.event_loop.deliver(flow, arrived.clone()) {
            Some(DeliveryOutcome::Elsewhere) => {
                // The loop has left the flow again, unless an error has kept it from recording the result.
                let job = journal::load(&*self.store, flow, &self.plans).ok()?;
                let found = find_token(&job, &arrived.step, &arrived.token);
                (found == TokenStatus::Expired).then_some(DeliveryOutcome::Taken)
            }
            answered => answered,
        }
    }

    /// Claims a flow that has ended. Late results often arrive together, and each claims the flow for a moment.
    fn claim_ended(&self, flow: &str) -> Option<ClaimedJob> {
        const PATIENCE: Duration = Duration::from_secs(5);
        const PAUSE: Duration = Duration::from_millis(5);
        let until = Instant::now().checked_add(PATIENCE)?;
        loop {
            match journal::claim(&*self.store, flow, &self.plans) {
                Err(JournalError::Claim(ClaimError::OwnedBy { .. })) if Instant::now() < until => {
                    std::thread::sleep(PAUSE);
                }
                claimed => return claimed.ok(),
            }
        }
    }

    /// Resumes a flow whose owner has died.
    fn resume_and_deliver(&self, claimed: ClaimedJob, arrived: &ArrivedResult) -> Option<DeliveryOutcome> {
        let secrets = Secrets::of_job(&claimed.job).ok().filter(|_| !self.is_leaving());
        let Some(secrets) = secrets else {
            self.store.unclaim_in_background(&claimed.claim);
            return None;
        };
        let flow = claimed.job.id().to_owned();
        self.run_here(claimed, secrets);
        self.event_loop.deliver(&flow, arrived.clone())
    }
}
