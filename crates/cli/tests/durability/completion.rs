//! Completion rules: enough will do, or what is there when the time is up.

use serde_json::{Value, json};

use crate::history::{all, is_lawful, one, text};
use crate::processes::is_alive;
use crate::world::{Ended, World};

/// Four datacenters. Each notes its start and its process, waits until the file of its name is there,
/// and succeeds if `ok` is in it.
fn datacenters(rule: &str, more: &str) -> World {
    World::of(&format!(
        "
mode: mapreduce
{more}
map:
  input: {{shell: 'printf \"%s\\n\" north east south west'}}
  best_effort: true
  {rule}
  agent_template:
    - shell: |
        echo ${{item}} >> log
        echo $$ > pid-${{item}}
        until [ -e ${{item}} ]; do sleep 0.01; done
        echo result of ${{item}}
        grep -q ok ${{item}}
reduce:
  - shell: 'echo ${{map.successful}} of ${{map.total}} >> reduced; echo ${{map.results}} >> reduced'
"
    ))
}

/// These report.
fn report(world: &World, answers: &[(&str, &str)]) {
    for (datacenter, answer) in answers {
        // It is there whole, or not at all.
        world.write("answer", answer);
        std::fs::rename(world.path("answer"), world.path(datacenter)).unwrap();
    }
}

const TWO: [(&str, &str); 2] = [("north", "ok"), ("east", "ok")];

fn missing(ended: &Value) -> Vec<(String, String)> {
    let missing = ended["missing"].as_array().unwrap().iter();
    missing.map(|missing| (text(&missing["item"]), text(&missing["reason"]))).collect()
}

fn pair(item: &str, reason: &str) -> (String, String) {
    (item.to_owned(), reason.to_owned())
}

/// Whether nothing of the datacenters that did not report runs any more.
fn are_ended(world: &World, names: &[&str]) {
    for name in names {
        assert!(!is_alive(world.pid(&format!("pid-{name}"))), "{name} still runs");
    }
}

/// The same, where they may have been ended before they could say who they are.
fn begun_are_ended(world: &World) {
    for name in ["south", "west"] {
        let pid = world.read(&format!("pid-{name}")).trim().parse();
        assert!(!pid.is_ok_and(is_alive), "{name} still runs");
    }
}

#[test]
fn a_step_is_complete_when_enough_have_succeeded_and_the_rest_is_ended() {
    let world = datacenters("best_effort_min_dcs: 2", "");
    report(&world, &TWO);
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    let ended = engine.wait().exits(0).json();
    assert_eq!(
        (&ended["status"], &ended["reason"], &ended["error"]),
        (&json!("completed"), &Value::Null, &Value::Null)
    );
    assert_eq!(ended["items"], json!({"total": 4, "succeeded": 2, "dead": 0, "skipped": 0}));
    assert_eq!(missing(&ended), [pair("south", "cancelled"), pair("west", "cancelled")]);
    let events = world.events();
    is_lawful(&events);
    let reached = one(&events, "completion_reached");
    assert_eq!(reached["reason"], "min_dcs_reached (2/2)");
    assert_eq!(
        (&reached["success"], &reached["completed"], &reached["failed"], &reached["missing"]),
        (&json!(true), &json!(2), &json!(0), &json!(2))
    );
    begun_are_ended(&world);
}

#[test]
fn what_runs_when_a_step_is_complete_is_ended() {
    let world = datacenters("best_effort_min_dcs: 2", "");
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    for name in ["south", "west"] {
        world.pid(&format!("pid-{name}"));
    }
    report(&world, &TWO);
    engine.wait().exits(0);
    are_ended(&world, &["south", "west"]);
    assert_eq!(all(&world.events(), "late_result").len(), 0);
}

#[test]
fn a_deadline_below_the_minimum_returns_what_is_there_as_partial() {
    let rule = "best_effort_min_dcs: 3\n  best_effort_deadline_seconds: 1";
    let world = datacenters(rule, "");
    report(&world, &TWO);
    let ended = world.run().exits(4).json();
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("partial"), &json!("deadline")));
    let error = text(&ended["error"]);
    assert!(error.contains("deadline_expired (completed: 2)"), "{error}");
    assert_eq!(missing(&ended), [pair("south", "deadline"), pair("west", "deadline")]);
    are_ended(&world, &["south", "west"]);
    let events = world.events();
    is_lawful(&events);
    let reached = one(&events, "completion_reached");
    assert_eq!(reached["success"], false);
    assert!(reached["at"].as_str() >= reached["deadline"].as_str());
    assert_eq!(world.lines("reduced")[0], "2 of 4", "what is there is returned");
}

