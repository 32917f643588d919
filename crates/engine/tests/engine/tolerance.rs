//! Too many failures: nothing new starts, running attempts end, and the job fails.

use undaunted_policy::{FailureCause, Reason};

use crate::fixture::{EXIT_1, TERM, TestedJob};

fn map(policy: &str, parallel: u32) -> String {
    format!(
        "
mode: mapreduce
map:
  input: a.json
  max_parallel: {parallel}
  error_policy: {{{policy}}}
  agent_template: [{{shell: a}}]
reduce: [{{shell: r}}]
"
    )
}

#[test]
fn the_first_failure_stops_a_map_that_does_not_continue_on_failure() {
    for policy in ["continue_on_failure: false", "on_item_failure: stop", "max_failures: 1"] {
        let mut test = TestedJob::started_over(&map(policy, 2), 5);
        assert_eq!(test.fail(0, EXIT_1).lines().last().unwrap(), "job_stopping tolerance", "{policy}");
        assert_eq!(test.ready(), [], "nothing new starts");
        assert_eq!(test.effects(), ["begin 2 for 0/1"], "what runs is not ended");
        assert_eq!(test.succeed(1).outcome(), ("failed", Some(Reason::Tolerance), [1, 1, 0]));
        let missing = test.report().missing;
        let missing: Vec<_> = missing.iter().map(|it| (it.item.as_str(), it.reason)).collect();
        let reason = Reason::Tolerance;
        assert_eq!(missing, [("a2", reason), ("a3", reason), ("a4", reason)]);
    }
}

#[test]
fn max_failures_is_the_first_number_that_is_not_tolerated() {
    let mut test = TestedJob::started_over(&map("max_failures: 3", 10), 5);
    test.fail(0, EXIT_1).fail(1, EXIT_1);
    assert_eq!(test.job.is_stopping(), None);
    test.fail(2, EXIT_1);
    assert_eq!(test.job.is_stopping(), Some(Reason::Tolerance));
}

#[test]
fn a_failure_threshold_must_be_exceeded_and_applies_from_ten_items_on() {
    let run = |failures: u32| {
        let mut test = TestedJob::started_over(&map("failure_threshold: 0.2", 20), 20);
        for item in 0..10 {
            let _ = if item < failures { test.fail(item, EXIT_1) } else { test.succeed(item) };
            if item < 9 {
                assert_eq!(test.job.is_stopping(), None, "fewer than ten are settled");
            }
        }
        test.job.is_stopping()
    };
    assert_eq!(run(2), None);
    assert_eq!(run(3), Some(Reason::Tolerance));
}

#[test]
fn waiting_items_are_skipped_and_reduce_does_not_run() {
    let policy = "max_failures: 1, retry_config: {attempts: 1}";
    let mut test = TestedJob::started_over(&map(policy, 3), 4);
    test.fail(1, EXIT_1);
    let lines = test.fail(0, FailureCause::Exit(127)).lines();
    assert_eq!(lines[lines.len() - 2..], ["job_stopping tolerance", "item_skipped 0/1: tolerance"]);
    // The last attempt ends after the tolerance was exceeded.
    assert!(!test.fail(2, EXIT_1).records().is_empty());
    assert_eq!(test.outcome(), ("failed", Some(Reason::Tolerance), [0, 1, 2]));
    assert_eq!(test.job.steps[1].items.len(), 0);
}

#[test]
fn a_permanent_failure_while_the_job_stops_is_a_dead_letter() {
    let mut test = TestedJob::started_over(&map("max_failures: 1", 3), 3);
    assert_eq!(test.fail_all(0..3).outcome(), ("failed", Some(Reason::Tolerance), [0, 3, 0]));
}

#[test]
fn no_handler_is_started_while_the_job_stops() {
    let text = map("max_failures: 1", 2).replace("[{shell: a}]", "[{shell: a, on_failure: {shell: mend}}]");
    let mut test = TestedJob::started_over(&text, 2);
    test.fail(0, EXIT_1).start().fail(0, EXIT_1);
    assert_eq!(test.job.is_stopping(), Some(Reason::Tolerance));
    assert_eq!(test.fail(1, EXIT_1).lines()[1], "item_skipped 0/1: tolerance");
}

