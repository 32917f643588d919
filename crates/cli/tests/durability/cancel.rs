//! A job is cancelled: by whoever runs it if it is run, else by the caller.

use crate::history::{all, is_lawful, one, outcomes};
use crate::processes::is_alive;
use crate::world::World;

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

/// Item 1 waits for its retry, 2 and 3 run, 4 has not begun.
fn running(world: &World) -> Vec<i32> {
    let names = ["up2", "up3", "apart2", "apart3", "child2", "child3"];
    let pids = names.map(|name| world.pid(name));
    world.event("retry_scheduled");
    pids.into()
}

fn is_cancelled(world: &World, pids: Vec<i32>) {
    let mut left = pids;
    left.retain(|pid| is_alive(*pid));
    let named = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/status"));
    let named: Vec<_> = left.iter().map(named).collect();
    assert!(left.is_empty(), "still alive: {named:?}");
    let mut log = world.lines("log");
    log.sort();
    assert_eq!(log, ["1", "2", "3"], "no handler, no reduce, nothing new");
    let events = world.events();
    is_lawful(&events);
    assert_eq!(one(&events, "job_cancelled")["reason"], "cancelled");
    let skipped = all(&events, "item_skipped");
    assert!(skipped.iter().any(|event| event["item"] == "1"), "{skipped:?}");
    assert!(skipped.iter().all(|event| event["reason"] == "cancelled"));
    assert_eq!(outcomes(&events), ["exit", "interrupted", "interrupted"]);
}

#[test]
fn a_running_job_is_cancelled_by_another_process() {
    let world = World::of(TREE);
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    let pids = running(&world);
    let cancelled = world.call(&["cancel", "@last"]).exits(0);
    assert!(cancelled.out.contains(&engine.pid().to_string()), "{cancelled:?}");
    let report = engine.wait().exits(1).json();
    assert_eq!(report["status"], "cancelled");
    assert_eq!(report["reason"], "cancelled");
    assert_eq!(report["items"]["total"], 4);
    let missing = serde_json::json!([{"item": "4", "reason": "cancelled"}]);
    assert_eq!(report["missing"], missing);
    is_cancelled(&world, pids);
    // It stays so.
    assert_eq!(world.resume().exits(1).json(), report);
    world.call(&["cancel", "@last"]).exits(0);
    assert_eq!(world.resume().exits(1).json(), report);
}

#[test]
fn an_interrupted_job_that_nobody_runs_is_cancelled_by_the_caller() {
    let world = World::of(TREE);
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    let pids = running(&world);
    engine.kill();
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    let cancelled = world.call(&["cancel", "@last", "--json"]).exits(0);
    assert_eq!(cancelled.json()["status"], "cancelled");
    is_cancelled(&world, pids);
    world.resume().exits(1);
}

#[test]
fn a_request_to_a_process_that_dies_is_not_lost() {
    let world = World::of(TREE);
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    let pids = running(&world);
    // It cannot act upon it any more.
    engine.signal("STOP");
    world.call(&["cancel", "@last"]).exits(0);
    engine.kill();
    let report = world.resume().exits(1).json();
    assert_eq!(report["status"], "cancelled");
    is_cancelled(&world, pids);
}

#[test]
fn a_suspended_job_is_cancelled() {
    let world = World::of(
        "
- shell: echo run >> log; exit 1
  retry_config: {attempts: 3, initial_delay: 30s}
",
    );
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.event("retry_scheduled");
    engine.signal("INT");
    engine.wait().exits(75);
    world.call(&["cancel", "@last"]).exits(0);
    let report = world.resume().exits(1).json();
    assert_eq!(report["status"], "cancelled");
    assert_eq!(report["items"]["skipped"], 1);
    assert_eq!(world.lines("log"), ["run"]);
}

#[test]
fn an_ended_job_cannot_be_cancelled_any_more() {
    let world = World::of("[{shell: 'true'}]");
    let report = world.run().exits(0).json();
    let events = world.events();
    let said = world.call(&["cancel", "@last", "--json"]).exits(0);
    assert_eq!(said.json(), report);
    assert_eq!(world.events(), events);
    world.call(&["cancel", "nosuchjob"]).exits(6);
}

#[test]
fn a_start_that_never_began_does_not_begin_because_of_a_cancellation() {
    let world = World::of("[{shell: echo run >> log}]");
    let die = [("UNDAUNTED_TEST_DIE", "begin-before:1")];
    assert_eq!(world.call_with(&["run", "w.yaml"], &die).code, -9);
    world.call(&["cancel", "@last"]).exits(0);
    assert_eq!(world.resume().exits(1).json()["status"], "cancelled");
    assert!(!world.path("log").exists());
    is_lawful(&world.events());
}

#[test]
fn a_command_that_gives_items_is_ended_too() {
    let world = World::of(
        "
mode: mapreduce
map: {input: {shell: echo $$ > up; exec sleep 1000}, agent_template: [{shell: echo >> log}]}
reduce: [{shell: echo >> log}]
",
    );
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    let pid = world.pid("up");
    world.call(&["cancel", "@last"]).exits(0);
    let report = engine.wait().exits(1).json();
    assert_eq!(report["status"], "cancelled");
    assert!(!is_alive(pid) && !world.path("log").exists());
}

#[test]
fn a_child_that_had_no_mark_while_another_command_ended_is_ended_with_its_own() {
    // In the moment of `exec` the system shows no environment; here the moment is as long as we like.
    let world = World::of(
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
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    let child = world.pid("bare");
    world.event("attempt_failed");
    world.write("go", "");
    World::eventually("the mark", || {
        let line = std::fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap();
        line.starts_with("sleep").then_some(())
    });
    world.call(&["cancel", "@last"]).exits(0);
    engine.wait().exits(1);
    assert!(!is_alive(child), "it outlives its command");
}

#[test]
fn a_job_that_has_much_to_say_to_a_breaker_hears_what_it_is_asked() {
    let world = World::of(
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
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.event("item_succeeded");
    // Once it may happen to listen between two batches; time and again it does not.
    for _ in 0..10 {
        world.call(&["pause", "@last"]).exits(0);
        World::eventually("a pause", || (world.show()["status"] == "paused").then_some(()));
        world.call(&["unpause", "@last"]).exits(0);
        World::eventually("its end", || (world.show()["status"] != "paused").then_some(()));
    }
    world.call(&["cancel", "@last"]).exits(0);
    let report = engine.wait().exits(1).json();
    assert_eq!(report["status"], "cancelled");
    let succeeded = report["items"]["succeeded"].as_u64();
    assert!(succeeded < Some(15_000), "{succeeded:?}");
}
