//! Runs the checks, and the helpers with which they are written.

use std::fmt::Debug;
use std::sync::mpsc;

use super::{concurrency, facts, journals, model, ownership, requests, snapshots, trim};
use crate::{AggregateId, Append, AppendError, Epoch, Findings, Question, Store, Version};

/// A store on which any number of handles can be opened.
pub struct Reopenable(Box<dyn Fn() -> Box<dyn Store> + Send + Sync>);

impl Reopenable {
    /// Takes the function that opens a handle on the store, which must be empty.
    pub fn new(open: impl Fn() -> Box<dyn Store> + Send + Sync + 'static) -> Self {
        Self(Box::new(open))
    }

    pub fn open(&self) -> Box<dyn Store> {
        (self.0)()
    }
}

/// A promise, and the check of it.
pub(super) type ConformanceCheck = (&'static str, fn(&Reopenable));

/// Runs every check, each on a new store from `make`.
pub fn run_all(make: impl Fn() -> Reopenable) {
    let all = [
        journals::CHECKS,
        facts::CHECKS,
        trim::CHECKS,
        ownership::CHECKS,
        requests::CHECKS,
        snapshots::CHECKS,
        concurrency::CHECKS,
    ];
    for (promise, check) in all.into_iter().flatten() {
        // Shown by the test runner if the check panics.
        println!("promise: {promise}");
        check(&make());
    }
    run_model(make, 0..8);
}

/// Compares a store with a naive model over random operations, in one run for each seed.
pub fn run_model(make: impl Fn() -> Reopenable, seeds: impl IntoIterator<Item = u64>) {
    for seed in seeds {
        println!("promise: the store agrees with the model (seed {seed})");
        model::compare(&make(), seed);
    }
}

pub(super) fn findings(store: &dyn Store, question: Question) -> Findings {
    let (sender, receiver) = mpsc::channel();
    store.ask(question, Box::new(move |found| drop(sender.send(found))));
    receiver.recv().unwrap().unwrap()
}

pub(super) fn job(id: &str) -> AggregateId {
    AggregateId::new("job", id).unwrap()
}

/// An append to a job that was never claimed.
pub(super) fn unclaimed(id: &str, expected: u64, records: &[&str]) -> Append {
    owned(id, expected, Epoch::UNCLAIMED, records)
}

/// An append under a claim.
pub(super) fn owned(id: &str, expected: u64, epoch: Epoch, records: &[&str]) -> Append {
    Append::new(job(id), Version(expected), epoch, bytes(records))
}

pub(super) fn facts(id: &str, records: &[&str]) -> Append {
    Append::facts(job(id), bytes(records))
}

fn bytes(records: &[&str]) -> Vec<Vec<u8>> {
    records.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// All records of a job that was never trimmed, as text.
pub(super) fn texts(store: &dyn Store, id: &str) -> Vec<String> {
    let records = remaining(store, id, 0);
    let first = records.first().map(|(version, _)| *version);
    assert!(first.is_none_or(|first| first == 1), "{first:?} is first");
    records.into_iter().map(|(_, text)| text).collect()
}

/// The records of a job after a version that were not trimmed, with their versions, as text.
pub(super) fn remaining(store: &dyn Store, id: &str, after: u64) -> Vec<(u64, String)> {
    let records = store.read(&job(id), Version(after)).unwrap();
    let mut last = None;
    records
        .map(|record| {
            let (Version(version), bytes) = record.unwrap();
            let follows = last.is_none_or(|last| version == last + 1);
            assert!(follows, "{version} follows {last:?}");
            last = Some(version);
            (version, String::from_utf8(bytes).unwrap())
        })
        .collect()
}

pub(super) fn version(store: &dyn Store, id: &str) -> u64 {
    store.head(&job(id)).unwrap().map_or(0, |head| head.version.0)
}

/// Fails unless the append was a conflict; returns the version that was found.
pub(super) fn conflict(result: Result<Vec<Version>, AppendError>) -> u64 {
    match result {
        Err(AppendError::Conflict { found, .. }) => found.0,
        other => panic!("expected a conflict, got {other:?}"),
    }
}

/// Fails unless the append was fenced; returns the current epoch.
pub(super) fn fence<T: Debug>(result: Result<T, AppendError>) -> Epoch {
    match result {
        Err(AppendError::Fenced { current, .. }) => current,
        other => panic!("expected to be fenced, got {other:?}"),
    }
}
