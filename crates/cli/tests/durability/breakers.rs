//! A dependency goes away, and what needs it is held instead of burning its attempts.

use serde_json::{Value, json};

use crate::history::{
    all, changes, held, is_lawful, one, only_probes_start_while_open, probes, running, text,
};
use crate::world::World;

/// So many items need something that is there while the file `up` is.
fn dependent(items: u32, width: u32, breaker: &str, more: &str) -> World {
    World::of(&format!(
        "
mode: mapreduce
map:
  input: {{shell: seq 1 {items}}}
  max_parallel: {width}
  agent_template:
    - id: call
      shell: |
        if [ -e up ]; then echo done-${{item}} >> log; exit; fi
        echo failed-${{item}} >> log
        exit 1
      breaker: {{name: shared, {breaker}}}
      retry_config: {{attempts: 3, backoff: fixed, initial_delay: 3ms}}
{more}
"
    ))
}

/// How many commands failed, and how many succeeded, as the outside world has it.
fn seen(world: &World) -> (usize, usize) {
    let log = world.lines("log");
    let failed = log.iter().filter(|line| line.starts_with("failed-"));
    let failed = failed.count();
    (failed, log.len() - failed)
}

/// Longer than a test waits before it does something about the breaker. What is held is let go over a
/// tenth of it.
const LONG: &str = "failure_threshold: 2, recovery_timeout: 60s";

/// Waits until the breaker is open and everything is held that can be: what has failed, and as many as
/// could run.
fn until_held(world: &World, width: usize) -> Vec<Value> {
    world.wait_for_breaker("shared", |breaker| breaker["state"] == "open");
    world.wait_for_events("held items", |events| {
        let held = held(events);
        let failed = all(events, "attempt_failed");
        let mut failed = failed.iter().map(|event| text(&event["item"]));
        running(events) == 0 && held.len() >= width && failed.all(|item| held.contains(&item))
    })
}

#[test]
fn an_outage_costs_a_thousand_items_no_more_than_threshold_width_and_probes() {
    let settings = "failure_threshold: 5, recovery_timeout: 200ms, half_open_max_calls: 2";
    let world = dependent(1000, 8, settings, "");
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.wait_for_breaker("shared", |breaker| probes(breaker, None) > 2);
    world.write("up", "");
    let report = engine.wait().exits(0).json();
    assert_eq!(report["items"]["succeeded"], 1000);
    let runs = world.runs("log");
    for item in 1..=1000 {
        assert_eq!(runs.get(&format!("done-{item}")), Some(&1), "item {item}");
    }
    let breaker = world.breaker("shared");
    let (failed, done) = seen(&world);
    let bound = 5 + 8 - 1 + probes(&breaker, None);
    assert!((5..=bound).contains(&failed), "{failed} of {bound}");
    assert_eq!(report["attempts"], failed + done);
    assert_eq!(breaker["state"], "closed");
    let events = world.events();
    is_lawful(&events);
    only_probes_start_while_open(&events, &breaker);
}

#[test]
fn a_held_item_uses_no_attempt_and_gives_its_slot_back() {
    let world = World::of(
        "
mode: mapreduce
map:
  input: {shell: seq 1 4}
  max_parallel: 1
  agent_template:
    - id: call
      shell: echo call-${item}-$UNDAUNTED_ATTEMPT >> log; test -e up
      breaker: {name: shared, failure_threshold: 1, recovery_timeout: 60s, half_open_max_calls: 1}
      retry_config: {attempts: 1, backoff: fixed, initial_delay: 300ms}
    - id: other
      shell: echo other-${item} >> log
",
    );
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    // One slot, and two of them are held: the first failed, the other never began. It asks while the
    // first waits for its retry, which has to take longer than a turn of the loop on a busy machine.
    let events = until_held(&world, 2);
    assert_eq!(world.lines("log"), ["call-1-1"]);
    let held = all(&events, "held");
    let mut seen: Vec<_> =
        held.iter().map(|event| (text(&event["item"]), &event["attempt"], &event["attempts_left"])).collect();
    seen.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(seen, [("1".to_owned(), &json!(1), &json!(1)), ("2".to_owned(), &json!(0), &json!(2))]);
    let until = &world.breaker("shared")["until"];
    assert!(held.iter().all(|event| &event["until"] == until));
    world.write("up", "");
    world.call(&["breaker", "reset", "shared"]).exits(0);
    let report = engine.wait().exits(0).json();
    assert_eq!((&report["attempts"], &report["retries"]), (&9.into(), &1.into()));
    // Held for as long as it may be, it is not charged to any delay.
    assert_eq!(report["delay_ms"], 300);
    let events = world.events();
    is_lawful(&events);
    let released = all(&events, "released");
    assert_eq!(released.len(), all(&events, "held").len());
    assert!(released.iter().all(|event| event["held_ms"].is_u64()));
}

