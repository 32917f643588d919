//! A job is cancelled by its owner if it has one, else by the caller.

use crate::history::{all, assert_fields, one, outcomes};
use crate::processes::is_alive;
use crate::sandbox::Sandbox;

const TREE: &str = "
mode: mapreduce
map:
  input: {shell: seq 1 4}
  max_parallel: 2
  agent_template:
    - shell: |
        export N=${item}
        echo $N >> log
        test $N = 1 && exit 1
        (setsid sh -c 'echo $$ > apart$N; exec sleep 1000' &)
        sleep 1000 & echo $! > child$N
        until [ -s apart$N ]; do sleep 0.01; done
        echo $$ > up$N
        wait
      retry_config: {attempts: 3, initial_delay: 30s}
      on_failure: {shell: echo handler >> log}
reduce:
  - shell: echo reduced >> log
";

/// Waits until item 1 waits for its retry, 2 and 3 run, and 4 has not begun.
fn wait_until_running(sandbox: &Sandbox) -> Vec<i32> {
    let names = ["up2", "up3", "apart2", "apart3", "child2", "child3"];
    let pids = names.map(|name| sandbox.pid(name));
    sandbox.event("retry_scheduled");
    pids.into()
}

fn assert_cancelled(sandbox: &Sandbox, pids: Vec<i32>) {
    let mut left = pids;
    left.retain(|pid| is_alive(*pid));
    let named = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/status"));
    let named: Vec<_> = left.iter().map(named).collect();
    assert!(left.is_empty(), "still alive: {named:?}");
    let log = sandbox.sorted_lines("log");
    assert_eq!(log, ["1", "2", "3"], "no handler, no reduce, nothing new");
    let events = sandbox.lawful_events();
    assert_eq!(one(&events, "job_cancelled")["reason"], "cancelled");
    let skipped = all(&events, "item_skipped");
    assert!(skipped.iter().any(|event| event["item"] == "1"), "{skipped:?}");
    assert!(skipped.iter().all(|event| event["reason"] == "cancelled"));
    assert_eq!(outcomes(&events), ["exit", "interrupted", "interrupted"]);
}

#[test]
fn a_running_job_is_cancelled_by_another_process() {
    let (sandbox, engine) = Sandbox::start_workflow(TREE);
    let pids = wait_until_running(&sandbox);
    let cancelled = sandbox.call(&["cancel", "@last"]).exits(0);
    assert!(cancelled.out.contains(&engine.pid().to_string()), "{cancelled:?}");
    let report = engine.wait().exits(1).json();
    assert_fields!(report, {"status": "cancelled", "reason": "cancelled"});
    assert_eq!(report["items"]["total"], 4);
    let missing = serde_json::json!([{"item": "4", "reason": "cancelled"}]);
    assert_eq!(report["missing"], missing);
    assert_cancelled(&sandbox, pids);
    // The job stays cancelled.
    assert_eq!(sandbox.resume().exits(1).json(), report);
    sandbox.call(&["cancel", "@last"]).exits(0);
    assert_eq!(sandbox.resume().exits(1).json(), report);
}

#[test]
fn an_interrupted_job_without_an_owner_is_cancelled_by_the_caller() {
    let (sandbox, engine) = Sandbox::start_workflow(TREE);
    let pids = wait_until_running(&sandbox);
    engine.kill();
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    let cancelled = sandbox.call(&["cancel", "@last", "--json"]).exits(0);
    assert_eq!(cancelled.json()["status"], "cancelled");
    assert_cancelled(&sandbox, pids);
    sandbox.resume().exits(1);
}

#[test]
fn a_request_to_a_process_that_dies_is_not_lost() {
    let (sandbox, engine) = Sandbox::start_workflow(TREE);
    let pids = wait_until_running(&sandbox);
    // A stopped process cannot act on the request any more.
    engine.signal("STOP");
    sandbox.call(&["cancel", "@last"]).exits(0);
    engine.kill();
    let report = sandbox.resume().exits(1).json();
    assert_eq!(report["status"], "cancelled");
    assert_cancelled(&sandbox, pids);
}