#[test]
fn all_reported_below_the_minimum_is_partial() {
    let world = datacenters("best_effort_min_dcs: 3", "");
    report(&world, &TWO);
    report(&world, &[("south", "no"), ("west", "no")]);
    let ended = world.run().exits(4).json();
    assert_eq!(ended["status"], "partial");
    assert_eq!(missing(&ended), []);
    assert_eq!((&ended["items"]["succeeded"], &ended["items"]["dead"]), (&json!(2), &json!(2)));
    let reached = one(&world.events(), "completion_reached").clone();
    assert_eq!((&reached["reason"], &reached["success"]), (&json!("all_dcs_reported"), &json!(false)));
}

#[test]
fn a_minimum_that_is_met_is_completed_even_with_dead_letters() {
    let world = datacenters("best_effort_min_dcs: 2", "");
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    report(&world, &[("south", "no"), ("west", "no")]);
    world.wait_for_events("two failures", |events| all(events, "item_dead_lettered").len() == 2);
    report(&world, &TWO);
    let ended = engine.wait().exits(0).json();
    assert_eq!((&ended["status"], &ended["items"]["dead"]), (&json!("completed"), &json!(2)));
    assert_eq!((&ended["reason"], missing(&ended)), (&Value::Null, vec![]));
    let reason = one(&world.events(), "completion_reached")["reason"].clone();
    assert_eq!(reason, "all_dcs_reported", "of two reasons the first");
    assert_eq!(world.dead_letters().len(), 2);
}

#[test]
fn a_minimum_is_at_least_one_and_at_most_all() {
    let world = datacenters("best_effort_min_dcs: 99", "");
    let four = [("north", "ok"), ("east", "ok"), ("south", "ok"), ("west", "ok")];
    report(&world, &four);
    assert_eq!(world.run().exits(0).json()["items"]["succeeded"], 4);
    assert_eq!(one(&world.events(), "completion_reached")["min"], 4);
    let world = datacenters("best_effort_min_dcs: 0", "");
    report(&world, &TWO[..1]);
    world.run().exits(0);
    assert_eq!(one(&world.events(), "completion_reached")["reason"], "min_dcs_reached (1/1)");
}

#[test]
fn reduce_sees_only_what_counted() {
    let world = datacenters("best_effort_min_dcs: 2\n  on_complete: leave", "");
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.wait_for_lines("log", 4);
    report(&world, &TWO);
    world.wait_for_lines("reduced", 2);
    report(&world, &[("south", "ok"), ("west", "ok")]);
    engine.wait().exits(0);
    let reduced = world.lines("reduced");
    assert_eq!(reduced[0], "2 of 4");
    let results: Vec<Value> = serde_json::from_str(&reduced[1]).unwrap();
    let seen: Vec<_> = results.iter().map(|result| (&result["item"], &result["status"])).collect();
    let succeeded = json!("succeeded");
    for name in ["north", "east"] {
        assert!(seen.contains(&(&json!(name), &succeeded)), "{reduced:?}");
    }
    for name in ["south", "west"] {
        assert!(!seen.contains(&(&json!(name), &succeeded)), "{reduced:?}");
    }
}

/// Two count, south succeeds and west fails after reduce has begun. The environment is the operator's.
fn late(policy: &[(&str, &str)]) -> (World, Ended) {
    let world = datacenters("best_effort_min_dcs: 2\n  on_complete: leave", "");
    let engine = world.spawn_with(&["run", "w.yaml", "--json"], policy);
    world.wait_for_lines("log", 4);
    report(&world, &TWO);
    world.wait_for_lines("reduced", 2);
    report(&world, &[("south", "ok"), ("west", "no")]);
    let ended = engine.wait().exits(0);
    is_lawful(&world.events());
    assert_eq!(world.lines("log").len(), 4);
    (world, ended)
}

#[test]
fn late_results_are_logged_and_change_nothing() {
    for policy in [&[][..], &[("BEST_EFFORT_LATE_RESULT_POLICY", "log_only")]] {
        let (world, ended) = late(policy);
        let ended = ended.json();
        assert_eq!(ended["items"], json!({"total": 4, "succeeded": 2, "dead": 0, "skipped": 0}), "{ended}");
        let told: Vec<_> = missing(&ended).into_iter().map(|(item, _)| item).collect();
        assert_eq!(told, ["south", "west"]);
        let events = world.events();
        let late = all(&events, "late_result");
        assert_eq!(late.len(), 2);
        assert!(late.iter().all(|event| event["policy"] == "log_only"));
        let result = |item: &str| late.iter().find(|event| event["item"] == item).unwrap()["result"].clone();
        assert_eq!((result("south"), result("west")), (json!("succeeded"), json!("failed")));
    }
}

