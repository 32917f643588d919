//! Which items start first, and how many run.

use undaunted_engine::id::StepId;
use undaunted_engine::input::Input;
use undaunted_policy::Reason;

use crate::fixture::{EXIT_1, TestedJob, event_lines, input_failed, item_at, start_input};

fn map(parallel: &str) -> String {
    format!(
        "
mode: mapreduce
map:
  input: a.json
  {parallel}
  error_policy: {{retry_config: {{attempts: 3}}}}
  agent_template: [{{shell: a}}, {{shell: b}}]
reduce: [{{shell: r}}]
"
    )
}

fn start(item: u32) -> Input {
    start_input(item_at(item))
}

#[test]
fn items_start_in_input_order_up_to_the_parallelism() {
    let mut test = TestedJob::over(&map("max_parallel: 3"), 5);
    assert_eq!(test.ready(), [item_at(0), item_at(1), item_at(2)]);
    test.start();
    assert_eq!(test.ready(), []);
}

#[test]
fn ten_items_run_at_a_time_by_default() {
    let test = TestedJob::over(&map("max_parallel: 10"), 30);
    let silent = TestedJob::over(&map(""), 30);
    assert_eq!(test.ready().len(), 10);
    assert_eq!(silent.ready().len(), 10);
}

#[test]
fn no_more_items_start_than_the_parallelism_allows() {
    let mut test = TestedJob::over(&map("max_parallel: 2"), 5);
    for item in 0..5 {
        test.feed(&start(item));
    }
    assert_eq!(test.running(), 2);
}

#[test]
fn an_item_out_of_its_turn_is_not_started() {
    let mut test = TestedJob::over(&map("max_parallel: 2"), 5);
    assert_eq!(test.feed(&start(3)).lines(), [""; 0]);
    assert_eq!(test.feed(&start(99)).lines(), [""; 0]);
    assert_eq!(test.feed(&start(0)).lines(), ["attempt_started 0/0 0.1 as 1"]);
    assert_eq!(test.feed(&start(0)).lines(), [""; 0], "it runs already");
}

#[test]
fn a_waiting_item_uses_no_slot() {
    let mut test = TestedJob::started_over(&map("max_parallel: 1"), 3);
    test.fail(0, EXIT_1);
    assert_eq!(test.ready(), [item_at(1)]);
}

#[test]
fn due_retries_and_started_items_go_before_new_ones() {
    let mut test = TestedJob::started_over(&map("max_parallel: 3"), 9);
    test.fail(2, EXIT_1).pass(std::time::Duration::from_millis(1)).fail(0, EXIT_1).succeed(1);
    // Item 1 only waits for a slot; the others are not due yet.
    assert_eq!(test.ready(), [item_at(1), item_at(3), item_at(4)]);
    test.at(5);
    // By due time, then by index.
    assert_eq!(test.ready(), [item_at(1), item_at(2), item_at(0)]);
}

#[test]
fn there_is_no_wake_up_while_no_slot_is_free() {
    let mut test = TestedJob::started_over(&map("max_parallel: 1"), 2);
    test.fail(0, EXIT_1);
    assert!(test.next_wake().is_some());
    test.start();
    assert_eq!(test.next_wake(), None);
}

#[test]
fn a_map_with_no_items_is_complete_and_reduce_runs() {
    let mut test = TestedJob::of(&map("max_parallel: 1"));
    assert_eq!(test.effects(), ["read the items of 0"]);
    let read = Input::ItemsRead { step: StepId(0), items: Vec::new(), warning: None };
    assert_eq!(
        test.feed(&read).lines(),
        [
            "items_read 0: 0",
            "completion_reached 0: all_dcs_reported, met",
            "step_completed 0",
            "step_started 1"
        ]
    );
    assert_eq!(test.start().succeed(0).outcome(), ("completed", None, [0, 0, 0]));
}

#[test]
fn items_that_cannot_be_read_fail_the_job() {
    let mut test = TestedJob::of(&map("max_parallel: 1"));
    let failed = input_failed(Reason::Permanent, "a.json is not there");
    assert_eq!(test.feed(&failed).lines()[1..], ["input_failed 0: permanent", "job_failed permanent"]);
    assert_eq!(test.report().error.as_deref(), Some("a.json is not there"));
}

#[test]
fn items_are_read_once() {
    let mut test = TestedJob::over(&map("max_parallel: 1"), 2);
    let again = Input::ItemsRead { step: StepId(0), items: Vec::new(), warning: None };
    assert_eq!(test.feed(&again).lines(), [""; 0]);
    let late =
        Input::InputFailed { step: StepId(0), reason: Reason::Permanent, error: String::new(), stderr: None };
    assert_eq!(test.feed(&late).lines(), [""; 0]);
    assert_eq!(test.job.steps[0].items.len(), 2);
}

#[test]
fn many_items_are_stored_in_several_records_and_read_in_order() {
    let mut test = TestedJob::of(&map("max_parallel: 1"));
    let items = (0..10).map(|number| undaunted_engine::event::NewItem {
        identity: format!("a{number}"),
        input: format!("\"{}\"", "x".repeat(300_000)),
    });
    let read = Input::ItemsRead { step: StepId(0), items: items.collect(), warning: None };
    let records = test.feed(&read).records();
    assert_eq!(event_lines(&records), ["items_read 0: 4", "items_read 0: 4", "items_read 0: 2"]);
    let step = &test.replayed().steps[0];
    assert_eq!(step.items.len(), 10);
    assert_eq!(step.items.identity(9), "a9");
}

#[test]
fn setup_the_map_and_reduce_run_in_this_order() {
    let text = map("max_parallel: 1").replace("map:\n", "setup: [{shell: s}, {shell: t}]\nmap:\n");
    let mut test = TestedJob::of(&text);
    for _ in 0..2 {
        assert_eq!(test.effects(), [""; 0]);
        test.start().succeed(0);
    }
    assert_eq!(test.effects(), ["read the items of 2"]);
    test.items(1);
    for _ in 0..3 {
        test.start().succeed(0);
    }
    assert_eq!(test.outcome(), ("completed", None, [1, 0, 0]));
    assert_eq!(test.attempts(), 5);
}
