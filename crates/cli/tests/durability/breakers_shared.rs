//! One breaker for all jobs of a store, whichever process runs them.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use crate::history::{all, changes, held, is_lawful, outcomes, probes, running, starts};
use crate::processes::Running;
use crate::world::World;

const SETTINGS: &str = "failure_threshold: 3, recovery_timeout: 10s, half_open_max_calls: 2";

/// A workflow whose items need what is there while the file `up` is.
fn workflow(name: &str, items: u32, breaker: &str) -> String {
    format!(
        "
name: {name}
mode: mapreduce
map:
  input: {{shell: seq 1 {items}}}
  max_parallel: 3
  agent_template:
    - id: call
      shell: |
        if [ -e up ]; then echo done-{name}-${{item}} >> log; exit; fi
        echo failed-{name}-${{item}} >> log
        exit 1
      breaker: {{name: shared, {breaker}}}
      retry_config: {{attempts: 20, backoff: fixed, initial_delay: 3ms}}
"
    )
}

/// Starts a job, and says which one it is.
fn start(world: &World, name: &str, items: u32, breaker: &str) -> (Running, String) {
    let file = format!("{name}.yaml");
    world.write(&file, &workflow(name, items, breaker));
    let before = jobs(world);
    let engine = world.spawn(&["run", &file, "--json"]);
    let job = World::eventually("the job", || {
        let jobs = jobs(world);
        jobs.into_iter().find(|job| !before.contains(job))
    });
    (engine, job)
}

pub(crate) fn jobs(world: &World) -> Vec<String> {
    let listed = world.call(&["ls", "--json"]).exits(0);
    let lines = listed.out.lines();
    let jobs = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    jobs.map(|job| job["job"].as_str().unwrap().to_owned()).collect()
}

/// How many lines of the outside world begin so.
fn seen(world: &World, what: &str) -> usize {
    let log = world.lines("log");
    log.iter().filter(|line| line.starts_with(what)).count()
}

/// Everything a job did is in its journal, and the other way round.
fn is_exact(world: &World, name: &str, job: &str, items: u32) {
    let events = world.events_of(job);
    is_lawful(&events);
    let ran = seen(world, &format!("done-{name}-")) + seen(world, &format!("failed-{name}-"));
    let started: u64 = starts(&events).values().sum();
    assert_eq!(u64::try_from(ran).unwrap(), started, "{name}");
    let failed = outcomes(&events).iter().filter(|cause| *cause == "exit").count();
    assert_eq!(seen(world, &format!("failed-{name}-")), failed);
    let runs = world.runs("log");
    for item in 1..=items {
        assert_eq!(runs.get(&format!("done-{name}-{item}")), Some(&1), "{name} {item}");
    }
}

#[test]
fn a_breaker_that_one_job_opened_holds_another_which_never_fails() {
    let world = World::new();
    let (first, a) = start(&world, "a", 5, SETTINGS);
    world.wait_for_breaker("shared", |breaker| breaker["state"] == "open");
    let (second, b) = start(&world, "b", 6, SETTINGS);
    World::eventually("held items", || (held(&world.events_of(&b)).len() == 3).then_some(()));
    World::eventually("the end of what runs", || (running(&world.events_of(&a)) == 0).then_some(()));
    assert_eq!(seen(&world, "failed-b"), 0);
    assert!(all(&world.events_of(&b), "attempt_started").is_empty());
    assert!((3..=5).contains(&seen(&world, "failed-a")));
    world.write("up", "");
    world.call(&["breaker", "reset", "shared"]).exits(0);
    first.wait().exits(0);
    second.wait().exits(0);
    assert_eq!(seen(&world, "failed-b"), 0);
    is_exact(&world, "a", &a, 5);
    is_exact(&world, "b", &b, 6);
    // Both ask one and the same.
    assert_eq!(world.call(&["breaker", "ls", "--json"]).exits(0).out.lines().count(), 1);
}

#[test]
fn four_jobs_fail_and_recover_on_one_breaker_without_losing_or_doubling_anything() {
    let world = World::new();
    let settings = "failure_threshold: 3, recovery_timeout: 150ms, half_open_max_calls: 2";
    let names = ["a", "b", "c", "d"];
    let engines = names.map(|name| start(&world, name, 40, settings));
    world.wait_for_breaker("shared", |breaker| probes(breaker, None) > 3);
    world.write("up", "");
    let jobs = engines.map(|(engine, job)| {
        engine.wait().exits(0);
        job
    });
    for (name, job) in names.iter().zip(&jobs) {
        is_exact(&world, name, job, 40);
    }
    // All widths together are what can be under way when it opens.
    let breaker = world.breaker("shared");
    let bound = 3 + 4 * 3 - 1 + probes(&breaker, None);
    let failed = seen(&world, "failed-");
    assert!(failed <= bound, "{failed} of {bound}");
    assert_eq!(changes(&breaker, "closed"), 1);
    alternates(&breaker);
}

/// A probe is made only when none is under way, and an opening is followed by nothing else.
fn alternates(breaker: &Value) {
    let mut last = "closed".to_owned();
    let mut probing = false;
    for change in breaker["history"].as_array().unwrap() {
        let word = change["change"].as_str().unwrap();
        match word {
            "half_opened" => assert!(last == "open" && !probing, "{breaker:#}"),
            "probe" => assert!(last == "half_open" && !probing, "{breaker:#}"),
            _ => {}
        }
        probing = ["half_opened", "probe"].contains(&word);
        change["state"].as_str().unwrap().clone_into(&mut last);
    }
}

