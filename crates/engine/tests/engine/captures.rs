//! Several commands of an item, and the output that one captures for the next.

use serde_json::{Value, json};
use undaunted_engine::id::{CommandId, ItemId, StepId};
use undaunted_engine::task::TaskWork;
use undaunted_policy::Reason;

use crate::fixture::{EXIT_1, TestedJob, item_at};

fn map(commands: &str) -> String {
    format!("mode: mapreduce\nmap:\n  input: a.json\n  agent_template:\n{commands}")
}

/// The values of templates, which are passed in environment variables.
fn given(test: &TestedJob, item: ItemId) -> Vec<String> {
    let task = test.task(item);
    assert!(matches!(task.work, TaskWork::Run { .. }));
    let env = task.env.into_iter();
    let env = env.filter(|(name, _)| !is_always_there(name));
    env.map(|(_, value)| value).collect()
}

fn is_always_there(name: &str) -> bool {
    [
        "UNDAUNTED_JOB",
        "UNDAUNTED_ITEM",
        "UNDAUNTED_ATTEMPT",
        "UNDAUNTED_RECEIPT_TOKEN",
        "UNDAUNTED_CORRELATION_ID",
    ]
    .contains(&name)
}

#[test]
fn the_commands_of_an_item_run_in_order_and_only_once() {
    let text = map("    - shell: a\n    - {shell: b, retry_config: {attempts: 1}}\n    - shell: c\n");
    let mut test = TestedJob::started_over(&text, 1);
    assert_eq!(test.succeed(0).lines(), ["attempt_succeeded 0/0 0.1, next 1"]);
    assert_eq!(test.start().lines(), ["attempt_started 0/0 1.1 as 2"]);
    assert_eq!(test.fail(0, EXIT_1).lines()[1], "retry_scheduled 0/0 1.1 in 1s at +1s");
    assert_eq!(test.at(1).start().lines(), ["attempt_started 0/0 1.2 as 3"]);
    test.succeed(0);
    assert_eq!(test.start().lines(), ["attempt_started 0/0 2.1 as 4"]);
    assert_eq!(test.succeed(0).outcome(), ("completed", None, [1, 0, 0]));
    assert_eq!(test.attempts(), 4);
}

#[test]
fn retries_and_spent_delays_belong_to_a_command() {
    let retry = "retry_config: {attempts: 1, retry_budget: 1s}";
    let text = map(&format!("    - {{shell: a, {retry}}}\n    - {{shell: b, {retry}}}\n"));
    let mut test = TestedJob::started_over(&text, 1);
    test.fail(0, EXIT_1).at(1).start().succeed(0).start();
    assert_eq!(test.fail(0, EXIT_1).lines()[1], "retry_scheduled 0/0 1.1 in 1s at +2s");
}

#[test]
fn captured_output_is_available_to_the_next_command_in_each_format() {
    for (format, output, value, text) in [
        ("string", "two words\n", json!("two words"), "two words"),
        ("json", "{\"a\": [1]}\n", json!({"a": [1]}), "{\"a\":[1]}"),
        ("lines", "x\ny\n", json!(["x", "y"]), "[\"x\",\"y\"]"),
        ("number", "42\n", json!(42), "42"),
        ("boolean", "true\n", json!(true), "true"),
    ] {
        let text_of = map(&format!(
            "    - {{shell: a, capture_output: got, capture_format: {format}}}\n    - shell: echo ${{got}}\n"
        ));
        let mut test = TestedJob::started_over(&text_of, 1);
        test.succeed_with(0, output);
        let scope = test.active(0).scope.clone().unwrap();
        assert_eq!(scope.captured.get("got"), Some(&value), "{format}");
        assert_eq!(given(&test, item_at(0)), [text], "{format}");
        test.job = test.replayed();
        assert_eq!(given(&test, item_at(0)), [text], "{format}, after a crash");
    }
}

#[test]
fn output_in_another_format_is_a_permanent_failure() {
    for (format, output) in [("json", "{"), ("number", "twelve"), ("boolean", "yes")] {
        let text = map(&format!(
            "    - {{shell: a, capture_output: got, capture_format: {format}, retry_config: {{attempts: 3}}}}\n"
        ));
        let mut test = TestedJob::started_over(&text, 1);
        let lines = test.succeed_with(0, output).lines();
        assert!(lines.contains(&"attempt_failed 0/0 0.1 Unreadable".to_owned()));
        assert_eq!(test.outcome(), ("partial", Some(Reason::Permanent), [0, 1, 0]));
    }
}

#[test]
fn a_command_without_output_captures_an_empty_text() {
    let text = map("    - {shell: a, capture_output: got}\n    - shell: echo ${got}\n");
    let mut test = TestedJob::started_over(&text, 1);
    test.succeed_with(0, "");
    assert_eq!(given(&test, item_at(0)), [""]);
}

#[test]
fn captured_output_of_an_item_is_private_to_it() {
    let text = map("    - {shell: a, capture_output: got}\n    - shell: echo ${got}\n");
    let mut test = TestedJob::started_over(&text, 2);
    test.succeed_with(0, "zero").succeed_with(1, "one");
    assert_eq!(given(&test, item_at(0)), ["zero"]);
    assert_eq!(given(&test, item_at(1)), ["one"]);
    assert_eq!(test.job.scope.captured.len(), 0);
}

#[test]
fn captured_output_of_a_list_belongs_to_the_job() {
    let mut test = TestedJob::started("- {shell: a, capture_output: got}\n- shell: echo ${got}\n");
    test.succeed_with(0, "x\n");
    assert_eq!(test.job.scope.captured.get("got"), Some(&Value::from("x")));
    assert_eq!(given(&test, StepId(1).item(0)), ["x"]);
}

#[test]
fn a_missing_value_dead_letters_the_item_as_permanent_with_no_attempt() {
    let text = map(
        "    - {shell: 'echo ${item.nowhere}', on_failure: {shell: mend}, retry_config: {attempts: 3}}\n",
    );
    let mut test = TestedJob::over(&text, 2);
    let lines = test.start().lines();
    assert_eq!(
        lines,
        [
            "text_kept ``item.nowhere` has no value`",
            "command_stopped 0/0 0.0: permanent",
            "item_dead_lettered 0/0 0.0: permanent",
            "command_stopped 0/1 0.0: permanent",
            "item_dead_lettered 0/1 0.0: permanent",
            "completion_reached 0: all_dcs_reported, missed",
            "step_completed 0",
            "job_completed partial",
        ]
    );
    assert_eq!(test.attempts(), 0);
}

#[test]
fn the_output_of_a_setup_command_is_kept_for_the_input_of_the_map() {
    let text = "
mode: mapreduce
setup: [{shell: ls, id: list}]
map:
  input: {shell: 'echo ${step.list.output}'}
  agent_template: [{shell: a}]
";
    let test = TestedJob::of(text);
    assert!(test.job.plan().wants_output(CommandId(0)));
}
