//! `on_failure` and `on_success` handlers.

use std::collections::BTreeSet;

use undaunted_engine::id::CommandId;
use undaunted_engine::task::receipt_token;
use undaunted_policy::{FailureCause, Reason};

use crate::fixture::{EXIT_1, TestedJob, item_at, secs};

fn list(on_failure: &str) -> TestedJob {
    let text = format!("- {{shell: a, on_failure: {on_failure}}}\n- shell: last\n");
    TestedJob::started(&text)
}

#[test]
fn a_handler_runs_once_when_retries_are_used_up_and_its_success_saves_the_command() {
    let text = "- {shell: a, retry_config: {attempts: 1}, on_failure: {shell: mend}}\n- shell: b\n";
    let mut test = TestedJob::started(text);
    assert_eq!(test.fail(0, EXIT_1).lines()[1], "retry_scheduled 0/0 0.1 in 1s at +1s");
    test.at(1).start();
    assert_eq!(test.fail(0, EXIT_1).lines().last().unwrap(), "command_stopped 0/0 0.2: attempts, handler 1");
    assert_eq!(test.ready(), [item_at(0)]);
    assert_eq!(test.start().lines(), ["attempt_started 0/0 1.1 as 3"]);
    assert_eq!(
        test.succeed(0).lines(),
        [
            "attempt_succeeded 0/0 1.1",
            "command_recovered 0/0 0.2",
            "item_succeeded 0/0",
            "step_completed 0",
            "step_started 1",
        ]
    );
    assert_eq!(test.start().succeed(0).outcome(), ("completed", None, [2, 0, 0]));
    // The failure stays in the report, and attempts of handlers are not counted.
    assert_eq!(
        test.report().error.as_deref(),
        Some("All attempts used (1 retry, 2 attempts); last error: exit status 1")
    );
    assert_eq!(test.totals(), (3, 1, secs(1)));
}

#[test]
fn handlers_run_in_order_and_the_item_continues_after_its_command() {
    let text = "
mode: mapreduce
map:
  input: a.json
  agent_template:
    - {shell: a, on_failure: [{shell: one}, {shell: two}]}
    - shell: b
";
    let mut test = TestedJob::started_over(text, 1);
    test.fail(0, EXIT_1);
    assert_eq!(test.start().lines(), ["attempt_started 0/0 1.1 as 2"]);
    assert_eq!(test.succeed(0).lines(), ["attempt_succeeded 0/0 1.1, next 2"]);
    assert_eq!(test.start().lines(), ["attempt_started 0/0 2.1 as 3"]);
    assert_eq!(test.succeed(0).lines(), ["attempt_succeeded 0/0 2.1", "command_recovered 0/0 0.1, next 3"]);
    assert_eq!(test.start().lines(), ["attempt_started 0/0 3.1 as 4"]);
}

#[test]
fn a_failing_handler_stops_and_the_reason_is_that_of_the_command() {
    let mut test = list("[{shell: one}, {shell: two}]");
    test.fail_with(0, FailureCause::Exit(127), "a: not found").start();
    let lines = test.fail_with(0, EXIT_1, "one is broken").lines();
    assert!(lines.contains(&"command_stopped 0/0 1.1: attempts".to_owned()));
    assert!(lines.contains(&"item_dead_lettered 0/0 0.1: permanent".to_owned()));
    assert_eq!(test.outcome(), ("failed", Some(Reason::Permanent), [0, 1, 0]));
    assert_eq!(test.report().error.as_deref(), Some("exit status 127 (not found): a: not found"));
}

#[test]
fn a_handler_has_retries_only_if_configured() {
    let text = "
retry_config: {attempts: 5}
commands:
  - {shell: a, retry_config: {attempts: 0}, on_failure: {shell: mend}}
";
    let mut test = TestedJob::started(text);
    assert_eq!(test.fail(0, EXIT_1).start().fail(0, EXIT_1).outcome().0, "failed");

    let mut test = list("{shell: mend, retry_config: {attempts: 1}}");
    test.fail(0, EXIT_1).start();
    assert_eq!(test.fail(0, EXIT_1).lines()[1], "retry_scheduled 0/0 1.1 in 1s at +1s");
    assert_eq!(test.totals(), (1, 0, secs(0)), "delays of handlers are not counted");
}

#[test]
fn fail_workflow_fails_although_the_handler_succeeded() {
    let mut test = list("{shell: mend, fail_workflow: true}");
    test.fail(0, FailureCause::Exit(9)).start();
    assert_eq!(
        test.succeed(0).lines(),
        [
            "attempt_succeeded 0/0 1.1",
            "item_dead_lettered 0/0 0.1: attempts",
            "step_failed 0",
            "job_failed attempts",
        ]
    );
}

/// The attempts of a command that always fails, with so many retries and rounds of its handler.
fn attempts_with(retries: u32, rounds: u32) -> u64 {
    let text = format!(
        "- {{shell: a, retry_config: {{attempts: {retries}}}, on_failure: {{shell: mend, max_attempts: {rounds}}}}}\n"
    );
    let mut test = TestedJob::of(&text);
    while !test.job.stage.has_ended() {
        if test.ready().is_empty() {
            test.advance();
        }
        test.start();
        let handler = test.active(0).command == CommandId(1);
        let _ = if handler { test.succeed(0) } else { test.fail(0, EXIT_1) };
    }
    assert_eq!(test.outcome(), ("failed", Some(Reason::Attempts), [0, 1, 0]));
    test.attempts()
}

#[test]
fn k_rounds_of_a_handler_make_at_most_n_plus_one_plus_k_attempts() {
    assert_eq!(attempts_with(0, 1), 2);
    assert_eq!(attempts_with(2, 1), 4);
    assert_eq!(attempts_with(2, 3), 6);
}

