//! The engine's work for an attempt: decide, apply, make the task, encode and decode the records.

use std::hint::black_box;
use std::time::Duration;

use undaunted_engine::breaker::BreakerAnswer;
use undaunted_engine::decide::react;
use undaunted_engine::event::{Event, ItemEvent, JobEvent, JobSubmitted, NewItem, Record};
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::Job;
use undaunted_engine::task::{ValueFiles, task};
use undaunted_policy::{FailureCause, FailureClass, Timestamp};

use crate::Failure;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Enough items for any number of rounds, so that all rounds use the same job.
const ITEMS: u32 = 4_000;

const WORKFLOW: &str = "
mode: mapreduce
map:
  input: items.txt
  max_parallel: 100000
  agent_template:
    - shell: fetch ${item}
      retry_config: {attempts: 5, backoff: exponential, initial_delay: 1s, jitter: true}
";

/// A job with this many items, whose map has started.
fn job(items: u32) -> Result<Job, Failure> {
    let submitted = Record {
        at: NOW,
        event: Event::Job(JobEvent::Submitted(Box::new(JobSubmitted {
            job: "counted".to_owned(),
            text: WORKFLOW.to_owned().into(),
            working_dir: "/".to_owned(),
            parallel: vec![(StepId(0), u32::MAX)],
            ..JobSubmitted::default()
        }))),
    };
    let mut job = Job::begin(&submitted)?;
    drop(react(&mut job, &Input::Woke, NOW));
    let items = (0..items)
        .map(|item| NewItem { identity: format!("item-{item}"), input: format!("\"item-{item}\"") });
    let items = items.collect();
    drop(react(&mut job, &Input::ItemsRead { step: StepId(0), items, warning: None }, NOW));
    Ok(job)
}

fn start(job: &mut Job, item: u32) -> Vec<Record> {
    let input = Input::Start { item: StepId(0).item(item), refused: None, gate: BreakerAnswer::NoBreaker };
    react(job, &input, NOW).records
}

fn end(job: &mut Job, start: StartId, failure: Option<FailureCause>) -> Vec<Record> {
    let error = failure.map_or("", |_| "the server is away");
    let end = AttemptEnd {
        start,
        failure,
        took: Duration::from_millis(12),
        error: error.to_owned(),
        ..AttemptEnd::default()
    };
    react(job, &Input::Ended(Box::new(end)), NOW).records
}

const TRANSIENT: Option<FailureCause> = Some(FailureCause::Other(FailureClass::Transient));

/// Runs the first attempt of every item to this end and returns the records.
fn attempts(job: &mut Job, items: u32, failure: Option<FailureCause>) -> Result<Vec<Record>, Failure> {
    let mut records = Vec::new();
    for item in 0..items {
        records.extend(start(job, item));
        records.extend(end(job, first(&records)?, failure));
    }
    Ok(records)
}

/// The id of the last recorded start.
fn first(records: &[Record]) -> Result<StartId, Failure> {
    let started = records.iter().rev().find_map(|record| match &record.event {
        Event::Item(ItemEvent::AttemptStarted(started)) => Some(started.start),
        _ => None,
    });
    Ok(started.ok_or("nothing was started")?)
}

pub(crate) fn succeed(rounds: u32) -> Result<(), Failure> {
    let mut job = job(ITEMS)?;
    black_box(attempts(&mut job, rounds, None)?);
    Ok(())
}

pub(crate) fn fail(rounds: u32) -> Result<(), Failure> {
    let mut job = job(ITEMS)?;
    black_box(attempts(&mut job, rounds, TRANSIENT)?);
    Ok(())
}

pub(crate) fn task_of(rounds: u32) -> Result<(), Failure> {
    let job = job(ITEMS)?;
    for item in 0..rounds {
        black_box(task(&job, StepId(0).item(item), ValueFiles::default(), NOW)?);
    }
    Ok(())
}

/// The records of one attempt.
fn records_of(failure: Option<FailureCause>) -> Result<Vec<Record>, Failure> {
    // One more item, so that the job does not end.
    let mut job = job(3)?;
    let records = attempts(&mut job, 2, failure)?;
    // The records of the first attempt may have more content.
    let second =
        records.iter().rposition(|record| matches!(record.event, Event::Item(ItemEvent::AttemptStarted(_))));
    Ok(records.get(second.unwrap_or_default()..).unwrap_or_default().to_vec())
}

pub(crate) fn encode(rounds: u32) -> Result<(), Failure> {
    let records = records_of(None)?;
    for _ in 0..rounds {
        for record in &records {
            black_box(black_box(record).encode());
        }
    }
    Ok(())
}

fn decode_all(rounds: u32, failure: Option<FailureCause>) -> Result<(), Failure> {
    let records = records_of(failure)?;
    let encoded: Vec<Vec<u8>> = records.iter().map(Record::encode).collect();
    for _ in 0..rounds {
        for bytes in &encoded {
            black_box(Record::decode(black_box(bytes))?);
        }
    }
    Ok(())
}

pub(crate) fn decode(rounds: u32) -> Result<(), Failure> {
    decode_all(rounds, None)
}

pub(crate) fn decode_failed(rounds: u32) -> Result<(), Failure> {
    decode_all(rounds, TRANSIENT)
}

pub(crate) fn apply(rounds: u32) -> Result<(), Failure> {
    let mut decided = job(ITEMS)?;
    let records = attempts(&mut decided, ITEMS, TRANSIENT)?;
    let mut folded = job(ITEMS)?;
    let per_item = records.len() / usize::try_from(ITEMS)?.max(1);
    let many = per_item.saturating_mul(usize::try_from(rounds)?);
    for record in records.iter().take(many) {
        folded.apply(black_box(record));
    }
    black_box(folded);
    Ok(())
}
