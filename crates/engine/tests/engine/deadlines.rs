//! Deadlines of items and of the job.

use undaunted_engine::id::StepId;
use undaunted_policy::{FailureCause, Reason};

use crate::fixture::{EXIT_1, TestedJob, at, item_at, secs};

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
    assert_eq!(
        test.at(60).wake().lines()[2..],
        ["command_stopped 0/0 0.1: deadline", "item_dead_lettered 0/0 0.1: deadline"]
    );
    assert_eq!(test.report().error.unwrap(), "The deadline passed; last error: exit status 1");
    assert_eq!(test.effects().last().unwrap(), "end all");
    assert_eq!(test.next_wake(), None);
    test.fail(1, FailureCause::Interrupted);
    assert_eq!(
        test.fail(2, FailureCause::Timeout).lines()[1..],
        [
            "command_stopped 0/2 0.1: deadline",
            "item_dead_lettered 0/2 0.1: deadline",
            "step_failed 0",
            "job_failed deadline"
        ]
    );
    assert_eq!(test.outcome(), ("failed", Some(Reason::Deadline), [0, 3, 0]));
    assert_eq!(test.missing(), [("a3".to_owned(), Reason::Deadline)], "it never started");
}

/// A list with a deadline, whose command has no retries.
const LIST: &str = "deadline: 10s\ncommands: [{shell: a}]\n";

#[test]
fn an_attempt_that_the_job_deadline_ends_is_a_dead_letter_with_what_it_wrote() {
    // The keeper ends it, the job does, or the keeper did before the job could.
    let by_keeper = |test: &mut TestedJob| {
        test.fail_with(0, FailureCause::Timeout, "busy");
    };
    let by_job = |test: &mut TestedJob| {
        test.wake().fail_with(0, FailureCause::Interrupted, "busy");
    };
    let while_stopping = |test: &mut TestedJob| {
        test.wake().fail_with(0, FailureCause::Timeout, "busy");
    };
    let ends: [&dyn Fn(&mut TestedJob); 3] = [&by_keeper, &by_job, &while_stopping];
    for end in ends {
        let mut test = TestedJob::started(LIST);
        test.at(10);
        end(&mut test);
        assert_eq!(test.outcome(), ("failed", Some(Reason::Deadline), [0, 1, 0]));
        let error = test.report().error.unwrap();
        assert_eq!(error, "timed out after 10s (deadline): busy");
        assert_eq!(test.job.first_dead(), Some(Reason::Deadline));
        test.check_replay();
    }
}

#[test]
fn an_attempt_that_fails_for_good_when_the_deadline_passes_keeps_its_own_reason() {
    let mut test = TestedJob::started(LIST);
    test.at(10).wake().fail(0, FailureCause::Exit(127));
    assert_eq!(test.outcome(), ("failed", Some(Reason::Deadline), [0, 1, 0]));
    assert_eq!(test.job.first_dead(), Some(Reason::Permanent));
}

#[test]
fn an_item_that_the_deadline_cuts_off_between_commands_is_redriven_at_the_next_one() {
    let text =
        "deadline: 10s\nmode: mapreduce\nmap:\n  input: a.json\n  agent_template: [{shell: a}, {shell: b}]\n";
    let mut test = TestedJob::started_over(text, 1);
    test.at(10).wake().succeed(0);
    assert_eq!(test.outcome(), ("failed", Some(Reason::Deadline), [0, 1, 0]));
    assert_eq!(test.at(100).redrive([item_at(0)]).start().lines(), ["attempt_started 0/0 1.1 as 2"]);
    assert_eq!(test.succeed(0).outcome(), ("completed", None, [1, 0, 0]));
}

