//! A store in a temporary folder, with registered steps.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use undaunted_engine::catalog::{CatalogEvent, CatalogRecord, FlowLifecycle};
use undaunted_engine::event::{Event, JobSubmitted, Record};
use undaunted_engine::job::{Job, Plans};
use undaunted_engine::plan::Plan;
use undaunted_engine::submission::{SubmissionContext, submission};
use undaunted_engine::view;
use undaunted_engine::workflow::{Operator, Source, check, plain_definition};
use undaunted_policy::Timestamp;
use undaunted_runner::catalog::{self, CatalogHandle};
use undaunted_runner::flows::FlowSubmission;
use undaunted_runner::journal;
use undaunted_store::{SqliteStore, Store, Version};

use crate::engine::{Engine, HostOptions};
use crate::process::HostProcess;

/// Longer than any test takes on the slowest machine.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) struct FlowFixture {
    folder: tempfile::TempDir,
    /// The test's own handle, which runs nothing.
    store: Arc<dyn Store>,
    pub(crate) catalog: CatalogHandle,
}

impl FlowFixture {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path()).unwrap());
        let catalog = CatalogHandle::open(Arc::clone(&store)).unwrap();
        Self { folder, store, catalog }
    }

    /// A store in which these steps are registered.
    pub(crate) fn of(steps: &[Value]) -> Self {
        let fixture = Self::new();
        for step in steps {
            fixture.register(step);
        }
        fixture
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// A host in this process.
    pub(crate) fn engine(&self) -> Engine {
        Engine::of(self.folder(), HostOptions::default())
    }

    pub(crate) fn engine_with(&self, told: HostOptions) -> Engine {
        Engine::of(self.folder(), told)
    }

    /// A host in another process, which can be killed.
    pub(crate) fn process(&self) -> HostProcess {
        HostProcess::start(self.folder())
    }

    /// Registers a step without checking it.
    pub(crate) fn register(&self, step: &Value) {
        let id = step["id"].as_str().unwrap().to_owned();
        let definition = plain_definition(step).to_string();
        self.noted(vec![CatalogEvent::StepRegistered { id, definition }]);
    }

    /// Writes facts to the catalog.
    pub(crate) fn noted(&self, events: Vec<CatalogEvent>) {
        let wish = move |_: &_| Ok::<_, ()>(events.clone());
        self.catalog.change(wish).unwrap().unwrap();
    }

    /// The records of the catalog that are about a flow.
    pub(crate) fn catalog_of(&self, flow: &str) -> Vec<CatalogRecord> {
        let all = catalog::records(self.store(), Version::EMPTY).unwrap();
        let all = all.into_iter().map(|(_, record)| record);
        all.filter(|record| flow_of(&record.event) == Some(flow)).collect()
    }

    /// The event words of the catalog records about a flow.
    pub(crate) fn words_of(&self, flow: &str) -> Vec<&'static str> {
        let records = self.catalog_of(flow);
        records.iter().map(|record| record.event.word()).collect()
    }

    pub(crate) fn place(&self, flow: &str) -> Option<FlowLifecycle> {
        let place = |catalog: &undaunted_engine::catalog::Catalog| {
            catalog.flows.get(flow).map(|entry| entry.lifecycle)
        };
        self.catalog.read(place).unwrap()
    }

    /// Waits until the flow is deactivated in the catalog, which happens after its last record.
    pub(crate) fn ended(&self, flow: &str) -> Job {
        Self::eventually(flow, || (self.place(flow) == Some(FlowLifecycle::Deactivated)).then_some(()));
        self.job(flow)
    }

    /// The state of a flow, from its journal.
    pub(crate) fn job(&self, flow: &str) -> Job {
        journal::load(self.store(), flow, &Plans::default()).unwrap()
    }

    pub(crate) fn records(&self, flow: &str) -> Vec<Record> {
        let mut records = Vec::new();
        journal::replay(self.store(), flow, &Plans::default(), |_, _, record| {
            records.push(record.clone());
        })
        .unwrap();
        records
    }

    /// The events of a flow, as `events --json` shows them.
    pub(crate) fn events(&self, flow: &str) -> Vec<Value> {
        let mut events = Vec::new();
        journal::replay(self.store(), flow, &Plans::default(), |job, version, record| {
            let shown = view::event(job, version.0, record);
            events.push(serde_json::to_value(shown).unwrap());
        })
        .unwrap();
        events
    }

    /// The events of a flow of one kind.
    pub(crate) fn all(&self, flow: &str, kind: &str) -> Vec<Value> {
        let mut events = self.events(flow);
        events.retain(|event| event["type"] == kind);
        events
    }

    /// Waits until the service has accepted an attempt of a flow, which may not be stored yet.
    pub(crate) fn accepted(&self, flow: &str) {
        Self::eventually("an accepted attempt", || {
            let aggregate = journal::aggregate(flow).unwrap();
            self.store().head(&aggregate).unwrap()?;
            self.all(flow, "attempt_accepted").pop()
        });
    }

    /// Stores a flow without running it and without a catalog entry.
    pub(crate) fn deposit(&self, flow: &str, wanted: &FlowSubmission, known: &[Event]) {
        let submitted = self.submission(wanted);
        let submitted = JobSubmitted { job: flow.to_owned(), ..submitted };
        journal::deposit(self.store(), submitted, known, now()).unwrap();
    }

    /// Stores a job that is not a flow.
    pub(crate) fn deposit_shell(&self, job: &str, known: &[Event]) {
        let (text, operator) = ("- shell: touch never\n", Operator::default());
        let checked = check(&Source::new("w.yaml", text), &operator);
        let around = SubmissionContext {
            job: job.to_owned(),
            file: "w.yaml".to_owned(),
            working_dir: self.folder().to_string_lossy().into_owned(),
            seed: 1,
            operator: &operator,
            variable: &|_| None,
            release: "test".to_owned(),
            flow: None,
            token_key: None,
        };
        let submitted = submission(Plan::new(checked.workflow.unwrap()), text, around).unwrap();
        journal::deposit(self.store(), submitted, known, now()).unwrap();
    }

    /// The submission that a host would store for a flow, taken from a flow begun in another store.
    pub(crate) fn submission(&self, wanted: &FlowSubmission) -> JobSubmitted {
        let elsewhere = FlowFixture::new();
        let steps = self.catalog.read(|catalog| catalog.steps.clone()).unwrap();
        let steps = steps.into_iter();
        elsewhere.noted(
            steps
                .map(|(id, definition)| CatalogEvent::StepRegistered {
                    id,
                    definition: definition.to_string(),
                })
                .collect(),
        );
        let engine = elsewhere.engine_with(HostOptions {
            // No step may be called.
            endpoints: &["http://nowhere"],
            ..HostOptions::default()
        });
        engine.host().start(wanted).unwrap();
        drop(engine);
        elsewhere.job(&wanted.id).submitted().clone()
    }

    /// Waits until a job has no owner; claims are released in the background.
    pub(crate) fn free(&self, job: &str) {
        let aggregate = journal::aggregate(job).unwrap();
        Self::eventually("the release of the claim", || {
            let owner = self.store().owner(&aggregate).unwrap();
            owner.is_none().then_some(())
        });
    }

    /// Waits until `look` returns something.
    pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(begun.elapsed() < DEADLINE, "{what} did not happen");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The flow that a record of the catalog is about.