#[test]
fn one_probe_at_a_time_is_made_by_the_item_with_the_most_attempts_left() {
    let world = World::of(
        "
mode: mapreduce
map:
  input: {shell: seq 1 3}
  max_parallel: 3
  agent_template:
    - shell: |
        echo ${item}-$UNDAUNTED_ATTEMPT >> log
        test $(wc -l < log) -gt 8
      breaker: {name: shared, failure_threshold: 3, recovery_timeout: 30ms, half_open_max_calls: 2}
      retry_config: {attempts: 3, backoff: fixed, initial_delay: 3ms}
",
    );
    // Three fail at first, then five probes; with a probe chosen by chance an item would be used up.
    let report = world.run().exits(0).json();
    let log = world.lines("log");
    let attempts = |number: &str| log.iter().filter(|line| line.ends_with(number)).count();
    assert_eq!((attempts("-1"), attempts("-2"), attempts("-3")), (3, 3, 3), "{log:?}");
    assert_eq!(report["items"]["succeeded"], 3);
    let breaker = world.breaker("shared");
    only_probes_start_while_open(&world.events(), &breaker);
    assert_eq!(changes(&breaker, "closed"), 1);
}

/// Commands one after the other, each of which ends as its item says.
fn ending(items: &str, threshold: u32) -> World {
    World::of(&format!(
        "
mode: mapreduce
map:
  input: {{shell: 'printf \"%s\\n\" {items}'}}
  max_parallel: 1
  agent_template:
    - shell: |
        n=${{item}}
        echo $n >> log
        case $n in slow*) exec sleep 1000;; esac
        exit ${{n%-*}}
      timeout: 1s
      breaker: {{name: shared, failure_threshold: {threshold}, recovery_timeout: 10s, when_open: fail}}
"
    ))
}

#[test]
fn a_success_starts_the_count_anew_and_permanent_failures_say_nothing() {
    let world = ending("1-a 0-a 1-b 0-b 127-a 127-b 126-a 1-c 127-c 0-c", 2);
    world.run().exits(4);
    assert_eq!(world.lines("log").len(), 10, "it never opened");
    // What says nothing does not start the count anew either.
    let world = ending("1-a 127-a 1-b 0-a", 2);
    world.run().exits(4);
    assert_eq!(world.lines("log"), ["1-a", "127-a", "1-b"]);
    assert_eq!(world.dead_letters()[3]["reason"], "circuit_open");
}

#[test]
fn what_times_out_counts_as_a_failure() {
    let world = ending("1-a slow-a 0-a", 2);
    world.run().exits(4);
    assert_eq!(world.lines("log"), ["1-a", "slow-a"]);
    assert_eq!(world.breaker("shared")["state"], "open");
}