#[test]
fn many_jobs_start_nothing_while_their_breaker_is_open() {
    let world = World::new();
    let names = ["a", "b", "c", "d"];
    let engines = names.map(|name| start(&world, name, 10, SETTINGS));
    let quiet = |job: &str| {
        let events = world.events_of(job);
        running(&events) == 0 && held(&events).len() >= 3
    };
    World::eventually("held items", || engines.iter().all(|(_, job)| quiet(job)).then_some(()));
    let breaker = world.breaker("shared");
    assert_eq!((&breaker["state"], probes(&breaker, None)), (&json!("open"), 0));
    let failed = seen(&world, "failed-");
    assert!((3..=3 + 4 * 3 - 1).contains(&failed), "{failed}");
    world.write("up", "");
    world.call(&["breaker", "reset", "shared"]).exits(0);
    let mut ran = BTreeMap::new();
    for (name, (engine, job)) in names.iter().zip(engines) {
        let report = engine.wait().exits(0).json();
        is_exact(&world, name, &job, 10);
        ran.insert(job, report["attempts"].as_u64().unwrap());
    }
    let ran: u64 = ran.values().sum();
    assert_eq!(usize::try_from(ran).unwrap(), 40 + failed);
}

#[test]
fn the_latest_submission_sets_a_breaker_and_that_is_an_event() {
    let world = World::new();
    world.write("up", "");
    for (name, threshold) in [("a", 3), ("b", 3), ("c", 7)] {
        let settings = format!("failure_threshold: {threshold}, recovery_timeout: 10s");
        let (engine, job) = start(&world, name, 2, &settings);
        engine.wait().exits(0);
        assert_eq!(world.breaker("shared")["settings"]["failure_threshold"], threshold);
        let events = world.events_of(&job);
        let configured = all(&events, "breaker_configured");
        // Nothing to tell when it is made, nor when nothing differs.
        assert_eq!(configured.len(), usize::from(name == "c"), "{name}");
        for event in configured {
            assert_eq!(event["breaker"], "shared");
            let changes = event["changes"].as_array().unwrap();
            assert_eq!(changes.len(), 1);
            assert_eq!((&changes[0]["old"], &changes[0]["new"]), (&json!("3"), &json!("7")));
        }
    }
}

#[test]
fn settings_of_a_later_submission_hold_for_a_job_that_runs() {
    let world = World::new();
    let (first, a) = start(&world, "a", 4, &SETTINGS.replace("10s", "5s"));
    world.wait_for_breaker("shared", |breaker| breaker["state"] == "open");
    let until = world.breaker("shared")["until"].clone();
    let other = "failure_threshold: 3, recovery_timeout: 5s, half_open_max_calls: 1";
    let (second, _) = start(&world, "b", 1, other);
    let breaker = world.wait_for_breaker("shared", |breaker| breaker["settings"]["half_open_max_calls"] == 1);
    assert_eq!((&breaker["state"], &breaker["until"]), (&json!("open"), &until));
    // When its time is up, one success is enough.
    world.write("up", "");
    let at_its_time = first.wait().exits(0);
    second.wait().exits(0);
    assert_eq!(at_its_time.json()["items"]["succeeded"], 4);
    assert_eq!(probes(&world.breaker("shared"), None), 1);
    is_exact(&world, "a", &a, 4);
}

#[test]
fn an_update_changes_the_settings_of_a_breaker() {
    let world = World::new();
    let (engine, job) = start(&world, "a", 4, SETTINGS);
    world.wait_for_breaker("shared", |breaker| breaker["state"] == "open");
    engine.kill();
    let other = SETTINGS.replace("failure_threshold: 3", "failure_threshold: 9");
    world.write("a.yaml", &workflow("a", 4, &other));
    let engine = world.spawn(&["resume", &job, "--update", "--json"]);
    let breaker = world.wait_for_breaker("shared", |breaker| breaker["settings"]["failure_threshold"] == 9);
    assert_eq!(breaker["state"], "open");
    world.write("up", "");
    world.call(&["breaker", "reset", "shared"]).exits(0);
    engine.wait().exits(0);
    let events = world.events_of(&job);
    let changed = all(&events, "policy_changed");
    assert_eq!(changed.len(), 1);
    let change = &changed[0]["changes"][0];
    assert_eq!((&change["old"], &change["new"]), (&json!("3"), &json!("9")), "{change}");
    is_exact(&world, "a", &job, 4);
}

#[test]
fn jobs_killed_in_turn_on_one_breaker_lose_and_double_nothing() {
    let world = World::new();
    let settings = "failure_threshold: 3, recovery_timeout: 80ms, half_open_max_calls: 2";
    let names = ["a", "b"];
    let mut runs: VecDeque<_> = names.map(|name| start(&world, name, 15, settings)).into();
    for kills in 0..6 {
        world.wait_for_breaker("shared", |breaker| probes(breaker, None) > kills);
        let (engine, job) = runs.pop_front().unwrap();
        engine.kill();
        runs.push_back((world.spawn(&["resume", &job, "--json"]), job));
    }
    world.write("up", "");
    // An even number of kills: they stand in their old order.
    for (name, (engine, job)) in names.iter().zip(runs) {
        engine.wait().exits(0);
        is_exact(&world, name, &job, 15);
    }
    let breaker = world.breaker("shared");
    let bound = 3 + 2 * 3 - 1 + probes(&breaker, None);
    assert!(seen(&world, "failed-") <= bound, "{breaker:#}");
    assert_eq!(breaker["state"], "closed");
}