#[test]
fn late_results_bring_the_result_up_to_date_if_the_operator_says_so() {
    let (world, ended) = late(&[("BEST_EFFORT_LATE_RESULT_POLICY", "update_result")]);
    let ended = ended.json();
    assert_eq!(ended["items"]["succeeded"], 3, "{ended}");
    assert!(missing(&ended).iter().all(|(item, _)| item != "south"), "{ended}");
    let events = world.events();
    let late = all(&events, "late_result");
    assert!(late.iter().all(|event| event["policy"] == "update_result"));
    // Reduce was begun with what was there then.
    assert_eq!(world.lines("reduced")[0], "2 of 4");
}

#[test]
fn a_late_result_may_make_up_for_a_minimum_that_was_missed() {
    let rule = "best_effort_min_dcs: 3\n  best_effort_deadline_seconds: 1\n  on_complete: leave";
    for (policy, code) in [("log_only", 4), ("update_result", 0)] {
        let world = datacenters(rule, "");
        report(&world, &TWO);
        let operator = [("BEST_EFFORT_LATE_RESULT_POLICY", policy)];
        let engine = world.spawn_with(&["run", "w.yaml", "--json"], &operator);
        world.wait_for_lines("reduced", 2);
        report(&world, &[("south", "ok"), ("west", "no")]);
        engine.wait().exits(code);
        is_lawful(&world.events());
    }
}

#[test]
fn what_was_left_is_ended_at_the_deadline_of_the_job() {
    let world = datacenters("best_effort_min_dcs: 2\n  on_complete: leave", "deadline: 2s");
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.wait_for_lines("log", 4);
    report(&world, &TWO);
    let ended = engine.wait().exits(0).json();
    assert_eq!(ended["status"], "completed", "all that was to be done is done");
    let told: Vec<_> = missing(&ended).into_iter().map(|(item, _)| item).collect();
    assert_eq!(told, ["south", "west"]);
    are_ended(&world, &["south", "west"]);
    is_lawful(&world.events());
}

/// North and east report at once, the others never.
fn dies_at(place: &str, numbers: impl Iterator<Item = u64>) {
    let mut reached = 0;
    for number in numbers {
        let world = datacenters("best_effort_min_dcs: 2", "");
        report(&world, &TWO);
        let here = format!("{place}:{number}");
        let die = [("UNDAUNTED_TEST_DIE", here.as_str())];
        let mut ended = world.call_with(&["run", "w.yaml", "--json"], &die);
        if ended.code == -9 {
            reached += 1;
            ended = world.resume();
        }
        let told = ended.exits(0).json();
        assert_eq!(told["items"]["succeeded"], 2, "{here} {told}");
        assert_eq!(missing(&told).len(), 2, "{here}");
        assert_eq!(world.lines("reduced").len(), 2, "{here}");
        assert_eq!(world.lines("reduced")[0], "2 of 4", "{here}");
        let runs = world.runs("log");
        assert!(runs.values().all(|runs| *runs == 1), "{here} {runs:?}");
        let events = world.events();
        is_lawful(&events);
        assert_eq!(one(&events, "completion_reached")["reason"], "min_dcs_reached (2/2)");
        begun_are_ended(&world);
    }
    println!("{place}: {reached} numbers reached");
    assert!(reached > 1, "{place} is hardly reached");
}

#[test]
fn killed_before_any_write_around_a_completion_it_is_decided_once() {
    dies_at("append-before", 3..20);
}

#[test]
fn killed_after_any_write_around_a_completion_it_is_decided_once() {
    dies_at("append-after", 3..20);
}

#[test]
fn a_deadline_that_passes_while_nobody_runs_the_job_has_passed() {
    let world = datacenters("best_effort_min_dcs: 3\n  best_effort_deadline_seconds: 60", "");
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    report(&world, &TWO);
    world.wait_for_events("two results", |events| all(events, "item_succeeded").len() == 2);
    engine.kill();
    let later = [("UNDAUNTED_TEST_CLOCK", "3600")];
    let ended = world.call_with(&["resume", "@last", "--json"], &later);
    let ended = ended.exits(4).json();
    assert_eq!(missing(&ended), [pair("south", "deadline"), pair("west", "deadline")]);
    let events = world.events();
    let reached = one(&events, "completion_reached");
    assert_eq!(reached["reason"], "deadline_expired (completed: 2)");
    are_ended(&world, &["south", "west"]);
}

#[test]
fn killed_while_what_was_left_goes_on_its_results_are_late_all_the_same() {
    let world = datacenters("best_effort_min_dcs: 2\n  on_complete: leave", "");
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.wait_for_lines("log", 4);
    report(&world, &TWO);
    world.wait_for_lines("reduced", 2);
    engine.kill();
    report(&world, &[("south", "ok"), ("west", "no")]);
    let ended = world.resume().exits(0).json();
    assert_eq!(ended["items"]["succeeded"], 2);
    let events = world.events();
    is_lawful(&events);
    assert_eq!(all(&events, "late_result").len(), 2);
    assert_eq!(world.lines("log").len(), 4);
    assert_eq!(world.lines("reduced").len(), 2);
}

