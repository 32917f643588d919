//! Saved states, and series of failures of commands and breakers.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use undaunted_checks::fuzz::{FuzzTarget, SAVED, policy_decide, policy_restore, run};

use crate::feed::{corpus, fuzz};

#[test]
fn no_mutant_of_a_saved_state_breaks_a_law() {
    fuzz(policy_restore, "policy_restore", 4000);
}

#[test]
fn no_series_of_failures_breaks_a_law() {
    // Without a corpus every input is random bytes, which all mean something here.
    fuzz(policy_decide, "policy_decide", 3000);
}

#[test]
fn the_corpus_holds_an_example_of_every_saved_type() {
    let corpus = corpus("policy_restore");
    let read: BTreeSet<&str> = corpus.iter().flat_map(|it| policy_restore(it)).collect();
    let saved = SAVED.iter().map(|(name, _)| *name);
    let missing: Vec<&str> = saved.filter(|name| !read.contains(name)).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn a_good_part_of_the_mutants_is_still_a_saved_state() {
    static READ: AtomicU64 = AtomicU64::new(0);
    let counted: FuzzTarget = |input| {
        let names = policy_restore(input);
        let some = u64::from(!names.is_empty());
        READ.fetch_add(some, Ordering::Relaxed);
        names
    };
    let corpus = corpus("policy_restore");
    run(counted, &corpus, 1000, 1).expect("no law is broken");
    let read = READ.load(Ordering::Relaxed);
    assert!(read > 250, "only {read} of 1000 inputs were read as anything");
}

#[test]
fn a_run_meets_every_decision_and_every_state_of_a_breaker() {
    let seen = run(policy_decide, &[], 2000, 1).expect("no law is broken");
    let expected = [
        "retry",
        "hold",
        "refused",
        "rule",
        "permanent",
        "attempts",
        "retry_after_exceeds_limit",
        "retry_budget",
        "deadline",
        "job_budget_exhausted",
        "workflow_budget_exhausted",
        "started",
        "held",
        "circuit_open",
        "breaker_opened",
        "breaker_half_opened",
        "breaker_closed",
    ];
    assert_eq!(seen, BTreeSet::from(expected));
}
