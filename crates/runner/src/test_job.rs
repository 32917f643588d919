//! A job and its records, for unit tests that read a job from a store.

use std::time::Duration;

use undaunted_engine::breaker::BreakerAnswer;
use undaunted_engine::decide::react;
use undaunted_engine::event::{Event, JobEvent, JobSubmitted, NewItem, Record};
use undaunted_engine::id::{ItemId, StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::{Job, StepStage};
use undaunted_policy::{FailureCause, Timestamp};
use undaunted_store::{Append, Epoch, MemoryStore, Store, Version};

use crate::journal::aggregate;

/// The job `a`, which is in no store yet.
pub(crate) struct TestJob {
    pub(crate) job: Job,
    pub(crate) records: Vec<Record>,
    pub(crate) now: Timestamp,
    items: u32,
}

impl TestJob {
    /// A job whose map is this step and gets `items` items.
    pub(crate) fn submitted(text: &str, map: StepId, items: u32, now: Timestamp) -> Self {
        let submitted = JobSubmitted {
            job: "a".to_owned(),
            text: text.into(),
            parallel: vec![(map, 3)],
            ..JobSubmitted::default()
        };
        let first = Record { at: now, event: Event::Job(JobEvent::Submitted(Box::new(submitted))) };
        let mut job = Self { job: Job::begin(&first).unwrap(), records: vec![first], now, items };
        job.input(&Input::Woke);
        job
    }

    /// Gives the job an input, and the items of its map when it reads them.
    pub(crate) fn input(&mut self, input: &Input) {
        self.now = self.now.after(Duration::from_millis(700));
        self.records.extend(react(&mut self.job, input, self.now).records);
        let mut steps = StepId::all().zip(&self.job.steps);
        let reading = steps.find(|(_, state)| matches!(state.stage, StepStage::Reading(_)));
        if let Some((step, _)) = reading {
            let items = (0..self.items).map(|item| NewItem {
                // Names repeat, and some begin like others.
                identity: format!("item-{}", item / 2),
                input: format!("{{\"n\": {item}}}"),
            });
            let items = items.collect();
            self.input(&Input::ItemsRead { step, items, warning: None });
        }
    }

    pub(crate) fn start(&mut self, item: ItemId) {
        self.input(&Input::Start { item, refused: None, gate: BreakerAnswer::NoBreaker });
    }

    pub(crate) fn end(&mut self, start: StartId, failure: Option<FailureCause>) {
        let error = failure.map_or_else(String::new, |it| format!("failed {}: {it:?}", start.0));
        self.input(&Input::Ended(Box::new(AttemptEnd {
            start,
            failure,
            took: Duration::from_millis(3),
            error,
            ..AttemptEnd::default()
        })));
    }

    pub(crate) fn version(&self) -> Version {
        Version::EMPTY.after(self.records.len())
    }

    /// A store with the first records of the job.
    pub(crate) fn store(&self, records: usize) -> MemoryStore {
        let store = MemoryStore::new();
        append(&store, &self.records[..records], 0);
        store
    }
}

/// Appends records to the journal of the job.
pub(crate) fn append(store: &MemoryStore, records: &[Record], after: usize) {
    let records: Vec<_> = records.iter().map(Record::encode).collect();
    if !records.is_empty() {
        let append =
            Append::new(aggregate("a").unwrap(), Version::EMPTY.after(after), Epoch::UNCLAIMED, records);
        store.append(vec![append]).unwrap();
    }
}
