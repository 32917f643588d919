//! A job in the model of processes: its journal on the disk, and what its process has made of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use undaunted_engine::breaker::BreakerRecord;
use undaunted_engine::event::{Event, ItemEvent, Record};
use undaunted_engine::id::{ItemId, StartId};
use undaunted_engine::job::Job;
use undaunted_engine::law::{violations_by_record, violations_in_state};
use undaunted_engine::workflow::Operator;
use undaunted_policy::Ticket;

use crate::scene::submitted;

/// Records of a job and facts for breakers that are written together.
pub(crate) struct Batch {
    pub(crate) seq: u64,
    pub(crate) records: Vec<Record>,
    pub(crate) facts: Vec<(Arc<str>, BreakerRecord)>,
}

/// A job: what is on the disk, and what its process has made of it.
pub(crate) struct Run {
    pub(crate) job: Job,
    pub(crate) journal: Vec<Record>,
    /// What the journal comes to.
    pub(crate) found: Job,
    /// Starts on the disk that a breaker let through.
    pub(crate) passes: BTreeMap<StartId, (Arc<str>, Ticket)>,
    /// Records that were not handed over, and batches that were, oldest first.
    pub(crate) pending: Vec<Record>,
    pub(crate) batches: VecDeque<Batch>,
    /// Attempts that have begun and not ended.
    pub(crate) begun: BTreeSet<StartId>,
    /// The process that runs it.
    pub(crate) owner: Option<usize>,
}

impl Run {
    pub(crate) fn of(number: usize, text: &str, owner: usize) -> Self {
        let id = format!("job{number:02}");
        let seed = u64::try_from(number).unwrap() << 56;
        let record = submitted(&id, text, seed, &Operator::default());
        Self {
            job: Job::begin(&record).unwrap(),
            found: Job::begin(&record).unwrap(),
            journal: vec![record],
            passes: BTreeMap::new(),
            pending: Vec::new(),
            batches: VecDeque::new(),
            begun: BTreeSet::new(),
            owner: Some(owner),
        }
    }

    /// How many records its journal has when all that was handed over is written.
    pub(crate) fn handed_over(&self) -> u64 {
        let batches = self.batches.iter().map(|batch| batch.records.len());
        let many = self.journal.len() + batches.sum::<usize>();
        u64::try_from(many).unwrap()
    }

    pub(crate) fn take_to_disk(&mut self, records: Vec<Record>) {
        for record in records {
            let read = Record::decode(&record.encode()).unwrap();
            assert_eq!(read, record);
            assert_eq!(violations_by_record(&self.found, &record), []);
            self.found.apply(&record);
            if let Event::Item(ItemEvent::AttemptStarted(started)) = &record.event
                && let Some(pass) = &started.pass
            {
                let name = Arc::from(self.found.texts.read(&pass.breaker));
                self.passes.insert(started.start, (name, pass.ticket()));
            }
            self.journal.push(record);
        }
        assert_eq!(violations_in_state(&self.found), []);
    }

    /// How many attempts that breakers let through have ended in its journal, and how many probes have
    /// started, by breaker.
    pub(crate) fn results(&self) -> BTreeMap<Arc<str>, [u32; 2]> {
        let mut running: BTreeMap<ItemId, StartId> = BTreeMap::new();
        let mut results: BTreeMap<Arc<str>, [u32; 2]> = BTreeMap::new();
        for record in &self.journal {
            let ended = match &record.event {
                Event::Item(ItemEvent::AttemptStarted(started)) => {
                    running.insert(started.of.item(), started.start);
                    if let Some((name, ticket)) = self.passes.get(&started.start) {
                        results.entry(Arc::clone(name)).or_default()[1] += u32::from(ticket.probe);
                    }
                    continue;
                }
                Event::Item(ItemEvent::AttemptSucceeded(done)) => done.of,
                Event::Item(ItemEvent::AttemptFailed(failed)) => failed.of,
                _ => continue,
            };
            let start = running.remove(&ended.item()).unwrap();
            if let Some((name, _)) = self.passes.get(&start) {
                results.entry(Arc::clone(name)).or_default()[0] += 1;
            }
        }
        results.retain(|_, counts| *counts != [0, 0]);
        results
    }

    /// Whether all it was told is on the disk.
    pub(crate) fn is_written(&self) -> bool {
        self.batches.is_empty() && self.pending.is_empty()
    }
}
