//! Runs the checks, each on a place of its own.

use super::{Reopenable, concurrency, facts, journals, model, ownership, requests, snapshots, trim};

/// A check, and the promise it is about.
pub(super) type Check = (&'static str, fn(&Reopenable));

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
