//! Which item starts when.

use crate::history::{all, is_lawful, text};
use crate::world::World;

#[test]
fn items_start_in_input_order() {
    for parallel in [1, 3] {
        let world = World::of(&format!(
            "
mode: mapreduce
map:
  input: {{shell: seq 1 30}}
  max_parallel: {parallel}
  agent_template: [{{shell: 'true'}}]
"
        ));
        world.run().exits(0);
        let events = world.events();
        let started = all(&events, "attempt_started");
        let order: Vec<_> = started.iter().map(|event| event["index"].as_u64()).collect();
        assert_eq!(order, (0..30).map(Some).collect::<Vec<_>>());
    }
}

#[test]
fn due_retries_go_before_new_items_and_a_waiting_item_holds_no_slot() {
    let world = World::of(
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
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.wait_for_lines("log", 2);
    let due = world.event("retry_scheduled")["due_at"].clone();
    // Another item has its slot until the retry is due.
    World::eventually("the due time", || (world.show()["waiting"][0]["due_in_ms"] == 0).then_some(()));
    assert_eq!(world.lines("log"), ["a", "b"], "it was due at {due}");
    world.write("go", "");
    engine.wait().exits(0);
    assert_eq!(world.lines("log"), ["a", "b", "a", "c", "d"]);
    is_lawful(&world.events());
}

#[test]
fn ten_items_run_at_a_time_unless_somebody_says_otherwise() {
    let world = World::of(
        "
mode: mapreduce
map:
  input: {shell: seq 1 12}
  agent_template: [{shell: 'echo ${item} >> log; until [ -e go ]; do sleep 0.05; done'}]
",
    );
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.wait_for_lines("log", 10);
    let shown = world.show();
    let map = shown["steps"].as_array().unwrap().iter().find(|step| step["items"] == 12);
    assert_eq!(map.unwrap()["running"], 10, "{shown}");
    world.write("go", "");
    engine.wait().exits(0);
    assert_eq!(world.lines("log").len(), 12);
}

#[test]
fn commands_of_an_item_run_in_order_and_finished_ones_only_once() {
    let world = World::of(
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
    );
    world.run().exits(0);
    for item in ["1", "2"] {
        let log = world.lines("log");
        let own: Vec<_> = log.iter().filter(|line| line.starts_with(item)).collect();
        let expected = ["one", "two", "two", "two", "three"];
        assert_eq!(own, expected.map(|name| format!("{item}-{name}")).iter().collect::<Vec<_>>());
    }
}

#[test]
fn setup_runs_before_the_items_are_read_and_reduce_after_all_of_them() {
    let world = World::of(
        "
mode: mapreduce
setup: {commands: [{shell: 'printf \"x\\ny\\n\" > items.txt; echo setup >> log'}]}
map: {input: items.txt, agent_template: [{shell: 'echo ${item} >> log; rm -f items.txt'}]}
reduce: {commands: [{shell: echo reduce >> log}]}
",
    );
    world.run().exits(0);
    let log = world.lines("log");
    assert_eq!((log[0].as_str(), log[3].as_str()), ("setup", "reduce"));
    assert_eq!(log.len(), 4);
}

#[test]
fn items_are_read_once_and_stored() {
    let world = World::of(
        "
mode: mapreduce
map:
  input: {shell: 'echo read >> reads; seq 1 3'}
  max_parallel: 1
  agent_template: [{shell: 'echo ${item} >> log; until [ -e go ]; do sleep 0.01; done'}]
",
    );
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.wait_for_lines("log", 1);
    engine.kill();
    world.write("go", "");
    world.resume().exits(0);
    assert_eq!(world.lines("log"), ["1", "2", "3"]);
    assert_eq!(world.lines("reads"), ["read"]);
    let read = world.event("items_read");
    assert_eq!(read["items"], 3, "{}", text(&read["type"]));
}