#[test]
fn the_result_of_a_start_from_before_the_opening_is_ignored() {
    let world = World::of(
        "
mode: mapreduce
map:
  input: {shell: seq 1 4}
  max_parallel: 2
  agent_template:
    - shell: |
        echo ${item} >> log
        test ${item} = 1 || exit 1
        until [ -e go ]; do sleep 0.01; done
      breaker: {name: shared, failure_threshold: 2, recovery_timeout: 10s}
",
    );
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    let open = world.wait_for_breaker("shared", |breaker| breaker["state"] == "open");
    world.write("go", "");
    world.event("attempt_succeeded");
    let breaker = world.breaker("shared");
    assert_eq!(breaker["until"], open["until"], "it neither closes nor opens it again");
    assert_eq!(breaker["history"], open["history"]);
    engine.kill();
    assert_eq!(world.lines("log").len(), 3);
}

#[test]
fn a_breaker_can_be_tripped_and_reset_while_a_job_runs() {
    let world = dependent(40, 2, "recovery_timeout: 10s", "");
    world.write("up", "");
    world.write("slow", "");
    world.write(
        "w.yaml",
        &world.read("w.yaml").replace("exit; fi", "until [ ! -e slow ]; do sleep 0.01; done; exit; fi"),
    );
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.wait_for_lines("log", 2);
    let tripped = world.call(&["breaker", "trip", "shared"]).exits(0);
    assert!(tripped.out.starts_with("breaker shared: open since "), "{tripped:?}");
    std::fs::remove_file(world.path("slow")).unwrap();
    until_held(&world, 2);
    assert_eq!(world.lines("log").len(), 2, "nothing starts while it is open");
    let reset = world.call(&["breaker", "reset", "shared", "--json"]).exits(0).json();
    assert_eq!((&reset["state"], &reset["until"]), (&json!("closed"), &Value::Null));
    let report = engine.wait().exits(0).json();
    assert_eq!((&report["attempts"], &report["retries"]), (&json!(40), &json!(0)));
    assert_eq!(world.lines("log").len(), 40);
    let breaker = world.breaker("shared");
    assert_eq!((changes(&breaker, "tripped"), changes(&breaker, "reset")), (1, 1));
    assert_eq!(breaker["history"][1]["job"], Value::Null, "by hand");
}

#[test]
fn a_breaker_tripped_by_hand_recovers_by_itself() {
    let world = dependent(3, 3, "recovery_timeout: 100ms, half_open_max_calls: 2", "");
    world.write("up", "");
    world.run().exits(0);
    world.call(&["breaker", "trip", "shared"]).exits(0);
    world.run().exits(0);
    let breaker = world.breaker("shared");
    assert_eq!((probes(&breaker, None), &breaker["state"]), (2, &json!("closed")));
    assert_eq!(seen(&world), (0, 6));
}

#[test]
fn breakers_are_listed_and_shown_for_people_and_machines() {
    let world = dependent(2, 1, LONG, "");
    let none = world.call(&["breaker", "ls"]).exits(0);
    assert_eq!(none.out, "");
    assert!(none.err.contains("no breakers yet"), "{none:?}");
    world.write("up", "");
    world.run().exits(0);
    let listed = world.call(&["breaker", "ls"]).exits(0);
    let lines: Vec<&str> = listed.out.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[1].starts_with("shared"), "{lines:?}");
    assert!(lines[1].ends_with("closed, no failures"));
    world.call(&["breaker", "trip", "shared"]).exits(0);
    let shown = world.call(&["breaker", "show", "shared"]).exits(0).out;
    for said in [
        "opens for 1m after 2 failures in a row; 3 successes close it",
        "while open, commands are held",
        "by hand",
    ] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    let breaker = world.breaker("shared");
    let listed = world.call(&["breaker", "ls", "--json"]).exits(0).json();
    for key in ["breaker", "state", "failures", "successes", "opened_at", "until", "probe", "settings"] {
        assert_eq!(listed.get(key), breaker.get(key), "{key}");
        assert!(listed.get(key).is_some(), "{key}");
    }
    assert_eq!(
        breaker["settings"],
        json!({
            "failure_threshold": 2, "recovery_timeout": "1m", "half_open_max_calls": 3,
            "when_open": "hold", "max_hold": null,
        })
    );
}

