//! Breakers and the items they hold, when somebody is killed.

use std::time::Instant;

use serde_json::json;

use crate::history::{
    all, changes, held, is_lawful, one, only_probes_start_while_open, outcomes, probes, running,
};
use crate::random_instants::{Dice, kills};
use crate::world::{Ended, World};

const WAITS: &str = "
mode: mapreduce
map:
  input: {shell: seq 1 6}
  max_parallel: 2
  agent_template:
    - shell: echo ${item}-$UNDAUNTED_ATTEMPT >> log; test -e up
      breaker: {name: shared, failure_threshold: 2, recovery_timeout: 10s, half_open_max_calls: 2}
      retry_config: {attempts: 3, backoff: fixed, initial_delay: 3ms}
";

#[test]
fn a_breaker_opened_before_a_kill_is_open_after_it_until_the_same_instant() {
    let world = World::of(&WAITS.replace("10s", "5s"));
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.wait_for_breaker("shared", |breaker| breaker["state"] == "open");
    let before =
        world.wait_for_events("held items", |events| held(events).len() >= 2 && running(events) == 0);
    engine.kill();
    let breaker = world.breaker("shared");
    let log = world.lines("log");
    let engine = world.spawn(&["resume", "@last", "--json"]);
    let resumed = world.event("job_resumed");
    assert_eq!(resumed["restored"]["held"], held(&before).len());
    let after = world.breaker("shared");
    for key in ["state", "opened_at", "until", "history"] {
        assert_eq!(after[key], breaker[key], "{key}");
    }
    assert_eq!(world.lines("log"), log, "nothing starts while it is open");
    let before = held(&before);
    assert!(before.is_subset(&held(&world.events())), "they are held still");
    world.write("up", "");
    let report = engine.wait().exits(0).json();
    assert_eq!(report["items"]["succeeded"], 6);
    let events = world.events();
    is_lawful(&events);
    // The first start after it is not before its time, and it is the only one then.
    let half_opened = one(&events, "breaker_half_opened");
    assert!(half_opened["at"].as_str() >= breaker["until"].as_str());
    only_probes_start_while_open(&events, &world.breaker("shared"));
}

#[test]
fn a_breaker_whose_time_passed_while_nobody_ran_lets_one_through_at_once() {
    let world = World::of(WAITS);
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.wait_for_breaker("shared", |breaker| breaker["state"] == "open");
    engine.kill();
    world.write("up", "");
    let later = [("UNDAUNTED_TEST_CLOCK", "3600")];
    world.call_with(&["resume", "@last", "--json"], &later).exits(0);
    let breaker = world.breaker("shared");
    assert_eq!((probes(&breaker, None), &breaker["state"]), (2, &json!("closed")));
    is_lawful(&world.events());
}

#[test]
fn downtime_counts_to_the_longest_hold_and_to_the_deadline_of_an_item() {
    for (max_hold, item, reason) in [
        (", max_hold: 60s", "", "circuit_open"),
        ("", "timeout_config: {agent_timeout_secs: 60}", "deadline"),
    ] {
        let breaker = "recovery_timeout: 10s";
        let world = World::of(
            &WAITS
                .replace(breaker, &format!("recovery_timeout: 2h{max_hold}"))
                .replace("seq 1 6}", "seq 1 2}")
                .replace("  max_parallel: 2", &format!("  max_parallel: 2\n  {item}")),
        );
        let engine = world.spawn(&["run", "w.yaml", "--json"]);
        world.wait_for_events("held items", |events| held(events).len() == 2);
        engine.kill();
        let before = world.lines("log");
        world.write("up", "");
        let later = [("UNDAUNTED_TEST_CLOCK", "3600")];
        let ended = world.call_with(&["resume", "@last", "--json"], &later);
        ended.exits(4);
        assert_eq!(world.lines("log"), before);
        for letter in world.dead_letters() {
            assert_eq!(letter["reason"], reason);
        }
        is_lawful(&world.events());
    }
}

/// What is needed is away for the first seven times it is asked.
const OUTAGE: &str = "
mode: mapreduce
map:
  input: {shell: seq 1 5}
  max_parallel: 2
  agent_template:
    - shell: |
        echo ${item}-$UNDAUNTED_ATTEMPT >> log
        test $(wc -l < log) -gt 7
      breaker: {name: shared, failure_threshold: 3, recovery_timeout: 15ms, half_open_max_calls: 2}
      retry_config: {attempts: 9, backoff: fixed, initial_delay: 2ms}
