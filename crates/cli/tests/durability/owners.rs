//! Several processes on one store: a job has one owner, and a dead owner is replaced at once.

use std::fs;

use crate::history::one;
use crate::processes::signal;
use crate::sandbox::Sandbox;

const GATE: &str = "
- shell: echo $$ > up; until [ -e go ]; do sleep 0.01; done; echo done >> log
";

#[test]
fn a_second_process_learns_which_process_owns_the_job() {
    let (sandbox, engine) = Sandbox::start_workflow(GATE);
    sandbox.pid("up");
    let owner = engine.pid().to_string();
    let refused = sandbox.resume().exits(7).err_contains(&format!("process {owner}"));
    assert_eq!(refused.out, "");
    assert_eq!(sandbox.show()["owner"], engine.pid());
    // A stopped owner is not dead.
    signal(engine.pid(), "STOP");
    sandbox.resume().exits(7);
    signal(engine.pid(), "CONT");
    sandbox.write("go", "");
    engine.wait().exits(0);
    assert_eq!(sandbox.lines("log"), ["done"]);
    sandbox.lawful_events();
}

#[test]
fn a_dead_owner_is_replaced_at_once() {
    let sandbox = Sandbox::of(GATE);
    let first = sandbox.start_run();
    sandbox.pid("up");
    first.kill();
    assert_eq!(sandbox.show()["status"], "interrupted");
    let next = sandbox.start_resume();
    let resumed = sandbox.event("job_resumed");
    // No lease has to expire first.
    assert!(resumed["downtime_ms"].as_u64().unwrap() < 5000, "{resumed}");
    sandbox.resume().exits(7).err_contains(&next.pid().to_string());
    sandbox.write("go", "");
    next.wait().exits(0);
}

#[test]
fn of_many_concurrent_resumes_one_succeeds() {
    let sandbox = Sandbox::of(GATE);
    let first = sandbox.start_run();
    sandbox.pid("up");
    first.kill();
    let all: Vec<_> = (0..5).map(|_| sandbox.start_resume()).collect();
    sandbox.event("job_resumed");
    sandbox.write("go", "");
    let mut codes: Vec<i32> = all.into_iter().map(|each| each.wait().code).collect();
    codes.sort_unstable();
    // A process that comes after the end reports the result without owning the job.
    assert!(codes.iter().all(|code| [0, 7].contains(code)), "{codes:?}");
    assert_eq!(codes[0], 0);
    assert_eq!(sandbox.lines("log"), ["done"]);
    let events = sandbox.lawful_events();
    assert_eq!(one(&events, "job_resumed")["run"], 2);
}

#[test]
fn several_jobs_share_a_store_at_the_same_time() {
    let sandbox = Sandbox::new();
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
            sandbox.write(&file, &text);
            sandbox.spawn(&["run", &file, "--json"])
        })
        .collect();
    let jobs: Vec<_> = engines.into_iter().map(|engine| engine.wait().exits(0).job()).collect();
    let runs = sandbox.runs("log");
    assert_eq!(runs.len(), 48);
    assert!(runs.values().all(|runs| *runs == 1));
    for job in &jobs {
        sandbox.lawful_events_of(job);
    }
    assert_eq!(sandbox.call(&["ls", "--json"]).out.lines().count(), 4);
}

#[test]
fn one_of_several_jobs_can_be_killed_and_resumed_alone() {
    let sandbox = Sandbox::of(GATE);
    let other = "[{shell: 'echo $$ > up2; until [ -e go2 ]; do sleep 0.01; done'}]";
    sandbox.write("other.yaml", other);
    let first = sandbox.start_run();
    sandbox.pid("up");
    let job = sandbox.job();
    let second = sandbox.spawn(&["run", "other.yaml", "--json"]);
    sandbox.pid("up2");
    first.kill();
    sandbox.write("go", "");
    sandbox.call(&["resume", &job]).exits(0);
    sandbox.write("go2", "");
    second.wait().exits(0);
    let folders = fs::read_dir(sandbox.store().join("jobs")).unwrap();
    assert_eq!(folders.count(), 2, "each has a folder of its own");
}
