//! Writes a store with one job as a runner would, but without running commands.
//!
//! Time is virtual: a thousand items start and end together, and their retries follow when they are due. The
//! last event has the current time.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use undaunted_engine::breaker::BreakerAnswer;
use undaunted_engine::decide::react;
use undaunted_engine::event::{Event, ItemEvent, JobEvent, JobSubmitted, NewItem, Record};
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::Job;
use undaunted_policy::{FailureCause, Timestamp};
use undaunted_runner::journal;
use undaunted_store::{AggregateId, Append, Epoch, SqliteStore, Store, Version};

use crate::mix::{Course, Mix, error};

pub(crate) const JOB: &str = "measured";

const WORKFLOW: &str = "
name: measured
mode: mapreduce
map:
  input: items.txt
  max_parallel: 1000
  agent_template:
    - shell: fetch ${item}
      retry_config: {attempts: 1, backoff: fixed, initial_delay: 5s}
";

/// Items that are started together.
const TOGETHER: u32 = 1000;
/// The time between the starts of two groups of items; retries are due before.
const TURN: Duration = Duration::from_secs(10);
/// Records of one commit.
const COMMIT: usize = 4000;

struct Journal {
    store: SqliteStore,
    aggregate: AggregateId,
    epoch: Epoch,
    version: Version,
    job: Job,
    now: Timestamp,
    batch: Vec<Record>,
}

/// Writes the store of a job with these items.
pub(crate) fn write(folder: &Path, mix: Mix) -> Result<(), Box<dyn Error>> {
    let took = TURN.saturating_mul(mix.items.div_ceil(TOGETHER));
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let begin = Timestamp::ZERO.after(since.saturating_sub(took));
    let mut journal = Journal::begin(folder, begin)?;
    journal.feed(&Input::Woke)?;
    journal.read_items(mix.items)?;
    let mut first = 0;
    while first < mix.items {
        let next = first.saturating_add(TOGETHER).min(mix.items);
        journal.turn(mix, first..next)?;
        first = next;
    }
    journal.commit()?;
    if journal.job.stage.has_ended() == mix.waits {
        return Err(format!("the job is {:?}", journal.job.stage).into());
    }
    Ok(())
}

impl Journal {
    fn begin(folder: &Path, now: Timestamp) -> Result<Self, Box<dyn Error>> {
        let store = SqliteStore::open(folder)?;
        let aggregate = AggregateId::new(journal::FAMILY, JOB)?;
        let epoch = store.claim(&aggregate)?.epoch;
        let first = Record {
            at: now,
            event: Event::Job(JobEvent::Submitted(Box::new(JobSubmitted {
                job: JOB.to_owned(),
                text: WORKFLOW.into(),
                working_dir: "/".to_owned(),
                parallel: vec![(StepId(0), TOGETHER)],
                ..JobSubmitted::default()
            }))),
        };
        Ok(Self {
            store,
            aggregate,
            epoch,
            version: Version::EMPTY,
            job: Job::begin(&first)?,
            now,
            batch: vec![first],
        })
    }

    fn read_items(&mut self, number: u32) -> Result<(), Box<dyn Error>> {
        let items = (0..number)
            .map(|item| NewItem { identity: format!("item-{item}"), input: format!("\"item-{item}\"") });
        let items = items.collect();
        let step = StepId(0);
        self.feed(&Input::ItemsRead { step, items, warning: None })?;
        Ok(())
    }

    /// Runs the first attempts of these items, and the retries of those that fail.
    fn turn(&mut self, mix: Mix, items: std::ops::Range<u32>) -> Result<(), Box<dyn Error>> {
        let started = self.now;
        self.attempts(items.clone(), |item| mix.course(item) != Course::Succeeds)?;
        self.now = self.now.after(Duration::from_secs(6));
        let again = |item: &u32| {
            let course = mix.course(*item);
            matches!(course, Course::SucceedsLater | Course::Dies)
        };
        self.attempts(items.filter(again), |item| mix.course(item) == Course::Dies)?;
        self.now = started.after(TURN);
        Ok(())
    }

    fn attempts(
        &mut self,
        items: impl Iterator<Item = u32>,
        fails: impl Fn(u32) -> bool,
    ) -> Result<(), Box<dyn Error>> {
        let mut running = Vec::new();
        for item in items {
            let start = self.feed(&Input::Start {
                item: StepId(0).item(item),
                refused: None,
                gate: BreakerAnswer::NoBreaker,
            })?;
            running.push((item, start.ok_or("an item was not started")?));
        }
        for (item, start) in running {
            let failed = fails(item);
            self.now = self.now.after(Duration::from_millis(1));
            self.feed(&Input::Ended(Box::new(AttemptEnd {
                start,
                failure: failed.then_some(FailureCause::Exit(1)),
                took: Duration::from_millis(u64::from(item % 900)),
                error: if failed { error(item) } else { String::new() },
                ..AttemptEnd::default()
            })))?;
        }
        Ok(())
    }

    /// Passes an input to the engine and returns the start that it records, if any.
    fn feed(&mut self, input: &Input) -> Result<Option<StartId>, Box<dyn Error>> {
        let records = react(&mut self.job, input, self.now).records;
        let started = records.iter().find_map(|record| match &record.event {
            Event::Item(ItemEvent::AttemptStarted(started)) => Some(started.start),
            _ => None,
        });
        self.batch.extend(records);
        if self.batch.len() >= COMMIT {
            self.commit()?;
        }
        Ok(started)
    }

    fn commit(&mut self) -> Result<(), Box<dyn Error>> {
        let records: Vec<Vec<u8>> = self.batch.iter().map(Record::encode).collect();
        self.batch.clear();
        if !records.is_empty() {
            let append = Append::new(self.aggregate.clone(), self.version, self.epoch, records);
            self.version = append.reaches(self.version);
            self.store.append(vec![append])?;
        }
        Ok(())
    }
}
