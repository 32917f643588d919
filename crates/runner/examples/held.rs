//! Writes a store with a job all of whose items wait: either a breaker holds them, or each has failed once
//! and its retry is due in an hour. For `bench/run`. With `due`, all retries fall due at one instant, soon after
//! the store is written; then the job is resumed here, and the lateness of its starts is printed.
//!
//! `cargo run --release -p undaunted-runner --example held -- FOLDER 1000000 held|waiting|due`

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use undaunted_engine::breaker::{BreakerAnswer, BreakerFact, BreakerRecord};
use undaunted_engine::decide::react;
use undaunted_engine::event::{Event, JobEvent, JobSubmitted, NewItem, Record};
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::Job;
use undaunted_policy::{FailureCause, FailureClass, Timestamp};
use undaunted_runner::embed::{FunctionAttempt, Functions, Runner};
use undaunted_runner::{breakers, journal};
use undaunted_store::{AggregateId, Append, Epoch, SqliteStore, Store, Version};

const HELD: &str = "breaker: {name: api, recovery_timeout: 30d}";

/// Most are due between 42 and 78 minutes after they failed.
const WAITING: &str = "retry_config: {attempts: 5, initial_delay: 1h, max_delay: 1d, jitter: true}";

const DUE: &str = "retry_config: {attempts: 3, max_retry_after: 1d}";

/// How many items run at a time while they are measured, and so can share a sync.
const DUE_WIDTH: u32 = 1024;

/// A map with this command and this setting.
fn workflow(command: &str, setting: &str) -> String {
    format!(
        "
mode: mapreduce
map:
  input: items.txt
  max_parallel: 100000000
  agent_template:
    - {command}
      {setting}
"
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [folder, number, kind] = arguments.as_slice() else {
        return Err("held FOLDER NUMBER held|waiting|due".into());
    };
    let (folder, number) = (Path::new(folder), number.parse()?);
    let (shell, failure) = ("shell: 'true'", FailureCause::Exit(1));
    match *kind {
        "held" => {
            let text = workflow(shell, HELD);
            write(folder, (&text, u32::MAX), number, None)
        }
        "waiting" => {
            let text = workflow(shell, WAITING);
            write(folder, (&text, 1000), number, Some((failure, None)))
        }
        "due" => {
            let text = workflow("function: item", DUE);
            // Enough time to write the store.
            let wait =
                Duration::from_secs(5).saturating_add(Duration::from_micros(40).saturating_mul(number));
            let due = wall().saturating_add(wait);
            let failure = FailureCause::Other(FailureClass::Throttled);
            write(folder, (&text, DUE_WIDTH), number, Some((failure, Some(due))))?;
            run(folder, number, due)
        }
        _ => Err("the last argument is held, waiting or due".into()),
    }
}

fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// How every item fails, and since 1970, when its retry is due if the target says so.
type Failed = (FailureCause, Option<Duration>);

/// Writes the store. Items that do not fail are held by a breaker.
fn write(
    folder: &Path,
    submission: (&str, u32),
    number: u32,
    failed: Option<Failed>,
) -> Result<(), Box<dyn Error>> {
    let now = Timestamp::ZERO.after(wall());
    let store = SqliteStore::open(folder)?;
    let mut journal = MeasuredJob::begin(&store, submission, number, now)?;
    let gate = match failed {
        Some(_) => BreakerAnswer::NoBreaker,
        None => open_breaker(&store, &journal.job, now)?,
    };
    journal.fill(&gate, number, failed)
}

/// Resumes the job and prints how late its items started. Every item must start once.
fn run(folder: &Path, number: u32, due: Duration) -> Result<(), Box<dyn Error>> {
    let late: Arc<[AtomicU64]> = (0..number).map(|_| AtomicU64::new(0)).collect();
    let times = Arc::clone(&late);
    let functions = Functions::new().with("item", move |attempt: FunctionAttempt| {
        let late = u64::try_from(wall().saturating_sub(due).as_nanos()).unwrap_or(u64::MAX);
        let index = attempt.item().strip_prefix("item-").and_then(|index| index.parse::<usize>().ok());
        if let Some(time) = index.and_then(|index| times.get(index)) {
            time.fetch_add(late.max(1), Ordering::Relaxed);
        }
        async { Ok(Value::Null) }
    });
    let runner = Runner::open(folder, functions)?;
    let job = runner.resume("measured")?;
    let left = due.saturating_sub(wall());
    if left.is_zero() {
        return Err("the retries fell due before the store was written".into());
    }
    println!("they are due in {:.1} s", left.as_secs_f64());
    let attempts = job.wait()?.report().attempts;
    let mut late: Vec<Duration> =
        late.iter().map(|time| Duration::from_nanos(time.load(Ordering::Relaxed))).collect();
    late.sort();
    let missing = late.iter().take_while(|late| late.is_zero()).count();
    let last = late.len().saturating_sub(1);
    let [median, most, last] = [last / 2, last.saturating_sub(last / 100), last]
        .map(|place| late.get(place).copied().unwrap_or_default().as_secs_f64());
    println!("late: median {median:.2} s, 99 % {most:.2} s, last {last:.2} s");
    println!("{missing} lost, {attempts} attempts of {number} items");
    Ok(())
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
    fn fill(
        &mut self,
        gate: &BreakerAnswer,
        number: u32,
        failed: Option<Failed>,
    ) -> Result<(), Box<dyn Error>> {
        let mut batch = Vec::new();
        for item in 0..number {
            let start = Input::Start { item: StepId(0).item(item), refused: None, gate: gate.clone() };
            batch.extend(react(&mut self.job, &start, self.now).records);
            if let Some((failure, due)) = failed {
                let end = Input::Ended(Box::new(AttemptEnd {
                    start: StartId(u64::from(item) + 1),
                    failure: Some(failure),
                    retry_after: due.map(|due| Timestamp::ZERO.after(due).since(self.now)),
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
