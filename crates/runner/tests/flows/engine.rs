//! A host in this process, and how its flows were left.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use undaunted_engine::event::Record;
use undaunted_engine::job::{Job, JobStage};
use undaunted_engine::workflow::Operator;
use undaunted_runner::catalog::CatalogHandle;
use undaunted_runner::drive::{DeliveryOutcome, Observer, Services, StoreOutage};
use undaunted_runner::endpoints::Endpoints;
use undaunted_runner::flows::{BegunFlow, FlowHost, FlowSubmission, HostSettings};
use undaunted_runner::folder::LocalFolder;
use undaunted_runner::machine::LocalMachine;
use undaunted_runner::request::ArrivedResult;
use undaunted_runner::with_causes;
use undaunted_store::{SqliteStore, Store};

use crate::fixture::DEADLINE;

/// Called when the event loop gets a flow, before anything happens to it.
type OnFlowAdded = Box<dyn Fn(&Job) + Send>;

/// Options of a host that only some tests set.
#[derive(Default)]
pub(crate) struct HostOptions {
    pub(crate) operator: Operator,
    pub(crate) endpoints: &'static [&'static str],
    pub(crate) on_flow_added: Option<OnFlowAdded>,
}

/// The results of flows that the event loop no longer runs, in order.
#[derive(Default)]
struct LeftFlows {
    ends: Mutex<BTreeMap<String, Vec<Result<JobStage, String>>>>,
    changed: Condvar,
}

pub(crate) struct Engine {
    host: Option<Arc<FlowHost>>,
    ends: Arc<LeftFlows>,
    /// The messages about outages of the store.
    pub(crate) outages: Arc<Mutex<Vec<String>>>,
}

struct OutagesNoted(Arc<Mutex<Vec<String>>>);

impl Observer for OutagesNoted {
    fn recorded(&mut self, _: &Job, _: u64, _: &Record) {}

    fn outage(&mut self, outage: &StoreOutage<'_>) {
        self.0.lock().unwrap().push(outage.to_string());
    }
}

impl Engine {
    pub(crate) fn of(folder: &Path, told: HostOptions) -> Self {
        Self::on(Arc::new(SqliteStore::open(folder).unwrap()), folder, told)
    }

    /// With a given handle on the store of a folder.
    pub(crate) fn on(store: Arc<dyn Store>, folder: &Path, told: HostOptions) -> Self {
        let catalog = CatalogHandle::open(Arc::clone(&store)).unwrap();
        let services = Services {
            store,
            local: LocalFolder::new(folder),
            machine: Arc::new(LocalMachine::default()),
            grace: Duration::from_secs(1),
            check_interval: Duration::from_secs(5),
            catalog: None,
            endpoints: Endpoints::of(told.endpoints.iter().copied()).unwrap(),
            env: Vec::new(),
        };
        let ends = Arc::new(LeftFlows::default());
        let noted = Arc::clone(&ends);
        let outages = Arc::default();
        let noted_outages = Arc::clone(&outages);
        let on_flow_added = told.on_flow_added;
        let settings = HostSettings {
            operator: told.operator,
            webhooks: "http://here".to_owned(),
            release: "test".to_owned(),
            directory: "/".to_owned(),
            watch: Box::new(move |job| {
                if let Some(on_flow_added) = &on_flow_added {
                    on_flow_added(job);
                }
                Box::new(OutagesNoted(Arc::clone(&noted_outages)))
            }),
            left: Box::new(move |name, left| {
                let how = match left {
                    Ok(job) => Ok(job.stage),
                    Err(error) => Err(with_causes(error)),
                };
                let mut ends = noted.ends.lock().unwrap();
                ends.entry(name.to_owned()).or_default().push(how);
                noted.changed.notify_all();
            }),
        };
        Self { host: Some(Arc::new(FlowHost::begin(services, catalog, settings))), ends, outages }
    }

    pub(crate) fn host(&self) -> &FlowHost {
        self.host.as_ref().unwrap()
    }

    /// Begins a flow that does not exist yet.
    pub(crate) fn start(&self, wanted: &FlowSubmission) {
        assert_eq!(self.host().start(wanted).unwrap(), BegunFlow::Now);
    }

    /// Waits until the event loop no longer runs a flow, and returns the result.
    pub(crate) fn left(&self, flow: &str) -> Result<JobStage, String> {
        let ends = self.ends.ends.lock().unwrap();
        let is_there = |ends: &mut BTreeMap<String, Vec<_>>| !ends.contains_key(flow);
        let waited = self.ends.changed.wait_timeout_while(ends, DEADLINE, is_there);
        let (ends, waited) = waited.unwrap();
        assert!(!waited.timed_out(), "{flow} is still running");
        ends[flow].last().cloned().unwrap()
    }

    /// All results, by flow.
    pub(crate) fn all_left(&self) -> BTreeMap<String, Vec<Result<JobStage, String>>> {
        self.ends.ends.lock().unwrap().clone()
    }

    /// Waits until a flow has completed in this host.
    pub(crate) fn completes(&self, flow: &str) {
        assert_eq!(self.left(flow), Ok(JobStage::Completed), "{flow}");
    }

    /// Delivers a result.
    pub(crate) fn deliver(
        &self,
        flow: &str,
        step: &str,
        token: &str,
        result: &str,
    ) -> Option<DeliveryOutcome> {
        let arrived =
            ArrivedResult { step: step.to_owned(), token: token.to_owned(), result: Ok(result.to_owned()) };
        self.host().deliver(flow, &arrived)
    }

    /// Shuts down in good order.
    pub(crate) fn suspend(&self) {
        self.host().interrupt();
        self.host().wait();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // The second interrupt ends the host at once; then the store is closed.
        if let Some(host) = self.host.take() {
            host.interrupt();
            host.interrupt();
            host.wait();
        }
    }
}
