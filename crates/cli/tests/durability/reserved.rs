//! Reserved starts of maps: whichever process dies, and whatever stops the job, none is lost, repeated or charged.

use serde_json::Value;

use crate::history::{all, assert_fields, count, one, starts};
use crate::sandbox::Sandbox;

/// One slot. Each item writes its name to `log` and waits for the file `go`.
const MAP: &str = "
mode: mapreduce
map:
  input: items.json
  json_path: $[*]
  max_parallel: 1
  agent_template:
    - shell: |
        echo ${item} >> log
        until [ -e go ]; do sleep 0.01; done
      retry_config: {attempts: 2, backoff: fixed, initial_delay: 5ms}
";

/// A job whose first item runs, and for the second of which a start is reserved.
fn reserved() -> (Sandbox, crate::processes::ChildProcess) {
    let sandbox = Sandbox::of(MAP);
    sandbox.write("items.json", r#"["a", "b", "c"]"#);
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    sandbox.event("start_reserved");
    sandbox.wait_for_lines("log", 1);
    (sandbox, engine)
}

/// Every item ran once, in order, and every start that is on record began or was withdrawn.
fn ran_once(sandbox: &Sandbox) -> Vec<Value> {
    assert_eq!(sandbox.lines("log"), ["a", "b", "c"]);
    let events = sandbox.lawful_events();
    let mut attempts = starts(&events).into_values();
    assert!(attempts.all(|attempts| attempts == 1), "{events:?}");
    let reserved = count(&events, "start_reserved");
    let begun = all(&events, "attempt_started").iter().filter(|it| it["began_at"].is_string()).count();
    assert_eq!(reserved, begun + count(&events, "reservation_withdrawn"));
    events
}

#[test]
fn a_reserved_start_begins_when_the_slot_is_free() {
    let (sandbox, engine) = reserved();
    assert_eq!(starts(&sandbox.events()).len(), 1, "a reserved start is no attempt");
    sandbox.write("go", "");
    engine.wait().exits(0);
    let events = ran_once(&sandbox);
    assert_eq!(count(&events, "reservation_withdrawn"), 0);
    assert_eq!(sandbox.show()["attempts"], 3);
}

#[test]
fn when_the_engine_is_killed_its_reserved_start_does_not_begin_and_is_withdrawn_for_nothing() {
    let (sandbox, engine) = reserved();
    engine.kill();
    sandbox.write("go", "");
    sandbox.wait_for_no_keeper();
    assert_eq!(sandbox.lines("log"), ["a"], "no engine, no start");
    sandbox.resume().exits(0);
    let events = ran_once(&sandbox);
    assert_eq!(one(&events, "reservation_withdrawn")["item"], "b");
    assert_fields!(sandbox.show(), {"attempts": 3, "retries": 0});
}

#[test]
fn when_engine_and_keeper_are_killed_a_reserved_start_is_withdrawn_for_nothing() {
    let (sandbox, engine) = reserved();
    engine.kill();
    for keeper in sandbox.keepers() {
        crate::processes::kill(keeper);
    }
    sandbox.write("go", "");
    sandbox.resume().exits(0);
    assert_eq!(sandbox.sorted_lines("log"), ["a", "a", "b", "c"], "the first item was running");
    let events = sandbox.lawful_events();
    assert_eq!(one(&events, "reservation_withdrawn")["item"], "b");
    assert_fields!(sandbox.show(), {"attempts": 4, "retries": 1});
}

#[test]
fn a_paused_or_suspended_job_begins_no_reserved_start() {
    let (sandbox, engine) = reserved();
    let job = sandbox.job();
    sandbox.call(&["pause", &job]).exits(0);
    sandbox.event("job_paused");
    sandbox.write("go", "");
    sandbox.event("item_succeeded");
    assert_eq!(sandbox.lines("log"), ["a"]);
    engine.signal("INT");
    engine.wait().exits(75);
    sandbox.call(&["unpause", &job]).exits(0);
    sandbox.resume().exits(0);
    let events = ran_once(&sandbox);
    let place = |kind: &str| events.iter().position(|event| event["type"] == kind);
    assert!(place("reservation_withdrawn") < place("job_paused"));
}

#[test]
fn a_ctrl_c_withdraws_the_reserved_start_and_waits_for_what_runs() {
    let (sandbox, engine) = reserved();
    engine.signal("INT");
    sandbox.event("reservation_withdrawn");
    sandbox.write("go", "");
    engine.wait().exits(75);
    assert_eq!(sandbox.lines("log"), ["a"]);
    sandbox.resume().exits(0);
    ran_once(&sandbox);
}

#[test]
fn a_cancelled_job_begins_no_reserved_start() {
    let (sandbox, engine) = reserved();
    sandbox.call(&["cancel", &sandbox.job()]).exits(0);
    engine.wait();
    assert_eq!(sandbox.lines("log"), ["a"]);
    let events = sandbox.lawful_events();
    let place = |kind: &str| events.iter().position(|event| event["type"] == kind);
    assert!(place("reservation_withdrawn") < place("job_stopping"));
    assert_eq!(count(&events, "attempt_started"), 1);
}

#[test]
fn a_retry_that_is_due_goes_before_a_reserved_start() {
    let sandbox = Sandbox::of(
        "
mode: mapreduce
map:
  input: items.json
  json_path: $[*]
  max_parallel: 2
  agent_template:
    - shell: |
        echo ${item}$UNDAUNTED_ATTEMPT >> log
        [ ${item} != a ] || [ $UNDAUNTED_ATTEMPT = 2 ] || exit 1
        until [ -e go-${item} ]; do sleep 0.01; done
      retry_config: {attempts: 2, backoff: fixed, initial_delay: 300ms}
",
    );
    sandbox.write("items.json", r#"["a", "b", "c", "d", "e"]"#);
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    // `b` and `c` have the slots when the retry of `a` falls due.
    sandbox.wait_for_lines("log", 3);
    sandbox.event("reservation_withdrawn");
    sandbox.write("go-b", "");
    sandbox.wait_for_lines("log", 4);
    assert_eq!(sandbox.lines("log")[3], "a2");
    for item in ["a", "c", "d", "e"] {
        sandbox.write(&format!("go-{item}"), "");
    }
    engine.wait().exits(0);
    assert_eq!(sandbox.sorted_lines("log"), ["a1", "a2", "b1", "c1", "d1", "e1"]);
    sandbox.lawful_events();
}
