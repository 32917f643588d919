//! A few seconds of fuzzing in every run, and proof that it notices mistakes.
//!
//! The seed is `UNDAUNTED_SEED`, or else 1; a failure prints the command that repeats it.
//! `UNDAUNTED_FUZZ_INPUTS` makes a run longer. `fuzz/` holds the same targets for `cargo fuzz`.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, io};

use undaunted_checks::fuzz::{
    FuzzTarget, SAVED, archive_restore, http_request, journal_fold, journal_record, keeper_bytes,
    policy_decide, policy_restore, run, state_import, webhook_result, workflow_check, workflow_filter,
    workflow_template,
};
use undaunted_checks::repository;

fn fuzz(target: FuzzTarget, name: &str, inputs: u64) {
    let seed = variable("UNDAUNTED_SEED").unwrap_or(1);
    let inputs = variable("UNDAUNTED_FUZZ_INPUTS").unwrap_or(inputs);
    eprintln!("UNDAUNTED_SEED={seed}  {inputs} inputs of {name}");
    found(target, name, inputs, seed);
}

/// A run with seed 1 brings up all of these words, separated by commas.
#[track_caller]
fn brings_up(target: FuzzTarget, name: &str, inputs: u64, expected: &str) {
    let seen = found(target, name, inputs, 1);
    let expected: BTreeSet<&str> = expected.split(',').map(str::trim).collect();
    let missing: Vec<&&str> = expected.difference(&seen).collect();
    assert!(missing.is_empty(), "{missing:?} did not come up: {seen:?}");
}

#[track_caller]
fn found(target: FuzzTarget, name: &str, inputs: u64, seed: u64) -> BTreeSet<&'static str> {
    let outcome = run(target, &corpus(name), inputs, seed);
    if let Err(finding) = &outcome {
        eprintln!("{finding}");
    }
    assert!(outcome.is_ok(), "a law was broken; see above how to repeat it");
    outcome.unwrap_or_default()
}

/// The corpus of a target, in the order of its file names; empty if it has none.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = repository().join("crates/checks/corpus").join(name);
    if !folder.exists() {
        return Vec::new();
    }
    let files = files(&folder);
    assert!(files.is_ok(), "the corpus of {name}: {files:?}");
    files.unwrap_or_default()
}

fn files(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    paths.iter().map(fs::read).collect()
}

fn variable<N: FromStr>(name: &str) -> Option<N> {
    let value = env::var_os(name)?;
    let number = value.to_str().and_then(|text| text.parse().ok());
    assert!(number.is_some(), "{name} is {}; accepted is a number from 0 to 2^64-1", value.display());
    number
}

#[test]
fn no_mutant_of_an_archive_breaks_a_law() {
    fuzz(archive_restore, "archive_restore", 1500);
}

#[test]
fn some_mutants_of_archives_are_restored_and_others_refused() {
    brings_up(archive_restore, "archive_restore", 600, "restored, unfit, newer");
}

#[test]
fn no_mutant_of_a_state_breaks_a_law() {
    fuzz(state_import, "state_import", 1500);
}

#[test]
fn some_mutants_of_states_fit_and_others_do_not() {
    brings_up(state_import, "state_import", 600, "nothing, used up, pending, refused, unreadable");
}

#[test]
fn no_mutant_of_a_record_breaks_a_law() {
    fuzz(journal_record, "journal_record", 20_000);
}

#[test]
fn no_mutant_of_a_journal_breaks_a_law() {
    fuzz(journal_fold, "journal_fold", 300);
}

const EVENTS: &str = "job_submitted, job_resumed, step_started, items_read, input_failed, text_kept, \
    attempt_started, attempt_succeeded, attempt_failed, retry_scheduled, command_stopped, command_repeated, \
    command_recovered, item_succeeded, item_dead_lettered, item_skipped, job_stopping, step_completed, \
    step_failed, job_completed, job_failed, job_cancelled, job_suspended, policy_changed, state_imported, \
    job_redriven, item_redriven, item_dropped, job_paused, job_unpaused, pool_topped_up, held, released, \
    breaker_opened, breaker_half_opened, breaker_closed, breaker_configured, completion_reached, late_result, \
    step_skipped, step_unreachable, attribute_set, attempt_accepted, result_arrived";

#[test]
fn a_run_meets_every_kind_of_record() {
    brings_up(journal_record, "journal_record", 500, EVENTS);
    let others = "configured, failure, success, opened, tripped, half_opened, probe, probe_succeeded, probe_lost, \
        closed, reset, step_registered, step_updated, step_unregistered, step_health_changed, flow_activated, \
        flow_deactivated, flow_archiving, flow_archived, flow_removed, refused";
    brings_up(journal_record, "journal_record", 500, others);
}

