//! Where a check happens, and the short words checks are written in.

use std::fmt::Debug;
use std::sync::mpsc;

use super::{concurrency, facts, journals, model, ownership, requests, snapshots, trim};
use crate::aggregate::AggregateId;
use crate::append::{Append, AppendError};
use crate::requests::{Findings, Question};
use crate::store::Store;
use crate::version::{Epoch, Version};

/// Journals that any number of handles can be opened on.
pub struct Reopenable(Box<dyn Fn() -> Box<dyn Store> + Send + Sync>);

impl Reopenable {
    /// A place whose handles are opened so. Nothing may be kept there yet.
    pub fn new(open: impl Fn() -> Box<dyn Store> + Send + Sync + 'static) -> Self {
        Self(Box::new(open))
    }

    /// Opens one more handle.
    pub fn open(&self) -> Box<dyn Store> {
        (self.0)()
    }
}

/// A check, and the promise it is about.
pub(super) type ConformanceCheck = (&'static str, fn(&Reopenable));

/// Runs every check; `make` makes a place that is empty.
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

/// Compares a store with a naive model, over runs of chance operations; one run for each seed.
pub fn run_model(make: impl Fn() -> Reopenable, seeds: impl IntoIterator<Item = u64>) {
    for seed in seeds {
        println!("promise: the store does what the model does (seed {seed})");
        model::compare(&make(), seed);
    }
}

/// What an event loop with this handle would find.
pub(super) fn findings(store: &dyn Store, question: Question) -> Findings {
    let (tell, told) = mpsc::channel();
    store.ask(question, Box::new(move |found| drop(tell.send(found))));
    told.recv().unwrap().unwrap()
}

/// The job of this name.
pub(super) fn job(id: &str) -> AggregateId {
    AggregateId::new("job", id).unwrap()
}

/// An append by nobody in particular.
pub(super) fn unclaimed(id: &str, expected: u64, records: &[&str]) -> Append {
    owned(id, expected, Epoch::UNCLAIMED, records)
}

/// An append under a claim.
pub(super) fn owned(id: &str, expected: u64, epoch: Epoch, records: &[&str]) -> Append {
    Append::new(job(id), Version(expected), epoch, bytes(records))
}

/// Facts for a job, wherever its journal ends.
pub(super) fn facts(id: &str, records: &[&str]) -> Append {
    Append::facts(job(id), bytes(records))
}

fn bytes(records: &[&str]) -> Vec<Vec<u8>> {
    let records = records.iter().map(|text| text.as_bytes().to_vec());
    records.collect()
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

/// The version of a job's journal.
pub(super) fn version(store: &dyn Store, id: &str) -> u64 {
    store.head(&job(id)).unwrap().map_or(0, |head| head.version.0)
}

/// Fails unless the append was a conflict; says with which version.
pub(super) fn conflict(result: Result<Vec<Version>, AppendError>) -> u64 {
    match result {
        Err(AppendError::Conflict { found, .. }) => found.0,
        other => panic!("expected a conflict, got {other:?}"),
    }
}

/// Fails unless the append was fenced; says by which epoch.
pub(super) fn fence<T: Debug>(result: Result<T, AppendError>) -> Epoch {
    match result {
        Err(AppendError::Fenced { current, .. }) => current,
        other => panic!("expected to be fenced, got {other:?}"),
    }
}