#[test]
fn minimum_and_deadline_have_defaults_of_the_operator() {
    let world = datacenters("", "");
    report(&world, &TWO);
    let operator = [("BEST_EFFORT_DEFAULT_MIN_DCS", "2")];
    world.call_with(&["run", "w.yaml", "--json"], &operator).exits(0);
    assert_eq!(one(&world.events(), "completion_reached")["reason"], "min_dcs_reached (2/2)");
    world.run().exits(0);
    assert_eq!(one(&world.events(), "completion_reached")["min"], 1);
    let world = datacenters("best_effort_min_dcs: 3\n  best_effort_deadline_seconds: 0", "");
    report(&world, &TWO);
    let operator =
        [("BEST_EFFORT_DEFAULT_DEADLINE_SECONDS", "1"), ("BEST_EFFORT_CHECK_INTERVAL_SECONDS", "1")];
    let ended = world.call_with(&["run", "w.yaml", "--json"], &operator);
    assert_eq!(ended.exits(4).json()["reason"], "deadline");
}

#[test]
fn settings_of_the_operator_that_mean_nothing_are_named() {
    let world = datacenters("", "");
    for (name, values) in [
        ("BEST_EFFORT_DEFAULT_MIN_DCS", ["-1", "two", ""]),
        ("BEST_EFFORT_DEFAULT_DEADLINE_SECONDS", ["-1", "soon", ""]),
        ("BEST_EFFORT_CHECK_INTERVAL_SECONDS", ["-1", "often", "0"]),
        ("BEST_EFFORT_LATE_RESULT_POLICY", ["", "LOG_ONLY", "drop"]),
    ] {
        for value in values {
            let refused = world.call_with(&["run", "w.yaml"], &[(name, value)]).exits(2);
            assert!(refused.err.contains(name), "{refused:?}");
        }
    }
    assert!(!world.path("log").exists());
}

#[test]
fn a_deadline_or_a_minimum_that_means_nothing_is_refused() {
    for rule in [
        "best_effort_deadline_seconds: -1",
        "best_effort_deadline_seconds: soon",
        "best_effort_min_dcs: -1",
        "on_complete: stay",
    ] {
        let world = datacenters(rule, "");
        world.call(&["check", "w.yaml"]).exits(3);
        world.run().exits(3);
        assert!(!world.path("log").exists(), "{rule}");
    }
}

#[test]
fn the_state_of_a_completion_is_shown_with_the_names_of_its_source() {
    let world = datacenters("best_effort_min_dcs: 3", "");
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    report(&world, &[("north", "ok"), ("east", "no")]);
    world.wait_for_events("two results", |events| {
        !all(events, "item_succeeded").is_empty() && !all(events, "item_dead_lettered").is_empty()
    });
    let state = &world.show()["best_effort"];
    assert_eq!((&state["enabled"], &state["min_dcs"]), (&json!(true), &json!(3)));
    assert_eq!(state["target_dcs"], json!(["north", "east", "south", "west"]));
    assert_eq!(state["dcs_completed"], json!(["north"]));
    assert_eq!(state["dcs_failed"], json!(["east"]));
    report(&world, &[("south", "no"), ("west", "no")]);
    engine.wait().exits(4);
    let shown = world.show();
    let events = world.events();
    let reached = one(&events, "completion_reached");
    assert_eq!(shown["best_effort"]["deadline"], reached["deadline"]);
}

#[test]
fn results_of_commands_that_ended_in_time_while_nobody_was_there_count() {
    let world = World::of(
        "
mode: mapreduce
map:
  input: {shell: seq 1 3}
  best_effort: true
  best_effort_min_dcs: 3
  best_effort_deadline_seconds: 1
  agent_template:
    - shell: echo ${item} >> begun; until [ -e go ]; do sleep 0.01; done; echo ${item} >> log
reduce:
  - shell: echo reduced ${map.successful} >> log
",
    );
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    World::eventually("all run", || (world.lines("begun").len() == 3).then_some(()));
    engine.kill();
    world.write("go", "");
    World::eventually("all have ended", || (world.lines("log").len() == 3).then_some(()));
    let began = std::time::Instant::now();
    World::eventually("the deadline has passed", || (began.elapsed().as_millis() > 1100).then_some(()));
    let report = world.call(&["resume", "@last", "--json"]).exits(0).json();
    assert_eq!(report["items"]["succeeded"], 3);
    let events = world.events();
    let reached = all(&events, "completion_reached");
    assert_eq!(reached[0]["reason"], "all_dcs_reported");
    assert_eq!(world.lines("log").last().map(String::as_str), Some("reduced 3"));
}
