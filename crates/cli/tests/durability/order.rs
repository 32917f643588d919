//! The order in which items start.

use crate::history::{all, text};
use crate::sandbox::Sandbox;

#[test]
fn items_start_in_input_order() {
    for parallel in [1, 3] {
        let (sandbox, _) = Sandbox::run_workflow(
            &format!(
                "
mode: mapreduce
map:
  input: {{shell: seq 1 30}}
  max_parallel: {parallel}
  agent_template: [{{shell: 'true'}}]
"
            ),
            0,
        );
        let events = sandbox.events();
        let started = all(&events, "attempt_started");
        let order: Vec<_> = started.iter().map(|event| event["index"].as_u64()).collect();
        assert_eq!(order, (0..30).map(Some).collect::<Vec<_>>());
    }
}

#[test]
fn due_retries_go_before_new_items_and_a_waiting_item_holds_no_slot() {
    let (sandbox, engine) = Sandbox::start_workflow(
        "
mode: mapreduce
map:
  input: {shell: printf 'a\\nb\\nc\\nd\\n'}
  max_parallel: 1
  agent_template:
    - shell: |
        echo ${item} >> log
        test ${item} = a && exec test $UNDAUNTED_ATTEMPT -gt 1
        test ${item} = b && until [ -e go ]; do sleep 0.01; done
        true
      retry_config: {attempts: 2, backoff: fixed, initial_delay: 20ms}
",
    );
    sandbox.wait_for_lines("log", 2);
    let due = sandbox.event("retry_scheduled")["due_at"].clone();
    // While item a waits for its retry, item b has the slot.
    Sandbox::wait_until("the due time", || sandbox.show()["waiting"][0]["due_in_ms"] == 0);
    assert_eq!(sandbox.lines("log"), ["a", "b"], "it was due at {due}");
    sandbox.write("go", "");
    engine.wait().exits(0);
    assert_eq!(sandbox.lines("log"), ["a", "b", "a", "c", "d"]);
    sandbox.lawful_events();
}

#[test]
fn ten_items_run_at_a_time_by_default() {
    let (sandbox, engine) = Sandbox::start_workflow(
        "
mode: mapreduce
map:
  input: {shell: seq 1 12}
  agent_template: [{shell: 'echo ${item} >> log; until [ -e go ]; do sleep 0.05; done'}]
",
    );
    sandbox.wait_for_lines("log", 10);
    let job = sandbox.show();
    let map = job["steps"].as_array().unwrap().iter().find(|step| step["items"] == 12);
    assert_eq!(map.unwrap()["running"], 10, "{job}");
    sandbox.write("go", "");
    engine.wait().exits(0);
    assert_eq!(sandbox.lines("log").len(), 12);
}

#[test]
fn commands_of_an_item_run_in_order_and_finished_ones_only_once() {
    let (sandbox, _) = Sandbox::run_workflow(
        "
mode: mapreduce
map:
  input: {shell: seq 1 2}
  max_parallel: 1
  agent_template:
    - shell: echo ${item}-one >> log
    - shell: echo ${item}-two >> log; test $UNDAUNTED_ATTEMPT -gt 2
      retry_config: {attempts: 2, backoff: fixed, initial_delay: 3ms}
    - shell: echo ${item}-three >> log
",
        0,
    );
    for item in ["1", "2"] {
        let log = sandbox.lines("log");
        let own: Vec<_> = log.iter().filter(|line| line.starts_with(item)).collect();
        let expected = ["one", "two", "two", "two", "three"];
        assert_eq!(own, expected.map(|name| format!("{item}-{name}")).iter().collect::<Vec<_>>());
    }
}

#[test]
fn setup_runs_before_the_items_are_read_and_reduce_after_all_of_them() {
    let (sandbox, _) = Sandbox::run_workflow(
        "
mode: mapreduce
setup: {commands: [{shell: 'printf \"x\\ny\\n\" > items.txt; echo setup >> log'}]}
map: {input: items.txt, agent_template: [{shell: 'echo ${item} >> log; rm -f items.txt'}]}
reduce: {commands: [{shell: echo reduce >> log}]}
",
        0,
    );
    let log = sandbox.lines("log");
    assert_eq!((log[0].as_str(), log[3].as_str()), ("setup", "reduce"));
    assert_eq!(log.len(), 4);
}

#[test]
fn items_are_read_once_and_stored() {
    let (sandbox, engine) = Sandbox::start_workflow(
        "
mode: mapreduce
map:
  input: {shell: 'echo read >> reads; seq 1 3'}
  max_parallel: 1
  agent_template: [{shell: 'echo ${item} >> log; until [ -e go ]; do sleep 0.01; done'}]
",
    );
    sandbox.wait_for_lines("log", 1);
    engine.kill();
    sandbox.write("go", "");
    sandbox.resume().exits(0);
    assert_eq!(sandbox.lines("log"), ["1", "2", "3"]);
    assert_eq!(sandbox.lines("reads"), ["read"]);
    let read = sandbox.event("items_read");
    assert_eq!(read["items"], 3, "{}", text(&read["type"]));
}