/// Two items at a time: the handler of the first runs while the second reaches the tolerance.
fn handled_while_stopping(handler: &str, rest: &str) -> TestedJob {
    let text = map("max_failures: 1", 2)
        .replace("[{shell: a}]", &format!("[{{shell: a, on_failure: {{shell: mend{handler}}}}}{rest}]"));
    let mut test = TestedJob::started_over(&text, 2);
    test.fail(0, FailureCause::Exit(127)).start().fail(1, EXIT_1).start().fail(1, EXIT_1);
    assert_eq!(test.job.is_stopping(), Some(Reason::Tolerance));
    test
}

#[test]
fn an_item_recovered_while_the_job_stops_succeeds_if_it_is_complete() {
    let mut test = handled_while_stopping("", "");
    assert_eq!(test.succeed(0).lines()[1..3], ["command_recovered 0/0 0.1", "item_succeeded 0/0"]);
    assert_eq!(test.outcome(), ("failed", Some(Reason::Tolerance), [1, 1, 0]));
}

#[test]
fn fail_workflow_while_the_job_stops_dead_letters_for_the_first_reason() {
    for rest in ["", ", {shell: b}"] {
        let mut test = handled_while_stopping(", fail_workflow: true", rest);
        assert_eq!(test.succeed(0).lines()[1], "item_dead_lettered 0/0 0.1: permanent");
        assert_eq!(test.outcome().2, [0, 2, 0]);
    }
}

#[test]
fn an_item_recovered_while_the_job_stops_is_skipped_if_commands_are_left() {
    for (handler, rest) in [("", ", {shell: b}"), (", max_attempts: 1", "")] {
        let mut test = handled_while_stopping(handler, rest);
        assert_eq!(test.succeed(0).lines()[1], "item_skipped 0/0: tolerance", "{handler}{rest}");
        assert_eq!(test.outcome().2, [0, 1, 1]);
    }
}

#[test]
fn an_extra_attempt_refused_by_the_pool_while_the_job_stops_dead_letters() {
    let text = map("max_failures: 1", 2)
        .replace(
            "[{shell: a}]",
            "[{shell: a, retry_config: {attempts: 1}, on_failure: {shell: mend, max_attempts: 1}}]",
        )
        .replace("mode:", "retry_budget: 1\nmode:");
    let mut test = TestedJob::started_over(&text, 2);
    test.fail(0, EXIT_1).at(1).start().fail(0, EXIT_1).start().fail(1, EXIT_1).start();
    test.fail(1, EXIT_1);
    assert_eq!(test.job.is_stopping(), Some(Reason::Tolerance));
    assert_eq!(test.succeed(0).lines()[1], "item_dead_lettered 0/0 0.2: attempts");
}

#[test]
fn an_item_with_commands_left_is_skipped_while_the_job_stops() {
    let text = map("max_failures: 1", 2).replace("[{shell: a}]", "[{shell: a}, {shell: b}]");
    let mut test = TestedJob::started_over(&text, 2);
    test.fail(0, EXIT_1);
    assert_eq!(test.succeed(1).lines()[..2], ["attempt_succeeded 0/1 0.1", "item_skipped 0/1: tolerance"]);
}

#[test]
fn a_failure_of_the_last_item_can_exceed_the_tolerance() {
    let mut test = TestedJob::started_over(&map("max_failures: 1", 1), 1);
    assert_eq!(test.fail(0, EXIT_1).outcome().0, "failed");
}

#[test]
fn with_tolerated_dead_letters_reduce_runs_and_the_job_is_partial() {
    let mut test = TestedJob::started_over(&map("max_failures: 9", 2), 2);
    test.fail(0, EXIT_1).succeed(1).start().succeed(0);
    assert_eq!(test.outcome(), ("partial", Some(Reason::Attempts), [1, 1, 0]));
}

#[test]
fn a_cancel_goes_before_a_tolerance() {
    let mut test = TestedJob::started_over(&map("max_failures: 1", 2), 3);
    test.fail(0, EXIT_1);
    assert_eq!(test.cancel().lines(), ["job_stopping cancelled"]);
    assert_eq!(test.fail(1, TERM).outcome(), ("cancelled", Some(Reason::Cancelled), [0, 1, 1]));
}