#[test]
fn a_breaker_that_nobody_names_is_not_found() {
    let world = World::new();
    for what in ["show", "trip", "reset"] {
        let refused = world.call(&["breaker", what, "nobody"]).exits(6);
        assert!(refused.err.contains("breaker `nobody` not found"), "{refused:?}");
        assert_eq!(refused.out, "");
    }
    assert_eq!(world.call(&["breaker", "ls", "--json"]).exits(0).out, "", "none was made");
}

#[test]
fn where_an_open_breaker_fails_items_they_are_dead_letters_without_an_attempt() {
    let settings = "failure_threshold: 2, recovery_timeout: 1h, when_open: fail";
    let world = dependent(5, 1, settings, "");
    world.write("w.yaml", &world.read("w.yaml").replace("attempts: 3", "attempts: 0"));
    let report = world.run().exits(4).json();
    assert_eq!(report["attempts"], 2);
    assert_eq!(report["items"]["dead"], 5);
    assert_eq!(seen(&world), (2, 0));
    let reasons: Vec<_> = world
        .dead_letters()
        .iter()
        .map(|letter| {
            let made = letter["attempts"].as_array().unwrap().len();
            (text(&letter["reason"]), made)
        })
        .collect();
    let first = ("attempts".to_owned(), 1);
    let rest = ("circuit_open".to_owned(), 0);
    assert_eq!(reasons, [&first, &first, &rest, &rest, &rest].map(Clone::clone));
    let said = text(&world.dead_letters()[4]["error"]);
    assert!(said.contains("`shared`"), "{said}");
}

#[test]
fn what_waits_for_its_retry_fails_with_its_history_where_an_open_breaker_fails_items() {
    let settings = "failure_threshold: 2, recovery_timeout: 1h, when_open: fail";
    let world = dependent(2, 2, settings, "");
    world.run().exits(4);
    let mut made = 0;
    for letter in world.dead_letters() {
        assert_eq!(letter["reason"], "circuit_open");
        made += letter["attempts"].as_array().unwrap().len();
    }
    // One of them may be at its second attempt when the other fails.
    assert!((2..=3).contains(&made), "{made}");
    assert_eq!(seen(&world), (made, 0));
}

#[test]
fn what_is_held_for_longer_than_it_may_be_fails() {
    let world = dependent(4, 1, &format!("{LONG}, max_hold: 50ms"), "");
    world.write("w.yaml", &world.read("w.yaml").replace("attempts: 3", "attempts: 0"));
    let report = world.run().exits(4).json();
    assert_eq!((&report["attempts"], &report["items"]["dead"]), (&json!(2), &json!(4)));
    let events = world.events();
    is_lawful(&events);
    let held = all(&events, "held");
    assert_eq!(held.len(), 2);
    for (hold, letter) in held.iter().zip(&world.dead_letters()[2..]) {
        assert!(hold["expires_at"].is_string(), "{hold}");
        assert_eq!(letter["reason"], "circuit_open");
        assert_eq!(letter["attempts"], json!([]));
    }
}

#[test]
fn held_time_counts_to_the_deadline_of_an_item() {
    let world = dependent(2, 2, LONG, "  timeout_config: {agent_timeout_secs: 1}");
    world.run().exits(4);
    assert!((2..=3).contains(&seen(&world).0));
    for letter in world.dead_letters() {
        assert_eq!(letter["reason"], "deadline");
        let error = text(&letter["error"]);
        assert!(error.contains("while the breaker `shared` was open"), "{error}");
    }
}

#[test]
fn held_time_counts_to_the_deadline_of_the_job() {
    let world = dependent(3, 2, LONG, "deadline: 700ms");
    let report = world.run().exits(1).json();
    assert_eq!(report["reason"], "deadline");
    assert!(seen(&world).0 <= 3);
    is_lawful(&world.events());
}