#[test]
fn a_run_meets_every_kind_of_event_and_every_end_of_a_job() {
    brings_up(journal_fold, "journal_fold", 150, EVENTS);
    let ends = "no job, running, stopping, suspended, completed, partial, failed, cancelled, lawful";
    brings_up(journal_fold, "journal_fold", 150, ends);
}

#[test]
fn no_mutant_of_a_message_or_a_log_breaks_a_law() {
    fuzz(keeper_bytes, "keeper_bytes", 20_000);
}

#[test]
fn a_run_meets_every_message_and_every_state_of_a_log() {
    let expected = "hello, start, cancel, cancel all, forget, trust, goodbye, welcome, ready, running, exited, \
        vanished, refused, stream, log, damaged log";
    brings_up(keeper_bytes, "keeper_bytes", 500, expected);
}

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
        READ.fetch_add(u64::from(!names.is_empty()), Ordering::Relaxed);
        names
    };
    run(counted, &corpus("policy_restore"), 1000, 1).expect("no law is broken");
    let read = READ.load(Ordering::Relaxed);
    assert!(read > 250, "only {read} of 1000 inputs were read as anything");
}

#[test]
fn a_run_meets_every_decision_and_every_state_of_a_breaker() {
    let expected = "retry, hold, refused, rule, permanent, attempts, retry_after_exceeds_limit, retry_budget, \
        deadline, job_budget_exhausted, workflow_budget_exhausted, started, held, circuit_open, breaker_opened, \
        breaker_half_opened, breaker_closed";
    let seen = found(policy_decide, "policy_decide", 2000, 1);
    assert_eq!(seen, expected.split(',').map(str::trim).collect());
}

#[test]
fn no_mutant_of_a_request_breaks_a_law() {
    fuzz(http_request, "http_request", 300);
}

#[test]
fn a_run_meets_every_kind_of_answer() {
    let expected = "done, made, wrong, unknown, foreign, missing, wrong method, conflict, not JSON, metrics, \
        socket, subscribed, not subscribed, refused without words";
    brings_up(http_request, "http_request", 100, expected);
}

#[test]
fn no_mutant_of_a_result_breaks_a_law() {
    fuzz(webhook_result, "webhook_result", 8000);
}

#[test]
fn a_run_meets_every_kind_of_result_and_of_token() {
    let expected = "given, failed, unreadable, running, waiting, over, nowhere, arrived";
    brings_up(webhook_result, "webhook_result", 500, expected);
}

#[test]
fn no_mutant_of_a_workflow_breaks_a_law() {
    fuzz(workflow_check, "workflow_check", 1000);
}

#[test]
fn no_mutant_of_a_template_breaks_a_law() {
    fuzz(workflow_template, "workflow_template", 1000);
}

#[test]
fn no_mutant_of_a_filter_breaks_a_law() {
    fuzz(workflow_filter, "workflow_filter", 1000);
}

#[test]
fn a_run_meets_every_way_a_template_is_read() {
    let expected = "shell, shell refused, text, text refused, reference, raw, default";
    brings_up(workflow_template, "workflow_template", 500, expected);
}

#[test]
fn a_broken_law_is_reported_with_its_input_and_the_command_that_repeats_it() {
    let wrong: FuzzTarget = |input| {
        assert!(!input.contains(&b'!'), "the input shouts");
        BTreeSet::new()
    };
    let corpus = [b"quiet".to_vec(), b"loud!".to_vec()];
    let finding = run(wrong, &corpus, 4000, 42).expect_err("the second input shouts");
    assert_eq!(
        finding.to_string(),
        "input 1 of seed 42: the input shouts\n  input:  loud!\n  \
         repeat: UNDAUNTED_SEED=42 cargo test -p undaunted-checks --test fuzz"
    );
}

#[test]
fn a_mistake_that_only_mutants_show_is_found_and_found_again_by_its_seed() {
    // Wrong for numbers from 2^32 on, which the corpus does not contain.
    let wrong: FuzzTarget = |input| {
        assert!(!input.ends_with(b"4294967296"));
        BTreeSet::new()
    };
    let corpus = [b"1".to_vec()];
    let finding = run(wrong, &corpus, 4000, 7).expect_err("a mutant is that number");
    assert!(finding.number > 0);
    assert_eq!(run(wrong, &corpus, 4000, 7), Err(finding));
}
