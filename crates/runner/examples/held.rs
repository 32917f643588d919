//! Writes the store of a job all of whose items a breaker holds, for `bench/held`.
//!
//! `cargo run --release -p undaunted-runner --example held -- FOLDER 1000000`

use std::error::Error;
use std::time::{SystemTime, UNIX_EPOCH};

use undaunted_engine::breaker::{BreakerRecord, BreakerState};
use undaunted_engine::decide::react;
use undaunted_engine::event::{Event, NewItem, Record, Submitted};
use undaunted_engine::input::Input;
use undaunted_engine::job::Job;
use undaunted_policy::{BreakerSettings, Timestamp};
use undaunted_runner::{breakers, journal};
use undaunted_store::{AggregateId, Append, Epoch, SqliteStore, Store, Version};

const WORKFLOW: &str = "
mode: mapreduce
map:
  input: items.txt
  max_parallel: 100000000
  agent_template:
    - shell: 'true'
      breaker: {name: api, recovery_timeout: 30d}
";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, number] = arguments.as_slice() else {
        return Err("held FOLDER NUMBER".into());
    };
    let number: u32 = number.parse()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let now = Timestamp::ZERO.after(now);
    let store = SqliteStore::open(folder.as_ref())?;
    let aggregate = AggregateId::new(journal::FAMILY, "measured")?;
    let claim = store.claim(&aggregate)?;
    let first = Record {
        at: now,
        event: Event::JobSubmitted(Box::new(Submitted {
            job: "measured".to_owned(),
            text: WORKFLOW.to_owned(),
            working_dir: "/".to_owned(),
            parallel: vec![(0, u32::MAX)],
            ..Submitted::default()
        })),
    };
    let mut job = Job::begin(&first)?;
    let settings = job.plan().breakers().remove("api");
    let mut breaker = BreakerState::with(settings.unwrap_or(BreakerSettings::DEFAULT));
    let opened = BreakerRecord {
        at: now,
        change: breaker.trip(now),
        job: None,
        state: breaker.clone(),
    };
    let opened = vec![opened.encode()];
    store.append(vec![Append::new(
        breakers::aggregate("api")?,
        Version::EMPTY,
        Epoch::default(),
        opened,
    )])?;
    job.learn("api", breaker, now);
    hold(&store, &aggregate, claim.epoch, job, first, number)
}

/// Writes the journal: the submission, the items, and that each of them is held.
fn hold(
    store: &SqliteStore,
    aggregate: &AggregateId,
    epoch: Epoch,
    mut job: Job,
    first: Record,
    number: u32,
) -> Result<(), Box<dyn Error>> {
    let now = first.at;
    let mut version = Version::EMPTY;
    let mut append = |records: &[Record]| -> Result<(), Box<dyn Error>> {
        let records: Vec<Vec<u8>> = records.iter().map(Record::encode).collect();
        let append = Append::new(aggregate.clone(), version, epoch, records);
        version = append.reaches();
        Ok(store.append(vec![append])?)
    };
    append(&[first])?;
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
        if batch.len() > 4000 || item + 1 == number {
            append(&batch)?;
            batch.clear();
        }
    }
    println!("{} items are held", job.held_by("api"));
    Ok(())
}