fn flow_of(event: &CatalogEvent) -> Option<&str> {
    match event {
        CatalogEvent::FlowActivated { flow, .. }
        | CatalogEvent::FlowDeactivated { flow, .. }
        | CatalogEvent::FlowArchiving { flow }
        | CatalogEvent::FlowArchived { flow, .. } => Some(flow),
        _ => None,
    }
}

pub(crate) fn now() -> Timestamp {
    undaunted_runner::clock::Clock::set().now()
}

/// The catalog event of a flow that has begun.
pub(crate) fn activated(flow: &str) -> CatalogEvent {
    CatalogEvent::FlowActivated { flow: flow.to_owned(), since: now(), labels: vec![], parent: None }
}

/// A synchronous step with these attributes and this `work_config`. Its breaker never opens in these tests.
pub(crate) fn step(id: &str, endpoint: &str, attributes: &Value, work: &Value) -> Value {
    json!({
        "id": id, "type": "sync", "http": {"endpoint": endpoint}, "attributes": attributes,
        "work_config": work, "breaker": {"failure_threshold": 1000},
    })
}

/// An asynchronous step, whose result is delivered later.
pub(crate) fn async_step(id: &str, endpoint: &str, attributes: &Value, work: &Value) -> Value {
    let mut step = step(id, endpoint, attributes, work);
    step["type"] = "async".into();
    step
}

/// A flow with one goal.
pub(crate) fn wanted(id: &str, goal: &str, init: &Value) -> FlowSubmission {
    let init: Option<&Map<String, Value>> = init.as_object();
    FlowSubmission {
        id: id.to_owned(),
        goals: vec![goal.to_owned()],
        init: init.cloned().unwrap_or_default(),
        ..FlowSubmission::default()
    }
}