";

/// Whatever happened, the limits held: everything ran once, and an outage cost what it may.
fn limits_held(world: &World, ended: &Ended) {
    let report = ended.json();
    assert_eq!(report["items"]["succeeded"], 5, "{report}");
    let runs = world.runs("log");
    assert!(runs.values().all(|runs| *runs == 1), "{runs:?}");
    assert_eq!(report["attempts"], runs.len());
    let events = world.events();
    is_lawful(&events);
    let failed = outcomes(&events).iter().filter(|cause| *cause == "exit").count();
    let breaker = world.breaker("shared");
    assert!(failed <= 3 + 2 - 1 + probes(&breaker, None), "{events:#?}");
    assert!(failed <= 7);
    only_probes_start_while_open(&events, &breaker);
    assert_eq!(breaker["state"], "closed", "{breaker:#}");
    assert_eq!(held(&events), [].into());
}

/// Dies at a place with every number in turn, in `run` and once more in `resume`.
fn dies_at_every(place: &str, numbers: impl Iterator<Item = u64>) {
    let mut reached = 0;
    for number in numbers {
        let world = World::of(OUTAGE);
        let here = format!("{place}:{number}");
        let die = [("UNDAUNTED_TEST_DIE", here.as_str())];
        let mut ended = world.call_with(&["run", "w.yaml", "--json"], &die);
        if ended.code == -9 {
            reached += 1;
            ended = world.call_with(&["resume", "@last", "--json"], &die);
            if ended.code == -9 {
                ended = world.resume();
            }
        }
        assert_eq!(ended.code, 0, "{here} {ended:?}");
        limits_held(&world, &ended);
    }
    println!("{place}: {reached} numbers reached");
    assert!(reached > 3, "{place} is hardly reached");
}

#[test]
fn killed_before_any_write_of_an_outage_the_limits_hold() {
    dies_at_every("append-before", 4..28);
}

#[test]
fn killed_after_any_write_of_an_outage_the_limits_hold() {
    dies_at_every("append-after", 4..28);
}

#[test]
fn killed_around_any_command_of_an_outage_the_limits_hold() {
    dies_at_every("begin-before", 1..10);
    dies_at_every("begin-after", 1..10);
}

#[test]
fn killed_before_any_end_of_an_outage_is_recorded_the_limits_hold() {
    dies_at_every("ended-before", 1..10);
    dies_at_every("forget-after", 1..10);
}

#[test]
fn killed_at_random_instants_of_an_outage_the_limits_hold() {
    let mut dice = Dice::seeded();
    for round in 1..=4 {
        let world = World::of(OUTAGE);
        let deaths = kills(&world, &mut dice, |_| {});
        println!("round {round}: {deaths} kills");
        limits_held(&world, &world.resume().exits(0));
    }
}

/// The first two calls fail and open the breaker; every one after them waits for `go`.
const PROBER: &str = "
mode: mapreduce
map:
  input: {shell: seq 1 3}
  max_parallel: 1
  agent_template:
    - shell: |
        echo prober-${item}-$UNDAUNTED_ATTEMPT >> log
        test $(grep -c prober log) -gt 2 || exit 1
        echo $$ > probing
        until [ -e go ]; do sleep 0.01; done
      breaker: {name: shared, failure_threshold: 2, recovery_timeout: 200ms, half_open_max_calls: 1}
      retry_config: {attempts: 3, backoff: fixed, initial_delay: 3ms}
";

const OTHER: &str = "
mode: mapreduce
map:
  input: {shell: seq 1 4}
  max_parallel: 2
  agent_template:
    - shell: echo other-${item}-$UNDAUNTED_ATTEMPT >> log
      breaker: {name: shared, failure_threshold: 2, recovery_timeout: 200ms, half_open_max_calls: 1}
";