#[test]
fn an_extra_attempt_has_the_next_number() {
    let text = "- {shell: a, retry_config: {attempts: 2}, on_failure: {shell: mend, max_attempts: 1}}\n";
    let mut test = TestedJob::of(text);
    assert_eq!(
        test.fail_until_stopped().lines().last().unwrap(),
        "command_stopped 0/0 0.3: attempts, handler 1"
    );
    assert_eq!(test.start().lines(), ["attempt_started 0/0 1.1 as 4"]);
    test.succeed(0);
    assert_eq!(test.start().lines(), ["attempt_started 0/0 0.4 as 5"]);
}

#[test]
fn attempts_of_a_handler_are_numbered_over_all_rounds_and_each_round_has_its_own_token() {
    let handler = "[{shell: one, retry_config: {attempts: 1}}, {shell: two}]";
    let mut test = list(&format!("{{commands: {handler}, max_attempts: 2}}"));
    let token = |test: &TestedJob| {
        let active = test.active(0);
        receipt_token(&test.job, item_at(0), active.command, active.round)
    };
    let own = token(&test);
    let mut seen = Vec::new();
    for round in 0..2 {
        test.fail(0, EXIT_1);
        for (fails, number) in [(true, 1), (false, 2)] {
            if test.ready().is_empty() {
                test.advance();
            }
            test.start();
            assert_eq!(test.active(0).attempts, round * 2 + number, "the first command of the handler");
            seen.push(token(&test));
            let _ = if fails { test.fail(0, EXIT_1) } else { test.succeed(0) };
        }
        test.crash_and_resume().start();
        assert_eq!(test.active(0).attempts, round + 1, "the second one");
        seen.push(token(&test));
        test.succeed(0).start();
        assert_eq!(test.active(0).attempts, round + 2, "the extra attempt");
        assert_eq!(token(&test), own, "a command keeps its token");
    }
    assert_eq!((&seen[0], &seen[3]), (&seen[1], &seen[4]), "the attempts of a round share one");
    seen.dedup();
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 4, "{seen:?}");
    test.finish().check_replay();
}

#[test]
fn an_extra_attempt_that_succeeds_leaves_the_failure_in_the_report() {
    let mut test = list("{shell: mend, max_attempts: 2}");
    test.fail_with(0, EXIT_1, "schema is old").start();
    assert_eq!(test.succeed(0).lines(), ["attempt_succeeded 0/0 1.1", "command_repeated 0/0 0.1"]);
    assert_eq!(test.start().lines(), ["attempt_started 0/0 0.2 as 3"]);
    assert_eq!(test.succeed(0).lines()[1], "item_succeeded 0/0");
    assert_eq!(test.start().succeed(0).outcome(), ("completed", None, [2, 0, 0]));
    assert_eq!(test.report().error.as_deref(), Some("exit status 1: schema is old"));
}

#[test]
fn an_extra_attempt_that_fails_keeps_the_reason_and_reports_the_last_error() {
    let mut test = list("{shell: mend, max_attempts: 1}");
    test.fail_with(0, EXIT_1, "schema is old").start().succeed(0).start();
    test.fail_with(0, FailureCause::Exit(2), "disk is full");
    assert_eq!(test.outcome().1, Some(Reason::Attempts));
    assert_eq!(
        test.report().error.as_deref(),
        Some("All attempts used; last error: exit status 2: disk is full")
    );
}

#[test]
fn rules_apply_to_the_extra_attempt() {
    for (then, event) in
        [("dead_letter", "item_dead_lettered 0/0 0.2: rule"), ("skip", "item_skipped 0/0: rule")]
    {
        let text = format!(
            "
- shell: a
  retry_config: {{attempts: 0, rules: [{{exit_code: 3, then: {then}}}]}}
  on_failure: {{shell: mend, max_attempts: 5}}
"
        );
        let mut test = TestedJob::started(&text);
        test.fail(0, EXIT_1).start().succeed(0).start();
        let lines = test.fail(0, FailureCause::Exit(3)).lines();
        assert!(lines.contains(&event.to_owned()), "{lines:?}");
    }
}

#[test]
fn a_failing_handler_ends_its_rounds() {
    let mut test = list("{shell: mend, max_attempts: 5}");
    assert_eq!(test.fail(0, EXIT_1).start().fail(0, EXIT_1).outcome().0, "failed");
    assert_eq!(test.attempts(), 1);
}

#[test]
fn what_follows_a_success_runs_before_the_next_command() {
    let text = "- {shell: a, on_success: [{shell: tell}, {shell: more}]}\n- shell: b\n";
    let mut test = TestedJob::started(text);
    assert_eq!(test.succeed(0).lines(), ["attempt_succeeded 0/0 0.1, next 1"]);
    test.start();
    assert_eq!(test.succeed(0).lines(), ["attempt_succeeded 0/0 1.1, next 2"]);
    test.start();
    assert_eq!(test.succeed(0).lines()[1..], ["item_succeeded 0/0", "step_completed 0", "step_started 1"]);
    assert_eq!(test.attempts(), 1, "what follows is not counted");
}

#[test]
fn what_follows_a_success_does_not_run_after_a_failure() {
    let text = "- {shell: a, on_success: {shell: tell}, on_failure: {shell: mend}}\n";
    let mut test = TestedJob::started(text);
    test.fail(0, EXIT_1).start();
    assert_eq!(test.succeed(0).lines()[1..3], ["command_recovered 0/0 0.1", "item_succeeded 0/0"]);
}