#[test]
fn a_suspended_job_is_cancelled() {
    let sandbox = Sandbox::of(
        "
- shell: echo run >> log; exit 1
  retry_config: {attempts: 3, initial_delay: 30s}
",
    );
    sandbox.run_suspended_at("retry_scheduled");
    sandbox.call(&["cancel", "@last"]).exits(0);
    let report = sandbox.resume().exits(1).json();
    assert_eq!(report["status"], "cancelled");
    assert_eq!(report["items"]["skipped"], 1);
    assert_eq!(sandbox.lines("log"), ["run"]);
}

#[test]
fn an_ended_job_cannot_be_cancelled_any_more() {
    let (sandbox, report) = Sandbox::run_workflow("[{shell: 'true'}]", 0);
    let events = sandbox.events();
    let cancelled = sandbox.call(&["cancel", "@last", "--json"]).exits(0);
    assert_eq!(cancelled.json(), report);
    assert_eq!(sandbox.events(), events);
    sandbox.call(&["cancel", "nosuchjob"]).exits(6);
}

#[test]
fn a_start_that_never_began_does_not_begin_because_of_a_cancellation() {
    let sandbox = Sandbox::of("[{shell: echo run >> log}]");
    sandbox.run_dying_at("begin-before:1");
    sandbox.call(&["cancel", "@last"]).exits(0);
    assert_eq!(sandbox.resume().exits(1).json()["status"], "cancelled");
    assert!(!sandbox.path("log").exists());
    sandbox.lawful_events();
}

#[test]
fn a_cancelled_job_ends_its_input_command_too() {
    let (sandbox, engine) = Sandbox::start_workflow(
        "
mode: mapreduce
map: {input: {shell: echo $$ > up; exec sleep 1000}, agent_template: [{shell: echo >> log}]}
reduce: [{shell: echo >> log}]
",
    );
    let pid = sandbox.pid("up");
    sandbox.call(&["cancel", "@last"]).exits(0);
    let report = engine.wait().exits(1).json();
    assert_eq!(report["status"], "cancelled");
    assert!(!is_alive(pid) && !sandbox.path("log").exists());
}

#[test]
fn a_child_that_had_no_mark_while_another_command_ended_is_ended_with_its_own() {
    // During `exec` the system shows no environment for an instant; this child has none for as long as the
    // test needs.
    let (sandbox, engine) = Sandbox::start_workflow(
        "
mode: mapreduce
map:
  input: {shell: seq 1 2}
  agent_template:
    - shell: |
        if [ ${item} = 1 ]; then
          until [ -s bare ]; do sleep 0.01; done
          exit 1
        fi
        M=$UNDAUNTED_RUN
        (setsid env -i M=\"$M\" PATH=\"$PATH\" sh -c '
          echo $$ > bare
          until [ -e go ]; do sleep 0.01; done
          UNDAUNTED_RUN=$M exec sleep 1000' &)
        sleep 1000
",
    );
    let child = sandbox.pid("bare");
    sandbox.event("attempt_failed");
    sandbox.write("go", "");
    Sandbox::wait_until("the marked process", || {
        let line = std::fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap();
        line.starts_with("sleep")
    });
    sandbox.call(&["cancel", "@last"]).exits(0);
    engine.wait().exits(1);
    assert!(!is_alive(child), "it outlives its command");
}

#[test]
fn a_job_that_reports_much_to_a_breaker_still_handles_requests() {
    let (sandbox, engine) = Sandbox::start_workflow(
        "
mode: mapreduce
map:
  input: {shell: seq 1 30000}
  max_parallel: 40
  agent_template:
    - shell: ':'
      breaker: {name: busy}
",
    );
    sandbox.event("item_succeeded");
    // One request may be taken by chance between two batches; ten are not.
    for _ in 0..10 {
        sandbox.call(&["pause", "@last"]).exits(0);
        Sandbox::wait_until("a pause", || sandbox.show()["status"] == "paused");
        sandbox.call(&["unpause", "@last"]).exits(0);
        Sandbox::wait_until("the end", || sandbox.show()["status"] != "paused");
    }
    sandbox.call(&["cancel", "@last"]).exits(0);
    let report = engine.wait().exits(1).json();
    assert_eq!(report["status"], "cancelled");
    let succeeded = report["items"]["succeeded"].as_u64();
    assert!(succeeded < Some(15_000), "{succeeded:?}");
}
