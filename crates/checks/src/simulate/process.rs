//! A simulated process: the real event loop on a simulated machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use undaunted_engine::event::JobSubmitted;
use undaunted_engine::job::Plans;
use undaunted_engine::plan::Plan;
use undaunted_engine::submission::{SubmissionContext, submission};
use undaunted_engine::workflow::{Operator, Source, check};
use undaunted_policy::Timestamp;
use undaunted_runner::drive::{EventLoop, NoJobObserver, Services};
use undaunted_runner::endpoints::Endpoints;
use undaunted_runner::folder::LocalFolder;
use undaunted_runner::journal::{self, ClaimedJob, JournalError};
use undaunted_runner::secrets::Secrets;
use undaunted_store::{ClaimError, MemoryStore, Store};

use super::case::JobCase;
use super::machine::SimMachine;
use super::store::SimStore;
use super::world::{SharedWorld, lock};

/// Where async results are sent.
const WEBHOOKS: &str = "http://here.test";

pub(super) struct ProcessHome {
    pub(super) services: Services,
    pub(super) store: Arc<SimStore>,
}

impl ProcessHome {
    pub(super) fn new(shared: &SharedWorld, process: usize, disk: &MemoryStore) -> Self {
        let store = SimStore::new(SharedWorld::clone(shared), process, disk.another());
        let store = Arc::new(store);
        let services = Services {
            store: Arc::<SimStore>::clone(&store),
            local: LocalFolder::new("/simulated"),
            machine: Arc::new(SimMachine { shared: SharedWorld::clone(shared), process }),
            grace: Duration::from_secs(1),
            check_interval: Duration::from_secs(5),
            catalog: None,
            endpoints: Endpoints::default(),
            env: Vec::new(),
        };
        Self { services, store }
    }
}

pub(super) struct SimProcess<'w> {
    home: &'w ProcessHome,
    pub(super) event_loop: EventLoop<'w>,
    /// The jobs it runs, and how far the clock of each is ahead of the machine's uptime.
    pub(super) jobs: BTreeMap<String, Timestamp>,
    pub(super) frozen_since: Option<Duration>,
    pub(super) is_leaving: bool,
}

pub(super) enum ClaimResult {
    Runs,
    /// Another process owns it, or it has ended.
    Not,
    /// The store is unreachable.
    Later,
    /// The store cannot be used any more.
    Fails,
}

impl<'w> SimProcess<'w> {
    pub(super) fn begin(home: &'w ProcessHome) -> Self {
        let mut event_loop = EventLoop::new(&home.services);
        event_loop.send_results_to(WEBHOOKS.to_owned());
        Self { home, event_loop, jobs: BTreeMap::new(), frozen_since: None, is_leaving: false }
    }

    pub(super) fn store(&self) -> &'w SimStore {
        &self.home.store
    }

    /// Claims a job, and submits it if it does not exist.
    pub(super) fn claim_job(&mut self, shared: &SharedWorld, job: &str, case: &JobCase) -> ClaimResult {
        if self.event_loop.job(job).is_some() {
            return ClaimResult::Not;
        }
        let store: &dyn Store = &*self.home.store;
        let held = match journal::claim(store, job, &Plans::default()) {
            Err(JournalError::NotFound { .. }) => match submitted(job, case) {
                Ok(submitted) => {
                    let now = lock(shared).wall();
                    journal::submit(store, submitted, &Plans::default(), now)
                }
                Err(why) => {
                    lock(shared).oracle.violation(why);
                    return ClaimResult::Not;
                }
            },
            held => held,
        };
        match held {
            // A claim ends with its process at the latest.
            Ok(held) if held.job.stage.has_ended() => ClaimResult::Not,
            Ok(held) => {
                self.add(shared, held);
                ClaimResult::Runs
            }
            Err(JournalError::Claim(ClaimError::OwnedBy { .. })) => ClaimResult::Not,
            Err(error) if error.outage().is_some() => ClaimResult::Later,
            Err(_) => ClaimResult::Fails,
        }
    }

    fn add(&mut self, shared: &SharedWorld, held: ClaimedJob) {
        let ahead = {
            let world = lock(shared);
            // What the wall clock would have shown when the machine was started.
            world.wall().since(Timestamp::ZERO.after(world.now))
        };
        self.jobs.insert(held.job.id().to_owned(), Timestamp::ZERO.after(ahead));
        self.event_loop.add(held, Secrets::default(), Box::new(NoJobObserver));
    }

    /// The jobs whose commands run in a keeper.
    pub(super) fn with_programs(&self) -> BTreeSet<String> {
        let jobs = self.jobs.keys();
        let has = |job: &&String| {
            let job = self.event_loop.job(job);
            job.is_some_and(|job| job.plan().has_programs())
        };
        jobs.filter(has).cloned().collect()
    }
}

/// The submission of a case.
fn submitted(job: &str, case: &JobCase) -> Result<JobSubmitted, String> {
    let text = case.text();
    let source = Source::new("case.yaml", text.as_str());
    let operator = Operator::default();
    let checked = check(&source, &operator);
    let Some(workflow) = checked.workflow else {
        let found = &checked.diagnostics;
        return Err(format!("a case is no workflow: {found:?}\n{text}"));
    };
    let around = SubmissionContext {
        job: job.to_owned(),
        file: "case.yaml".to_owned(),
        working_dir: format!("/simulated/{job}"),
        seed: 7,
        operator: &operator,
        variable: &|_| None,
        release: "simulated".to_owned(),
        flow: None,
        token_key: None,
    };
    submission(Plan::new(workflow), &text, around).map_err(|why| why.to_string())
}
