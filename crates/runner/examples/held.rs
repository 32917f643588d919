//! Writes a store with a job all of whose items wait: either a breaker holds them, or each has failed once
//! and its retry is due in an hour. For `bench/run`.
//!
//! `cargo run --release -p undaunted-runner --example held -- FOLDER 1000000 held|waiting`

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use undaunted_engine::breaker::{BreakerAnswer, BreakerFact, BreakerRecord};
use undaunted_engine::decide::react;
use undaunted_engine::event::{Event, JobEvent, JobSubmitted, NewItem, Record};
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::Job;
use undaunted_policy::{FailureCause, Timestamp};
use undaunted_runner::{breakers, journal};
use undaunted_store::{AggregateId, Append, Epoch, SqliteStore, Store, Version};

const HELD: &str = "breaker: {name: api, recovery_timeout: 30d}";

/// Most are due between 42 and 78 minutes after they failed.
const WAITING: &str = "retry_config: {attempts: 5, initial_delay: 1h, max_delay: 1d, jitter: true}";

/// A map whose command has this setting.
fn workflow(setting: &str) -> String {
    format!(
        "
mode: mapreduce
map:
  input: items.txt
  max_parallel: 100000000
  agent_template:
    - shell: 'true'
      {setting}
"
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [folder, number, kind @ ("held" | "waiting")] = arguments.as_slice() else {
        return Err("held FOLDER NUMBER held|waiting".into());
    };
    let number: u32 = number.parse()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let now = Timestamp::ZERO.after(now);
    let is_held = *kind == "held";
    let text = workflow(if is_held { HELD } else { WAITING });
    let store = SqliteStore::open(folder.as_ref())?;
    let width = if is_held { u32::MAX } else { 1000 };
    let mut journal = MeasuredJob::begin(&store, (&text, width), number, now)?;
    let gate = if is_held { open_breaker(&store, &journal.job, now)? } else { BreakerAnswer::NoBreaker };
    journal.fill(&gate, number)
}

/// Opens the breaker, and returns its answer from then on.
fn open_breaker(store: &SqliteStore, job: &Job, at: Timestamp) -> Result<BreakerAnswer, Box<dyn Error>> {
    let settings = job.plan().breakers().remove("api").unwrap_or_default();
    let facts = vec![BreakerFact::Configured { at, settings }, BreakerFact::Tripped { at }];
    let opened = BreakerRecord::by_hand(facts).encode();
    store.append(vec![Append::facts(breakers::aggregate("api")?, vec![opened])])?;
    Ok(BreakerAnswer::Held {
        breaker: "api".into(),
        until: Some(at.after(settings.recovery_timeout)),
        longest: settings.max_hold,
    })
}

/// A job and its journal.
struct MeasuredJob<'s> {
    store: &'s SqliteStore,
    aggregate: AggregateId,
    epoch: Epoch,
    version: Version,
    job: Job,
    now: Timestamp,
}

impl<'s> MeasuredJob<'s> {
    /// Writes the submission and the items.
    fn begin(
        store: &'s SqliteStore,
        (text, width): (&str, u32),
        number: u32,
        now: Timestamp,
    ) -> Result<Self, Box<dyn Error>> {
        let aggregate = AggregateId::new(journal::FAMILY, "measured")?;
        let claim = store.claim(&aggregate)?;
        let first = Record {
            at: now,
            event: Event::Job(JobEvent::Submitted(Box::new(JobSubmitted {
                job: "measured".to_owned(),
                text: text.into(),
                working_dir: "/".to_owned(),
                parallel: vec![(StepId(0), width)],
                ..JobSubmitted::default()
            }))),
        };
        let mut journal = Self {
            store,
            aggregate,
            epoch: claim.epoch,
            version: Version::EMPTY,
            job: Job::begin(&first)?,
            now,
        };
        journal.append(&[first])?;
        journal.feed(&Input::Woke)?;
        let items = (0..number)
            .map(|item| NewItem { identity: format!("item-{item}"), input: format!("\"item-{item}\"") });
        let items = Input::ItemsRead { step: StepId(0), items: items.collect(), warning: None };
        journal.feed(&items)?;
        Ok(journal)
    }

    /// Starts every item, and has it fail unless it is held.
    fn fill(&mut self, gate: &BreakerAnswer, number: u32) -> Result<(), Box<dyn Error>> {
        let fails = *gate == BreakerAnswer::NoBreaker;
        let mut batch = Vec::new();
        for item in 0..number {
            let start = Input::Start { item: StepId(0).item(item), refused: None, gate: gate.clone() };
            batch.extend(react(&mut self.job, &start, self.now).records);
            if fails {
                let end = Input::Ended(Box::new(AttemptEnd {
                    start: StartId(u64::from(item) + 1),
                    failure: Some(FailureCause::Exit(1)),
                    took: Duration::from_millis(3),
                    error: "no answer from the other side".to_owned(),
                    ..AttemptEnd::default()
                }));
                batch.extend(react(&mut self.job, &end, self.now).records);
            }
            if batch.len() > 4000 || item + 1 == number {
                self.append(&batch)?;
                batch.clear();
            }
        }
        let waiting: usize = self.job.steps.iter().map(|step| step.waiting.len()).sum();
        let held = self.job.held_by("api");
        println!("{waiting} items wait, {held} are held");
        Ok(())
    }

    fn feed(&mut self, input: &Input) -> Result<(), Box<dyn Error>> {
        let reaction = react(&mut self.job, input, self.now);
        self.append(&reaction.records)
    }

    fn append(&mut self, records: &[Record]) -> Result<(), Box<dyn Error>> {
        let records: Vec<Vec<u8>> = records.iter().map(Record::encode).collect();
        let append = Append::new(self.aggregate.clone(), self.version, self.epoch, records);
        self.version = append.reaches(self.version);
        self.store.append(vec![append])?;
        Ok(())
    }
}
