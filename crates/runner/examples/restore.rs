//! How long it takes to restore a job with many pending retries, and what they cost.
//!
//! `cargo run --release -p undaunted-runner --example restore -- 1000000`
//!
//! Writes the journal of a map whose items have all failed once and wait, and then reads it as a
//! process does that goes on with the job.

use std::error::Error;
use std::time::{Duration, Instant};

use undaunted_engine::decide::react;
use undaunted_engine::effect;
use undaunted_engine::event::{Event, NewItem, Record, Submitted};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::Job;
use undaunted_policy::{Cause, Timestamp};
use undaunted_runner::journal;
use undaunted_store::{AggregateId, Append, SqliteStore, Store, Version};

const WORKFLOW: &str = "
mode: mapreduce
map:
  input: items.txt
  max_parallel: 100000000
  agent_template:
    - shell: 'false'
      retry_config: {attempts: 5, initial_delay: 1h, max_delay: 1d, jitter: true}
";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = arguments.first().and_then(|number| number.parse().ok());
    let number: u32 = number.unwrap_or(1_000_000);
    if let [_, folder] = arguments.as_slice() {
        let began = Instant::now();
        let records = write(folder.as_ref(), number)?;
        println!("{records} records written in {:.2?}", began.elapsed());
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    // In a process of its own, so that what it used is not taken for what restoring uses.
    let mut writer = std::process::Command::new(std::env::current_exe()?);
    let written = writer.arg(number.to_string()).arg(folder.path()).status()?;
    assert!(written.success(), "the journal was not written");
    let size = std::fs::metadata(folder.path().join("undaunted.db"))?.len();
    println!(
        "{} bytes on the disk for each item",
        size / u64::from(number)
    );

    let store = SqliteStore::open(folder.path())?;
    let before = resident()?;
    let began = Instant::now();
    let held = journal::claim(&store, "measured")?;
    let mut job = held.job;
    let resumed = react(
        &mut job,
        &Input::Resume { seen: None },
        Timestamp::from_millis(2_000_000),
    );
    let next = effect::next_wake(&job, Timestamp::from_millis(2_000_000));
    println!("restored in {:.2?}, next wake {next:?}", began.elapsed());
    println!("{} records to resume", resumed.len());
    let waiting: usize = job.steps.iter().map(|step| step.waiting.len()).sum();
    let used = resident()?.saturating_sub(before);
    println!(
        "{waiting} wait; {} bytes of memory for each",
        used * 1024 / u64::from(number)
    );
    Ok(())
}

fn write(folder: &std::path::Path, number: u32) -> Result<u64, Box<dyn Error>> {
    let store = SqliteStore::open(folder)?;
    let aggregate = AggregateId::new(journal::FAMILY, "measured")?;
    let claim = store.claim(&aggregate)?;
    let mut version = Version::default();
    let mut append = |records: &[Record]| -> Result<(), Box<dyn Error>> {
        let records: Vec<Vec<u8>> = records.iter().map(Record::encode).collect();
        let append = Append::new(aggregate.clone(), version, claim.epoch, records);
        version = append.reaches();
        Ok(store.append(vec![append])?)
    };
    let first = Record {
        at: Timestamp::from_millis(1_000_000),
        event: Event::JobSubmitted(Box::new(Submitted {
            job: "measured".to_owned(),
            text: WORKFLOW.to_owned(),
            parallel: vec![(0, u32::MAX)],
            ..Submitted::default()
        })),
    };
    let mut job = Job::begin(&first)?;
    append(&[first])?;
    let now = Timestamp::from_millis(1_000_000);
    append(&react(&mut job, &Input::Woke, now))?;
    let items = (0..number).map(|item| NewItem {
        identity: item.to_string(),
        input: item.to_string(),
    });
    let items = Input::ItemsRead {
        step: 0,
        items: items.collect(),
    };
    append(&react(&mut job, &items, now))?;
    let mut batch = Vec::new();
    for item in 0..number {
        let (step, refused) = (0, None);
        let start = Input::Start {
            step,
            item,
            refused,
        };
        batch.extend(react(&mut job, &start, now));
        let end = Input::Ended(Box::new(AttemptEnd {
            start: u64::from(item) + 1,
            failure: Some(Cause::Exit(1)),
            took: Duration::from_millis(3),
            error: "no answer from the other side".to_owned(),
            ..AttemptEnd::default()
        }));
        batch.extend(react(&mut job, &end, now));
        if batch.len() > 4000 || item + 1 == number {
            append(&batch)?;
            batch.clear();
        }
    }
    Ok(version.0)
}

fn resident() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(number.unwrap_or("0").parse()?)
}