#[test]
fn a_redrive_after_the_deadline_has_the_time_of_the_deadline_again() {
    let mut test = TestedJob::started(LIST);
    test.at(10).wake().fail(0, FailureCause::Interrupted).at(100);
    test.redrive([StepId(0).item(0)]);
    assert_eq!(test.next_wake(), Some(at(110)));
    assert_eq!(test.start().task(StepId(0).item(0)).timeout, Some(secs(10)));
    test.restart();
    assert_eq!(test.next_wake(), Some(at(110)), "also for a process that reads the journal");
    test.at(110).wake().fail(0, FailureCause::Interrupted);
    assert_eq!(test.outcome(), ("failed", Some(Reason::Deadline), [0, 1, 0]));
}

#[test]
fn a_redrive_before_the_deadline_does_not_move_it() {
    let mut test = TestedJob::started(LIST);
    test.at(3).fail(0, EXIT_1).redrive([StepId(0).item(0)]);
    assert_eq!(test.next_wake(), Some(at(10)));
}

#[test]
fn a_redriven_item_that_does_not_start_before_the_deadline_is_a_dead_letter_again() {
    let text = "deadline: 10s\nmode: mapreduce\nmap:\n  input: a.json\n  max_parallel: 1\n  agent_template: [{shell: a}]\n";
    let mut test = TestedJob::started_over(text, 2);
    test.fail_with(0, EXIT_1, "first").start().fail_with(1, EXIT_1, "second");
    test.redrive([item_at(0), item_at(1)]).start().at(10).wake().fail(0, FailureCause::Interrupted);
    assert_eq!(test.outcome(), ("failed", Some(Reason::Deadline), [0, 2, 0]));
    let error = test.report().error.unwrap();
    assert_eq!(error, "The deadline passed; last error: exit status 1: second");
}

#[test]
fn a_handler_that_the_deadline_cuts_off_leaves_its_command_as_the_dead_letter() {
    let text = "deadline: 10s\ncommands: [{shell: a, on_failure: {shell: mend}}]\n";
    let mut test = TestedJob::started(text);
    test.fail_with(0, EXIT_1, "busy").start().at(10).wake();
    assert_eq!(
        test.fail(0, FailureCause::Interrupted).lines()[2..4],
        ["command_stopped 0/0 1.1: deadline", "item_dead_lettered 0/0 0.1: deadline"]
    );
    let error = test.report().error.unwrap();
    assert_eq!(error, "The deadline passed; last error: exit status 1: busy");
    assert_eq!(test.redrive([StepId(0).item(0)]).start().lines(), ["attempt_started 0/0 0.1 as 3"]);
}

#[test]
fn a_cut_off_item_is_skipped_if_failed_items_are() {
    let text = "deadline: 10s\nmode: mapreduce\nmap:\n  input: a.json\n  agent_template: [{shell: a}]\nerror_policy: {on_item_failure: skip}\n";
    let mut test = TestedJob::started_over(text, 1);
    test.at(10).wake().fail(0, FailureCause::Interrupted);
    assert_eq!(test.outcome(), ("failed", Some(Reason::Deadline), [0, 0, 1]));
}

#[test]
fn a_timeout_names_its_limit_and_the_value() {
    let error = |text: &str, seconds: u64| {
        let mut test = TestedJob::started_over(text, 1);
        test.at(seconds).fail_with(0, FailureCause::Timeout, "busy");
        test.report().error.unwrap()
    };
    let map = |limits: &str, command: &str| {
        format!("mode: mapreduce\nmap:\n  input: a.json\n{limits}  agent_template: [{{shell: a{command}}}]\n")
    };
    assert_eq!(error(&map("", ", timeout: 300ms"), 1), "timed out after 300ms (timeout): busy");
    let of_item = "  timeout_config: {agent_timeout_secs: 90}\n";
    assert_eq!(error(&map(of_item, ""), 90), "timed out after 1m30s (item_timeout): busy");
    assert_eq!(error(&map(of_item, ", timeout: 80s"), 80), "timed out after 1m20s (timeout): busy");
    let job = format!("deadline: 1m\n{}", map(of_item, ""));
    assert_eq!(error(&job, 60), "timed out after 1m (deadline): busy");
    // A connection timed out before any limit of ours.
    assert_eq!(error(&map(of_item, ""), 89), "timed out: busy");
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