#[test]
fn what_is_held_is_skipped_when_its_job_is_cancelled() {
    let world = dependent(3, 2, LONG, "reduce: [{shell: echo reduced >> log}]");
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    let many = held(&until_held(&world, 2)).len();
    let before = seen(&world);
    world.call(&["cancel", "@last"]).exits(0);
    let report = engine.wait().exits(1).json();
    assert_eq!(report["status"], "cancelled");
    let events = world.events();
    is_lawful(&events);
    let skipped = all(&events, "item_skipped");
    assert_eq!(skipped.len(), many);
    assert!(skipped.iter().all(|event| event["reason"] == "cancelled"));
    assert_eq!(seen(&world), before);
}

#[test]
fn a_job_suspended_while_its_items_are_held_goes_on_from_there() {
    let world = dependent(5, 2, LONG, "");
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    let many = held(&until_held(&world, 2)).len();
    let (failed, done) = seen(&world);
    engine.signal("INT");
    let report = engine.wait().exits(75).json();
    assert_eq!(report["status"], "suspended");
    let until = world.breaker("shared")["until"].clone();
    let engine = world.spawn(&["resume", "@last", "--json"]);
    let resumed = world.event("job_resumed");
    assert_eq!(resumed["restored"]["held"], many);
    assert_eq!(world.breaker("shared")["until"], until);
    assert_eq!(seen(&world), (failed, done));
    world.write("up", "");
    world.call(&["breaker", "reset", "shared"]).exits(0);
    engine.wait().exits(0);
    assert_eq!(seen(&world), (failed, 5));
    is_lawful(&world.events());
}

#[test]
fn nothing_is_let_go_while_its_job_is_paused() {
    let world = dependent(5, 2, LONG, "");
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    until_held(&world, 2);
    let (failed, _) = seen(&world);
    world.call(&["pause", "@last"]).exits(0);
    world.event("job_paused");
    world.write("up", "");
    world.call(&["breaker", "reset", "shared"]).exits(0);
    let paused = world.show();
    assert_eq!(paused["status"], "paused", "{paused}");
    assert_eq!(seen(&world), (failed, 0));
    world.call(&["unpause", "@last"]).exits(0);
    engine.wait().exits(0);
    assert_eq!(seen(&world), (failed, 5));
    let events = world.events();
    is_lawful(&events);
    let unpaused = one(&events, "job_unpaused")["seq"].as_u64();
    let released = all(&events, "released");
    assert!(released.iter().all(|event| event["seq"].as_u64() > unpaused));
}

#[test]
fn a_tolerance_counts_no_item_that_is_held() {
    let world = dependent(6, 2, LONG, "  error_policy: {max_failures: 1}");
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    until_held(&world, 2);
    world.write("up", "");
    world.call(&["breaker", "reset", "shared"]).exits(0);
    assert_eq!(engine.wait().exits(0).json()["items"]["succeeded"], 6);
}

#[test]
fn what_is_held_is_skipped_when_a_tolerance_is_reached() {
    let world = World::of(
        "
mode: mapreduce
map:
  input: {shell: seq 1 4}
  max_parallel: 2
  error_policy: {max_failures: 1}
  agent_template:
    - shell: |
        echo ${item} >> log
        test ${item} = 1 && exit 1
        until [ -e go ]; do sleep 0.01; done
        exit 127
      breaker: {name: shared, failure_threshold: 1, recovery_timeout: 1h}
      retry_config: {attempts: 3, backoff: fixed, initial_delay: 3ms}
",
    );
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.wait_for_events("held items", |events| !held(events).is_empty());
    world.wait_for_lines("log", 2);
    world.write("go", "");
    let report = engine.wait().exits(1).json();
    assert_eq!(report["reason"], "tolerance");
    let events = world.events();
    is_lawful(&events);
    let skipped = all(&events, "item_skipped");
    assert!(skipped.iter().all(|event| event["reason"] == "tolerance"));
    assert_eq!(held(&events), [].into());
    assert_eq!(world.lines("log").len(), 2);
}
