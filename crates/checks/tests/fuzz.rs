//! A few seconds of fuzzing in every run, and proof that it would notice.
//!
//! The seed is `UNDAUNTED_FUZZ_SEED`, or else the time, so that every run tries other inputs; a
//! failure names the seed and the command that repeats it. `fuzz/` holds the same targets for
//! `cargo fuzz`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs, io};

use undaunted_checks::fuzz::{SAVED, Target, policy_decide, policy_restore, run};
use undaunted_checks::repository;

#[test]
fn no_mutant_of_a_saved_state_breaks_a_law() {
    fuzz(
        policy_restore,
        &corpus().expect("the corpus can be read"),
        4000,
    );
}

#[test]
fn no_series_of_failures_breaks_a_law() {
    fuzz(policy_decide, &[], 3000);
}

/// Every input that the target may be given breaks no law.
fn fuzz(target: Target, corpus: &[Vec<u8>], inputs: u64) {
    let seed = seed();
    eprintln!("UNDAUNTED_FUZZ_SEED={seed}");
    let outcome = run(target, corpus, inputs, seed);
    if let Err(finding) = &outcome {
        eprintln!("{finding}");
    }
    assert!(
        outcome.is_ok(),
        "a law was broken; see above how to repeat it"
    );
}

fn seed() -> u64 {
    const NAME: &str = "UNDAUNTED_FUZZ_SEED";
    if let Some(given) = env::var_os(NAME) {
        let seed = given.to_str().and_then(|text| text.parse().ok());
        assert!(
            seed.is_some(),
            "{NAME} is {}; accepted is a number from 0 to 2^64-1",
            given.display()
        );
        return seed.unwrap_or_default();
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = now.unwrap_or_default().as_nanos();
    // The low digits are the ones that differ from run to run.
    u64::try_from(nanos % 1_000_000_000_000).unwrap_or_default()
}

/// Every file of the corpus, in the order of their names.
fn corpus() -> io::Result<Vec<Vec<u8>>> {
    let folder = repository().join("crates/checks/corpus/policy_restore");
    let mut paths = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    paths.iter().map(fs::read).collect()
}

#[test]
fn the_corpus_holds_an_example_of_every_saved_type() {
    let corpus = corpus().expect("the corpus can be read");
    let read: BTreeSet<&str> = corpus.iter().flat_map(|it| policy_restore(it)).collect();
    let saved = SAVED.iter().map(|(name, _)| *name);
    let missing: Vec<&str> = saved.filter(|name| !read.contains(name)).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn a_good_part_of_the_mutants_is_still_a_saved_state() {
    static READ: AtomicU64 = AtomicU64::new(0);
    let counted: Target = |input| {
        let names = policy_restore(input);
        let some = u64::from(!names.is_empty());
        READ.fetch_add(some, Ordering::Relaxed);
        names
    };
    let corpus = corpus().expect("the corpus can be read");
    run(counted, &corpus, 1000, 1).expect("no law is broken");
    let read = READ.load(Ordering::Relaxed);
    assert!(
        read > 250,
        "only {read} of 1000 inputs were read as anything"
    );
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

#[test]
fn a_broken_law_is_reported_with_its_input_and_the_command_that_repeats_it() {
    let wrong: Target = |input| {
        assert!(!input.contains(&b'!'), "somebody shouted");
        BTreeSet::new()
    };
    let corpus = [b"quiet".to_vec(), b"loud!".to_vec()];
    let finding = run(wrong, &corpus, 4000, 42).expect_err("the second input shouts");
    assert_eq!(
        finding.to_string(),
        "input 1 of seed 42: somebody shouted\n  input:  loud!\n  \
         repeat: UNDAUNTED_FUZZ_SEED=42 cargo test -p undaunted-checks --test fuzz"
    );
}

#[test]
fn a_mistake_that_only_mutants_show_is_found_and_found_again_by_its_seed() {
    // Wrong about numbers of 2^32 and more, which the corpus does not hold.
    let wrong: Target = |input| {
        assert!(!input.ends_with(b"4294967296"));
        BTreeSet::new()
    };
    let corpus = [b"1".to_vec()];
    let finding = run(wrong, &corpus, 4000, 7).expect_err("a mutant is that number");
    assert!(finding.number > 0);
    assert_eq!(run(wrong, &corpus, 4000, 7), Err(finding));
}