#[test]
fn when_whoever_probes_is_killed_another_job_takes_over() {
    let world = World::of(PROBER);
    world.write("other.yaml", OTHER);
    let prober = world.spawn(&["run", "w.yaml", "--json"]);
    world.pid("probing");
    let job = world.job();
    let other = world.spawn(&["run", "other.yaml", "--json"]);
    let probe = World::eventually("held items", || {
        let listed = world.call(&["ls", "--json"]).out.lines().count();
        let held = listed == 2 && !all(&world.events(), "held").is_empty();
        held.then(|| world.breaker("shared")["probe"].clone())
    });
    assert_eq!(probe["job"], job.as_str());
    // One that is slow and alive is waited for, for as long as it takes.
    let began = Instant::now();
    World::eventually("more than the recovery timeout", || (began.elapsed().as_millis() > 500).then_some(()));
    assert_eq!(world.breaker("shared")["probe"], probe);
    assert!(all(&world.events(), "attempt_started").is_empty());
    prober.kill();
    let report = other.wait().exits(0).json();
    assert_eq!((&report["attempts"], &report["retries"]), (&json!(4), &json!(0)));
    let breaker = world.breaker("shared");
    assert_eq!((changes(&breaker, "probe_lost"), &breaker["state"]), (1, &json!("closed")));
    // The command of the killed one went on all the time, and its result is collected.
    world.write("go", "");
    let report = world.call(&["resume", &job, "--json"]).exits(0).json();
    assert_eq!(report["attempts"], 5);
    let runs = world.runs("log");
    assert!(runs.values().all(|runs| *runs == 1), "{runs:?}");
    assert_eq!(runs.len(), 9);
    is_lawful(&world.events_of(&job));
    assert_eq!(world.breaker("shared")["state"], "closed");
}

#[test]
fn a_probe_that_was_under_way_at_a_kill_is_taken_up_again() {
    let world = World::of(PROBER);
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.pid("probing");
    engine.kill();
    assert_eq!(world.breaker("shared")["state"], "half_open");
    let engine = world.spawn(&["resume", "@last", "--json"]);
    world.event("job_resumed");
    world.write("go", "");
    let report = engine.wait().exits(0).json();
    assert_eq!(report["attempts"], 5);
    let breaker = world.breaker("shared");
    assert_eq!((probes(&breaker, None), &breaker["state"]), (1, &json!("closed")));
    let events = world.events();
    is_lawful(&events);
    only_probes_start_while_open(&events, &breaker);
}

#[test]
fn a_job_that_fails_at_an_open_breaker_does_not_fail_for_ever_because_a_prober_died() {
    let world = World::of(PROBER);
    let fails = OTHER.replace(", failure_threshold", ", when_open: fail, failure_threshold");
    world.write("other.yaml", &fails);
    let prober = world.spawn(&["run", "w.yaml", "--json"]);
    world.pid("probing");
    world.call(&["run", "other.yaml", "--json"]).exits(4);
    prober.kill();
    let done = World::eventually("the probe is given up", || {
        let done = world.call(&["run", "other.yaml", "--json"]);
        (done.code == 0).then_some(done)
    });
    assert_eq!(done.json()["items"]["succeeded"], 4);
    world.write("go", "");
}

#[test]
fn the_result_of_a_probe_that_was_given_up_no_longer_counts() {
    let world = World::of(&PROBER.replace("half_open_max_calls: 1", "half_open_max_calls: 2"));
    let slow = OTHER
        .replace("half_open_max_calls: 1", "half_open_max_calls: 2")
        .replace(" >> log", " >> log; until [ -e end ]; do sleep 0.01; done");
    world.write("other.yaml", &slow);
    let prober = world.spawn(&["run", "w.yaml", "--json"]);
    world.pid("probing");
    let job = world.job();
    prober.kill();
    let other = world.spawn(&["run", "other.yaml", "--json"]);
    World::eventually("another probe", || {
        let probe = world.breaker("shared")["probe"].clone();
        (probe["job"].is_string() && probe["job"] != job.as_str()).then_some(())
    });
    world.write("go", "");
    let engine = world.spawn(&["resume", &job, "--json"]);
    World::eventually("the old result", || {
        (!all(&world.events_of(&job), "item_succeeded").is_empty()).then_some(())
    });
    let breaker = world.breaker("shared");
    assert_eq!((changes(&breaker, "probe_succeeded"), breaker["probe"]["job"] == json!(job)), (0, false));
    world.write("end", "");
    other.wait().exits(0);
    engine.wait().exits(0);
}
