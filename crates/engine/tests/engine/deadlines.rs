//! Deadlines of items and of the job.

use undaunted_policy::{FailureCause, Reason};

use crate::fixture::{EXIT_1, TERM, TestedJob, at, item_at, secs};

/// Items have a deadline of 10s and are retried every 4s.
const ITEM: &str = "
mode: mapreduce
map:
  input: a.json
  timeout_config:
    agent_timeout_secs: 10
    retry_config: {attempts: 9, backoff: fixed, initial_delay: 4s}
  agent_template: [{shell: a}]
";

#[test]
fn delays_count_towards_the_deadline_of_an_item_and_a_retry_due_after_it_is_refused() {
    let mut test = TestedJob::over(ITEM, 1);
    test.at(100).start().fail(0, EXIT_1).at(104).start().at(106);
    // Due exactly at the deadline: allowed.
    assert_eq!(test.fail(0, EXIT_1).lines()[1], "retry_scheduled 0/0 0.2 in 4s at +110s");
    test.at(110).start().fail(0, EXIT_1);
    assert_eq!(test.outcome(), ("partial", Some(Reason::Deadline), [0, 1, 0]));
}

#[test]
fn an_attempt_has_no_more_time_than_its_item() {
    let mut test = TestedJob::over(ITEM, 1);
    test.at(100);
    assert_eq!(test.task(item_at(0)).timeout, Some(secs(10)), "a first attempt");
    test.start().fail(0, EXIT_1).at(107);
    assert_eq!(test.task(item_at(0)).timeout, Some(secs(3)));
}

#[test]
fn downtime_counts_towards_the_deadline_of_an_item() {
    let mut test = TestedJob::started_over(ITEM, 1);
    test.fail_with(0, EXIT_1, "busy").at(11).crash_and_resume();
    assert_eq!(
        test.start().lines()[1..3],
        ["command_stopped 0/0 0.1: deadline", "item_dead_lettered 0/0 0.1: deadline"]
    );
    let error = test.report().error.unwrap();
    assert!(error.ends_with("; last error: exit status 1: busy"), "{error}");
}

#[test]
fn clean_suspension_does_not_count_towards_the_deadline_of_an_item() {
    let mut test = TestedJob::started_over(ITEM, 1);
    test.fail(0, EXIT_1).at(2).suspend().at(1000).crash_and_resume();
    assert_eq!(test.active(0).began(), Some(at(998)));
    assert_eq!(test.task(item_at(0)).timeout, Some(secs(8)));
    test.start().at(1001);
    assert_eq!(test.fail(0, EXIT_1).lines()[1], "retry_scheduled 0/0 0.2 in 4s at +1005s");
}

#[test]
fn the_job_deadline_stops_everything() {
    let text = "
deadline: 60s
mode: mapreduce
map:
  input: a.json
  max_parallel: 2
  error_policy: {retry_config: {attempts: 9}}
  agent_template: [{shell: a}]
reduce: [{shell: r}]
";
    let mut test = TestedJob::over(text, 4);
    assert_eq!(test.next_wake(), Some(at(60)));
    test.start().at(58).fail(0, EXIT_1).start().at(59);
    // Due at 60s, which is not after the deadline; another retry would be due at 61s.
    test.wake();
    assert_eq!(test.running(), 2);
    assert_eq!(test.at(60).wake().lines(), ["job_stopping deadline", "item_skipped 0/0: deadline"]);
    assert_eq!(test.effects().last().unwrap(), "end all");
    assert_eq!(test.next_wake(), None);
    test.fail(1, TERM);
    assert_eq!(
        test.fail(2, TERM).lines()[1..],
        ["item_skipped 0/2: deadline", "step_failed 0", "job_failed deadline"]
    );
    assert_eq!(test.outcome(), ("failed", Some(Reason::Deadline), [0, 0, 3]));
    assert_eq!(test.report().missing.len(), 1);
}

#[test]
fn a_retry_due_after_the_job_deadline_is_refused() {
    let text = "deadline: 10s\nretry_config: {attempts: 9, initial_delay: 11s}\ncommands: [{shell: a}]\n";
    let mut test = TestedJob::started(text);
    assert_eq!(test.fail(0, EXIT_1).outcome(), ("failed", Some(Reason::Deadline), [0, 1, 0]));
}

#[test]
fn suspension_does_not_move_the_job_deadline() {
    let mut test = TestedJob::of("deadline: 60s\ncommands: [{shell: a}]\n");
    test.suspend();
    assert_eq!(test.next_wake(), None, "nothing wakes a suspended job");
    test.at(100).crash_and_resume();
    // Nothing starts any more, even without a wake-up.
    assert_eq!(test.start().lines(), ["job_stopping deadline", "step_failed 0", "job_failed deadline"]);
}

#[test]
fn a_handler_runs_for_an_item_past_its_deadline() {
    let text = ITEM.replace("[{shell: a}]", "[{shell: a, on_failure: {shell: mend, max_attempts: 3}}]");
    let mut test = TestedJob::started_over(&text, 1);
    test.at(10);
    assert_eq!(
        test.fail(0, FailureCause::Timeout).lines().last().unwrap(),
        "command_stopped 0/0 0.1: deadline, handler 1"
    );
    test.at(12);
    assert_eq!(test.task(item_at(0)).timeout, None);
    test.start();
    // There is no time for an extra attempt, so the item is a dead letter.
    assert_eq!(test.succeed(0).lines()[1], "item_dead_lettered 0/0 0.1: deadline");
}

#[test]
fn an_extra_attempt_past_its_deadline_runs_no_handler_again() {
    let text = ITEM.replace(
        "[{shell: a}]",
        "[{shell: a, retry_config: {attempts: 0}, on_failure: {shell: mend, max_attempts: 3}}]",
    );
    let mut test = TestedJob::started_over(&text, 1);
    test.fail(0, EXIT_1).start().at(9).succeed(0).at(11);
    assert_eq!(test.start().lines()[0], "item_dead_lettered 0/0 0.1: attempts");
}

#[test]
fn a_handler_is_not_bound_by_the_item_deadline_even_as_first_start() {
    let text = "
mode: mapreduce
deadline: 1h
map:
  input: a.json
  max_parallel: 1
  timeout_config: {agent_timeout_secs: 8}
  agent_template:
    - shell: a
      breaker: {name: payments, failure_threshold: 1, max_hold: 20s}
      on_failure: {shell: mend}
";
    let mut test = TestedJob::started_over(text, 2);
    test.fail(0, EXIT_1).start().succeed(0).start();
    assert_eq!(test.held(), [1]);
    test.at(20);
    assert_eq!(test.wake().lines().last().unwrap(), "command_stopped 0/1 0.0: circuit_open, handler 1");
    assert_eq!(test.task(item_at(1)).timeout, Some(secs(3580)), "that of the job");
}
