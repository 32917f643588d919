//! A flow in a store, told one thing at a time, for tests. Its records are written as a runner does.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use undaunted_engine::breaker::{AdmissionControl, BreakerAnswer};
use undaunted_engine::decide::react;
use undaunted_engine::effect::ready;
use undaunted_engine::event::{Event, JobEvent, Record};
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::{Job, Plans};
use undaunted_engine::plan::Plan;
use undaunted_engine::submission::{SubmissionContext, submission};
use undaunted_engine::view::{Projection, flow_event};
use undaunted_engine::workflow::{Operator, Source, check};
use undaunted_policy::{FailureCause, Timestamp};
use undaunted_runner::journal::aggregate;
use undaunted_store::{Append, Claim, MemoryStore, Store, Version};

use crate::answer::json_of;
use crate::flow_state::FollowedFlow;

/// When every job of these tests is submitted.
pub(crate) const T0: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub(crate) struct Scene {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) job: Job,
    pub(crate) version: Version,
    pub(crate) now: Timestamp,
    /// Every record so far.
    pub(crate) records: Vec<Record>,
    claim: Claim,
}

/// The text of a flow. A step is its id, what it takes and gives, and what else it says.
pub(crate) fn text(goals: &str, init: &str, steps: &[(&str, &str, &str)]) -> String {
    let steps = steps.iter().map(|(id, attributes, more)| {
        format!(
            "  - {{id: {id}, name: {id}, type: sync, http: {{endpoint: 'http://s/{id}'}}, attributes: {{{attributes}}}{more}}}\n"
        )
    });
    let steps: String = steps.collect();
    format!("mode: flow\ngoals: [{goals}]\ninit: {{{init}}}\nsteps:\n{steps}")
}

impl Scene {
    /// A job that was submitted and has begun.
    pub(crate) fn of(id: &str, text: &str) -> Self {
        Self::on(Arc::new(MemoryStore::new()), id, text)
    }

    pub(crate) fn on(store: Arc<MemoryStore>, id: &str, text: &str) -> Self {
        let operator = Operator::default();
        let checked = check(&Source::new("f.yaml", text), &operator);
        let workflow = checked.workflow.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
        let around = SubmissionContext {
            job: id.to_owned(),
            file: "f.yaml".to_owned(),
            working_dir: "/".to_owned(),
            seed: 7,
            operator: &operator,
            variable: &|_| None,
            release: "test".to_owned(),
            flow: None,
            token_key: None,
        };
        let submitted = submission(Plan::new(workflow), text, around).unwrap();
        let first = Record { at: T0, event: Event::Job(JobEvent::Submitted(Box::new(submitted))) };
        let claim = store.claim(&aggregate(id).unwrap()).unwrap();
        let mut scene = Self {
            job: Job::begin(&first).unwrap(),
            store,
            version: Version::default(),
            now: T0,
            records: Vec::new(),
            claim,
        };
        scene.write(vec![first]);
        scene.tell(&Input::Woke);
        scene
    }

    fn write(&mut self, records: Vec<Record>) {
        let bytes = records.iter().map(Record::encode).collect();
        let (aggregate, epoch) = (self.claim.aggregate.clone(), self.claim.epoch);
        let append = Append::new(aggregate, self.version, epoch, bytes);
        self.version = append.reaches(self.version);
        self.store.append(vec![append]).unwrap();
        self.records.extend(records);
    }

    pub(crate) fn tell(&mut self, input: &Input) {
        let records = react(&mut self.job, input, self.now).records;
        if !records.is_empty() {
            self.write(records);
        }
    }

    /// So many milliseconds after the submission.
    pub(crate) fn at(&mut self, millis: u64) -> &mut Self {
        self.now = T0.after(Duration::from_millis(millis));
        self
    }

    /// Starts what is ready.
    pub(crate) fn start(&mut self) {
        for item in ready(&self.job, &AdmissionControl::default(), self.now) {
            self.tell(&Input::Start { item, refused: None, gate: BreakerAnswer::NoBreaker });
        }
    }

    fn start_of(&self, step: u32, item: u32) -> StartId {
        let mut running = self.job.starts.running.iter();
        let found = running.find(|(_, place)| **place == StepId(step).item(item));
        *found.unwrap_or_else(|| panic!("{step}/{item} does not run")).0
    }

    /// An item succeeds with these outputs.
    pub(crate) fn done(&mut self, step: u32, item: u32, outputs: &Value) {
        let start = self.start_of(step, item);
        self.tell(&Input::Ended(Box::new(AttemptEnd {
            start,
            output: Some(outputs.to_string()),
            ..AttemptEnd::default()
        })));
    }

    pub(crate) fn fail(&mut self, step: u32, item: u32, cause: FailureCause) {
        let start = self.start_of(step, item);
        self.tell(&Input::Ended(Box::new(AttemptEnd {
            start,
            failure: Some(cause),
            error: "it said no".to_owned(),
            ..AttemptEnd::default()
        })));
    }

    /// The flow as clients see it, read from the store.
    pub(crate) fn state(&self) -> Value {
        let flow = FollowedFlow::read(&*self.store, self.job.id(), &Plans::default()).unwrap();
        assert_eq!(flow.version, self.version);
        flow.json(None)
    }

    /// All events so far.
    pub(crate) fn events(&self) -> Vec<Value> {
        let mut past = Projection::following_all();
        let mut job: Option<Job> = None;
        let mut events = Vec::new();
        for (number, record) in (1..).zip(&self.records) {
            let job = match &mut job {
                Some(job) => {
                    job.apply(record);
                    job
                }
                None => job.insert(Job::begin(record).unwrap()),
            };
            past.take(job, number, record);
            let event = flow_event(job, &past, number, record);
            events.extend(event.map(|event| json_of(&event)));
        }
        events
    }
}
