//! Several processes on one store: one owner for a job, and a dead one is replaced at once.

use std::fs;

use crate::history::{is_lawful, one};
use crate::processes::signal;
use crate::world::World;

const GATE: &str = "
- shell: echo $$ > up; until [ -e go ]; do sleep 0.01; done; echo done >> log
";

#[test]
fn a_second_process_is_told_who_owns_the_job() {
    let world = World::of(GATE);
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.pid("up");
    let owner = engine.pid().to_string();
    let refused = world.resume().exits(7);
    assert!(refused.err.contains(&format!("process {owner}")), "{refused:?}");
    assert_eq!(refused.out, "");
    assert_eq!(world.show()["owner"], engine.pid());
    // One that does not answer is not dead.
    signal(engine.pid(), "STOP");
    world.resume().exits(7);
    signal(engine.pid(), "CONT");
    world.write("go", "");
    engine.wait().exits(0);
    assert_eq!(world.lines("log"), ["done"]);
    is_lawful(&world.events());
}

#[test]
fn a_dead_owner_is_replaced_at_once() {
    let world = World::of(GATE);
    let first = world.spawn(&["run", "w.yaml", "--json"]);
    world.pid("up");
    first.kill();
    assert_eq!(world.show()["status"], "interrupted");
    let next = world.spawn(&["resume", "@last", "--json"]);
    let resumed = world.event("job_resumed");
    // There is no lease to run out.
    assert!(resumed["downtime_ms"].as_u64().unwrap() < 5000, "{resumed}");
    let refused = world.resume().exits(7);
    assert!(refused.err.contains(&next.pid().to_string()), "{refused:?}");
    world.write("go", "");
    next.wait().exits(0);
}

#[test]
fn of_many_that_go_on_at_once_one_does() {
    let world = World::of(GATE);
    let first = world.spawn(&["run", "w.yaml", "--json"]);
    world.pid("up");
    first.kill();
    let all: Vec<_> = (0..5).map(|_| world.spawn(&["resume", "@last", "--json"])).collect();
    world.event("job_resumed");
    world.write("go", "");
    let mut codes: Vec<i32> = all.into_iter().map(|each| each.wait().code).collect();
    codes.sort_unstable();
    // Who comes when it is over is told the result, which is no ownership.
    assert!(codes.iter().all(|code| [0, 7].contains(code)), "{codes:?}");
    assert_eq!(codes[0], 0);
    assert_eq!(world.lines("log"), ["done"]);
    let events = world.events();
    is_lawful(&events);
    assert_eq!(one(&events, "job_resumed")["run"], 2);
}

#[test]
fn several_jobs_share_a_store_at_the_same_time() {
    let world = World::new();
    let names = ["a", "b", "c", "d"];
    let engines: Vec<_> = names
        .iter()
        .map(|name| {
            let file = format!("{name}.yaml");
            let text = format!(
                "
mode: mapreduce
map:
  input: {{shell: seq 1 12}}
  max_parallel: 2
  agent_template: [{{shell: 'echo {name}-${{item}} >> log'}}]
"
            );
            world.write(&file, &text);
            world.spawn(&["run", &file, "--json"])
        })
        .collect();
    let jobs: Vec<_> = engines.into_iter().map(|engine| engine.wait().exits(0).job()).collect();
    let runs = world.runs("log");
    assert_eq!(runs.len(), 48);
    assert!(runs.values().all(|runs| *runs == 1));
    for job in &jobs {
        is_lawful(&world.events_of(job));
    }
    assert_eq!(world.call(&["ls", "--json"]).out.lines().count(), 4);
}

#[test]
fn one_of_several_jobs_can_be_killed_and_gone_on_with_alone() {
    let world = World::of(GATE);
    let other = "[{shell: 'echo $$ > up2; until [ -e go2 ]; do sleep 0.01; done'}]";
    world.write("other.yaml", other);
    let first = world.spawn(&["run", "w.yaml", "--json"]);
    world.pid("up");
    let job = world.job();
    let second = world.spawn(&["run", "other.yaml", "--json"]);
    world.pid("up2");
    first.kill();
    world.write("go", "");
    world.call(&["resume", &job]).exits(0);
    world.write("go2", "");
    second.wait().exits(0);
    let folders = fs::read_dir(world.store().join("jobs")).unwrap();
    assert_eq!(folders.count(), 2, "each has a folder of its own");
}
