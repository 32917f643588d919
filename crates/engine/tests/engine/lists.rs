//! Lists of commands.

use undaunted_engine::id::StepId;
use undaunted_engine::input::Input;
use undaunted_policy::{FailureCause, Reason};

use crate::fixture::{EXIT_1, TestedJob, item_at, start_input};

#[test]
fn a_command_without_retry_config_runs_once() {
    let mut test = TestedJob::of("- shell: 'true'\n");
    assert_eq!(test.ready(), [item_at(0)]);
    assert_eq!(test.start().lines(), ["attempt_started 0/0 0.1 as 1"]);
    assert_eq!(test.effects(), ["begin 1 for 0/0"]);
    assert_eq!(
        test.succeed(0).lines(),
        ["attempt_succeeded 0/0 0.1", "item_succeeded 0/0", "step_completed 0", "job_completed",]
    );
    assert_eq!(test.outcome(), ("completed", None, [1, 0, 0]));
}

#[test]
fn a_command_without_retry_config_that_fails_is_not_tried_again() {
    let mut test = TestedJob::started("- shell: 'false'\n");
    assert_eq!(
        test.fail(0, EXIT_1).lines(),
        [
            "attempt_failed 0/0 0.1 Exit(1)",
            "text_kept `exit status 1`",
            "command_stopped 0/0 0.1: attempts",
            "item_dead_lettered 0/0 0.1: attempts",
            "step_failed 0",
            "job_failed attempts",
        ]
    );
    // Without a `retry_config`, the message does not mention attempts.
    assert_eq!(test.report().error.as_deref(), Some("exit status 1"));
}

#[test]
fn a_submitted_job_begins_with_its_first_input() {
    let test = TestedJob::of("- shell: a\n- shell: b\n");
    let words = test.journal.len();
    assert_eq!(words, 2, "submitted, step started");
    assert_eq!(test.job.submitted().job, "7f3k");
}

#[test]
fn the_next_command_begins_when_the_previous_one_has_succeeded() {
    let mut test = TestedJob::of("- shell: a\n- shell: b\n");
    assert_eq!(test.ready(), [item_at(0)]);
    test.start();
    assert_eq!(test.ready(), []);
    let lines = test.succeed(0).lines();
    assert_eq!(lines.last().map(String::as_str), Some("step_started 1"));
    assert_eq!(test.ready(), [StepId(1).item(0)]);
}

#[test]
fn a_failed_command_fails_its_list_and_the_later_commands_are_missing() {
    let mut test = TestedJob::started("- shell: a\n- {shell: b, id: second}\n- shell: c\n");
    test.fail_with(0, FailureCause::Exit(3), "no such table");
    assert_eq!(test.outcome(), ("failed", Some(Reason::Attempts), [0, 1, 0]));
    let report = test.report();
    assert_eq!(report.items.total, 3);
    assert_eq!(report.error.as_deref(), Some("exit status 3: no such table"));
    let missing: Vec<_> = report.missing.iter().map(|it| it.item.as_str()).collect();
    assert_eq!(missing, ["second", "shell-2"]);
}

#[test]
fn nothing_happens_to_a_job_that_has_ended() {
    let mut test = TestedJob::started("- shell: 'true'\n");
    test.succeed(0);
    let inputs = [
        Input::Resume { last_seen: None },
        Input::Woke,
        Input::Cancel,
        Input::Suspend,
        start_input(item_at(0)),
        Input::Ended(Box::default()),
        Input::ItemsRead { step: StepId(0), items: Vec::new(), warning: None },
        Input::Update { text: "- shell: b".into(), changes: Vec::new() },
    ];
    for input in inputs {
        assert_eq!(test.feed(&input).lines(), [""; 0], "{input:?}");
    }
    assert_eq!(test.effects(), [""; 0]);
    assert_eq!((test.ready(), test.next_wake()), (Vec::new(), None));
}
