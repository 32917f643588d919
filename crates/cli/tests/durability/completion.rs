//! Completion rules: a step is complete when enough items have succeeded or its deadline has passed.

use serde_json::{Value, json};

use crate::history::{all, assert_contains, assert_fields, count, one, text};
use crate::processes::is_alive;
use crate::sandbox::{FinishedProcess, Sandbox};

/// A map over four datacenters. Each item logs its start and its process id, waits for the file of its name,
/// and succeeds if the file contains `ok`.
fn datacenters(rule: &str, more: &str) -> Sandbox {
    Sandbox::of(&format!(
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

/// Lets these datacenters report.
fn report(sandbox: &Sandbox, answers: &[(&str, &str)]) {
    for (datacenter, answer) in answers {
        // A rename is atomic: no item reads half an answer.
        sandbox.write("answer", answer);
        std::fs::rename(sandbox.path("answer"), sandbox.path(datacenter)).unwrap();
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

/// Asserts that the commands of these datacenters were ended.
fn assert_none_alive(sandbox: &Sandbox, names: &[&str]) {
    for name in names {
        assert!(!is_alive(sandbox.pid(&format!("pid-{name}"))), "{name} still runs");
    }
}

/// Asserts the same for south and west, which may have been ended before they wrote their process ids.
fn assert_no_late_process(sandbox: &Sandbox) {
    for name in ["south", "west"] {
        let pid = sandbox.read(&format!("pid-{name}")).trim().parse();
        assert!(!pid.is_ok_and(is_alive), "{name} still runs");
    }
}

#[test]
fn a_step_is_complete_when_enough_have_succeeded_and_the_rest_is_ended() {
    let sandbox = datacenters("best_effort_min_dcs: 2", "");
    report(&sandbox, &TWO);
    let engine = sandbox.start_run();
    let ended = engine.wait().exits(0).json();
    assert_fields!(ended, {
        "status": "completed", "reason": null, "error": null,
        "items": {"total": 4, "succeeded": 2, "dead": 0, "skipped": 0},
    });
    assert_eq!(missing(&ended), [pair("south", "cancelled"), pair("west", "cancelled")]);
    let events = sandbox.lawful_events();
    let reached = one(&events, "completion_reached");
    assert_fields!(reached, {
        "reason": "min_dcs_reached (2/2)", "success": true, "completed": 2, "failed": 0, "missing": 2,
    });
    assert_no_late_process(&sandbox);
}

#[test]
fn running_items_are_ended_when_their_step_is_complete() {
    let sandbox = datacenters("best_effort_min_dcs: 2", "");
    let engine = sandbox.start_run();
    for name in ["south", "west"] {
        sandbox.pid(&format!("pid-{name}"));
    }
    report(&sandbox, &TWO);
    engine.wait().exits(0);
    assert_none_alive(&sandbox, &["south", "west"]);
    assert_eq!(count(&sandbox.events(), "late_result"), 0);
}

#[test]
fn a_deadline_below_the_minimum_returns_what_is_there_as_partial() {
    let rule = "best_effort_min_dcs: 3\n  best_effort_deadline_seconds: 1";
    let sandbox = datacenters(rule, "");
    report(&sandbox, &TWO);
    let ended = sandbox.run().exits(4).json();
    assert_fields!(ended, {"status": "partial", "reason": "deadline"});
    assert_contains(&ended["error"], "deadline_expired (completed: 2)");
    assert_eq!(missing(&ended), [pair("south", "deadline"), pair("west", "deadline")]);
    assert_none_alive(&sandbox, &["south", "west"]);
    let events = sandbox.lawful_events();
    let reached = one(&events, "completion_reached");
    assert_eq!(reached["success"], false);
    assert!(reached["at"].as_str() >= reached["deadline"].as_str());
    assert_eq!(sandbox.lines("reduced")[0], "2 of 4", "the available results are returned");
}

#[test]
fn all_reported_below_the_minimum_is_partial() {
    let sandbox = datacenters("best_effort_min_dcs: 3", "");
    report(&sandbox, &TWO);
    report(&sandbox, &[("south", "no"), ("west", "no")]);
    let ended = sandbox.run().exits(4).json();
    assert_eq!(ended["status"], "partial");
    assert_eq!(missing(&ended), []);
    assert_fields!(ended["items"], {"succeeded": 2, "dead": 2});
    let reached = one(&sandbox.events(), "completion_reached").clone();
    assert_fields!(reached, {"reason": "all_dcs_reported", "success": false});
}

#[test]
fn a_minimum_that_is_met_is_completed_even_with_dead_letters() {
    let sandbox = datacenters("best_effort_min_dcs: 2", "");
    let engine = sandbox.start_run();
    report(&sandbox, &[("south", "no"), ("west", "no")]);
    sandbox.wait_for_events("two failures", |events| count(events, "item_dead_lettered") == 2);
    report(&sandbox, &TWO);
    let ended = engine.wait().exits(0).json();
    assert_eq!((&ended["status"], &ended["items"]["dead"]), (&json!("completed"), &json!(2)));
    assert_eq!((&ended["reason"], missing(&ended)), (&Value::Null, vec![]));
    let reason = one(&sandbox.events(), "completion_reached")["reason"].clone();
    assert_eq!(reason, "all_dcs_reported", "of two reasons the first");
    assert_eq!(sandbox.dead_letters().len(), 2);
}

#[test]
fn a_minimum_is_at_least_one_and_at_most_all() {
    let sandbox = datacenters("best_effort_min_dcs: 99", "");
    let four = [("north", "ok"), ("east", "ok"), ("south", "ok"), ("west", "ok")];
    report(&sandbox, &four);
    assert_eq!(sandbox.run().exits(0).json()["items"]["succeeded"], 4);
    assert_eq!(one(&sandbox.events(), "completion_reached")["min"], 4);
    let sandbox = datacenters("best_effort_min_dcs: 0", "");
    report(&sandbox, &TWO[..1]);
    sandbox.run().exits(0);
    assert_eq!(one(&sandbox.events(), "completion_reached")["reason"], "min_dcs_reached (1/1)");
}

#[test]
fn reduce_gets_only_the_results_that_counted() {
    let sandbox = datacenters("best_effort_min_dcs: 2\n  on_complete: leave", "");
    let engine = sandbox.start_run();
    sandbox.wait_for_lines("log", 4);
    report(&sandbox, &TWO);
    sandbox.wait_for_lines("reduced", 2);
    report(&sandbox, &[("south", "ok"), ("west", "ok")]);
    engine.wait().exits(0);
    let reduced = sandbox.lines("reduced");
    assert_eq!(reduced[0], "2 of 4");
    let results: Vec<Value> = serde_json::from_str(&reduced[1]).unwrap();
    let statuses: Vec<_> = results.iter().map(|result| (&result["item"], &result["status"])).collect();
    let succeeded = json!("succeeded");
    for name in ["north", "east"] {
        assert!(statuses.contains(&(&json!(name), &succeeded)), "{reduced:?}");
    }
    for name in ["south", "west"] {
        assert!(!statuses.contains(&(&json!(name), &succeeded)), "{reduced:?}");
    }
}

/// North and east complete the step; south succeeds and west fails after reduce has begun. `policy` is the
/// environment.
fn late(policy: &[(&str, &str)]) -> (Sandbox, FinishedProcess) {
    let sandbox = datacenters("best_effort_min_dcs: 2\n  on_complete: leave", "");
    let engine = sandbox.start_run_with(policy);
    sandbox.wait_for_lines("log", 4);
    report(&sandbox, &TWO);
    sandbox.wait_for_lines("reduced", 2);
    report(&sandbox, &[("south", "ok"), ("west", "no")]);
    let ended = engine.wait().exits(0);
    sandbox.lawful_events();
    assert_eq!(sandbox.lines("log").len(), 4);
    (sandbox, ended)
}

#[test]
fn late_results_are_logged_and_change_nothing() {
    for policy in [&[][..], &[("BEST_EFFORT_LATE_RESULT_POLICY", "log_only")]] {
        let (sandbox, ended) = late(policy);
        let ended = ended.json();
        assert_eq!(ended["items"], json!({"total": 4, "succeeded": 2, "dead": 0, "skipped": 0}), "{ended}");
        let answer: Vec<_> = missing(&ended).into_iter().map(|(item, _)| item).collect();
        assert_eq!(answer, ["south", "west"]);
        let events = sandbox.events();
        let late = all(&events, "late_result");
        assert_eq!(late.len(), 2);
        assert!(late.iter().all(|event| event["policy"] == "log_only"));
        let result = |item: &str| late.iter().find(|event| event["item"] == item).unwrap()["result"].clone();
        assert_eq!((result("south"), result("west")), (json!("succeeded"), json!("failed")));
    }
}

#[test]
fn late_results_bring_the_result_up_to_date_if_the_operator_says_so() {
    let (sandbox, ended) = late(&[("BEST_EFFORT_LATE_RESULT_POLICY", "update_result")]);
    let ended = ended.json();
    assert_eq!(ended["items"]["succeeded"], 3, "{ended}");
    assert!(missing(&ended).iter().all(|(item, _)| item != "south"), "{ended}");
    let events = sandbox.events();
    let late = all(&events, "late_result");
    assert!(late.iter().all(|event| event["policy"] == "update_result"));
    // Reduce began with the results of that time.
    assert_eq!(sandbox.lines("reduced")[0], "2 of 4");
}

#[test]
fn late_results_that_count_are_in_the_results_of_a_later_command() {
    for (policy, names) in [("log_only", "north east"), ("update_result", "north east south west")] {
        let sandbox = datacenters("best_effort_min_dcs: 2\n  on_complete: leave", "");
        let wait = "echo ${map.results} >> first; until [ -e go ]; do sleep 0.01; done";
        let steps = format!("reduce:\n  - shell: '{wait}'\n");
        sandbox.write("w.yaml", &sandbox.read("w.yaml").replace("reduce:\n", &steps));
        let engine = sandbox.start_run_with(&[("BEST_EFFORT_LATE_RESULT_POLICY", policy)]);
        sandbox.wait_for_lines("log", 4);
        report(&sandbox, &TWO);
        sandbox.wait_for_lines("first", 1);
        report(&sandbox, &[("south", "ok"), ("west", "no")]);
        Sandbox::wait_until("two late results", || count(&sandbox.events(), "late_result") == 2);
        sandbox.write("go", "");
        engine.wait().exits(0);
        let results = |line: &str| -> Vec<Value> { serde_json::from_str(line).unwrap() };
        assert_eq!(results(&sandbox.lines("first")[0]).len(), 2);
        let results = results(&sandbox.lines("reduced")[1]);
        let found: Vec<&str> = results.iter().map(|result| result["item"].as_str().unwrap()).collect();
        assert_eq!(found.join(" "), names);
        if let Some(south) = results.get(2) {
            assert_fields!(south, {"status": "succeeded", "output": "result of south"});
            assert_eq!(results[3]["status"], "dead");
        }
    }
}

#[test]
fn a_map_without_best_effort_shows_that_all_have_reported() {
    for (answer, code, success) in [("ok", 0, true), ("no", 4, false)] {
        let sandbox = datacenters("", "");
        sandbox.write("w.yaml", &sandbox.read("w.yaml").replace("  best_effort: true\n", ""));
        report(&sandbox, &TWO);
        report(&sandbox, &[("south", "ok"), ("west", answer)]);
        let ended = sandbox.run().exits(code);
        assert!(!ended.err.contains("all_dcs_reported"), "people see the counts: {ended:?}");
        let shown = sandbox.json(&["show", "@last", "--json"]);
        assert_fields!(shown["best_effort"], {
            "enabled": false, "reason": "all_dcs_reported", "success": success, "target": 4, "deadline": null,
        });
        let events = sandbox.lawful_events();
        let reached = one(&events, "completion_reached");
        assert_fields!(reached, {"reason": "all_dcs_reported", "best_effort": false, "success": success});
    }
}

#[test]
fn a_late_result_may_make_up_for_a_minimum_that_was_missed() {
    let rule = "best_effort_min_dcs: 3\n  best_effort_deadline_seconds: 1\n  on_complete: leave";
    for (policy, code) in [("log_only", 4), ("update_result", 0)] {
        let sandbox = datacenters(rule, "");
        report(&sandbox, &TWO);
        let operator = [("BEST_EFFORT_LATE_RESULT_POLICY", policy)];
        let engine = sandbox.start_run_with(&operator);
        sandbox.wait_for_lines("reduced", 2);
        report(&sandbox, &[("south", "ok"), ("west", "no")]);
        engine.wait().exits(code);
        sandbox.lawful_events();
    }
}

#[test]
fn left_items_are_ended_at_the_deadline_of_the_job() {
    let sandbox = datacenters("best_effort_min_dcs: 2\n  on_complete: leave", "deadline: 2s");
    let engine = sandbox.start_run();
    sandbox.wait_for_lines("log", 4);
    report(&sandbox, &TWO);
    let ended = engine.wait().exits(0).json();
    assert_eq!(ended["status"], "completed", "the job has nothing left to do");
    let answer: Vec<_> = missing(&ended).into_iter().map(|(item, _)| item).collect();
    assert_eq!(answer, ["south", "west"]);
    assert_none_alive(&sandbox, &["south", "west"]);
    sandbox.lawful_events();
}

/// Dies at a failpoint with each number in turn, while north and east report at once and the others never do.
fn dies_at_each(failpoint: &str, numbers: impl Iterator<Item = u64>) {
    let mut reached = 0;
    for number in numbers {
        let sandbox = datacenters("best_effort_min_dcs: 2", "");
        report(&sandbox, &TWO);
        let failpoint_number = format!("{failpoint}:{number}");
        let die = [("UNDAUNTED_TEST_DIE", failpoint_number.as_str())];
        let mut ended = sandbox.run_with(&die);
        if ended.code == -9 {
            reached += 1;
            ended = sandbox.resume();
        }
        let answer = ended.exits(0).json();
        assert_eq!(answer["items"]["succeeded"], 2, "{failpoint_number} {answer}");
        assert_eq!(missing(&answer).len(), 2, "{failpoint_number}");
        assert_eq!(sandbox.lines("reduced").len(), 2, "{failpoint_number}");
        assert_eq!(sandbox.lines("reduced")[0], "2 of 4", "{failpoint_number}");
        let runs = sandbox.runs("log");
        assert!(runs.values().all(|runs| *runs == 1), "{failpoint_number} {runs:?}");
        let events = sandbox.lawful_events();
        assert_eq!(one(&events, "completion_reached")["reason"], "min_dcs_reached (2/2)");
        assert_no_late_process(&sandbox);
    }
    println!("{failpoint}: {reached} numbers reached");
    assert!(reached > 1, "{failpoint} is hardly reached");
}

#[test]
fn killed_before_any_write_around_a_completion_it_is_decided_once() {
    dies_at_each("append-before", 3..20);
}

#[test]
fn killed_after_any_write_around_a_completion_it_is_decided_once() {
    dies_at_each("append-after", 3..20);
}

#[test]
fn a_deadline_that_passes_during_downtime_has_passed() {
    let sandbox = datacenters("best_effort_min_dcs: 3\n  best_effort_deadline_seconds: 60", "");
    let engine = sandbox.start_run();
    report(&sandbox, &TWO);
    sandbox.wait_for_events("two results", |events| count(events, "item_succeeded") == 2);
    engine.kill();
    let ended = sandbox.resume_at("3600");
    let ended = ended.exits(4).json();
    assert_eq!(missing(&ended), [pair("south", "deadline"), pair("west", "deadline")]);
    let events = sandbox.events();
    let reached = one(&events, "completion_reached");
    assert_eq!(reached["reason"], "deadline_expired (completed: 2)");
    assert_none_alive(&sandbox, &["south", "west"]);
}

#[test]
fn killed_while_left_items_still_run_their_results_are_still_late() {
    let sandbox = datacenters("best_effort_min_dcs: 2\n  on_complete: leave", "");
    let engine = sandbox.start_run();
    sandbox.wait_for_lines("log", 4);
    report(&sandbox, &TWO);
    sandbox.wait_for_lines("reduced", 2);
    engine.kill();
    report(&sandbox, &[("south", "ok"), ("west", "no")]);
    let ended = sandbox.resume().exits(0).json();
    assert_eq!(ended["items"]["succeeded"], 2);
    let events = sandbox.lawful_events();
    assert_eq!(count(&events, "late_result"), 2);
    assert_eq!(sandbox.lines("log").len(), 4);
    assert_eq!(sandbox.lines("reduced").len(), 2);
}

#[test]
fn minimum_and_deadline_have_defaults_of_the_operator() {
    let sandbox = datacenters("", "");
    report(&sandbox, &TWO);
    let operator = [("BEST_EFFORT_DEFAULT_MIN_DCS", "2")];
    sandbox.run_with(&operator).exits(0);
    assert_eq!(one(&sandbox.events(), "completion_reached")["reason"], "min_dcs_reached (2/2)");
    sandbox.run().exits(0);
    assert_eq!(one(&sandbox.events(), "completion_reached")["min"], 1);
    let sandbox = datacenters("best_effort_min_dcs: 3\n  best_effort_deadline_seconds: 0", "");
    report(&sandbox, &TWO);
    let operator =
        [("BEST_EFFORT_DEFAULT_DEADLINE_SECONDS", "1"), ("BEST_EFFORT_CHECK_INTERVAL_SECONDS", "1")];
    let ended = sandbox.run_with(&operator);
    assert_eq!(ended.exits(4).json()["reason"], "deadline");
}

#[test]
fn invalid_operator_settings_are_named() {
    let sandbox = datacenters("", "");
    for (name, values) in [
        ("BEST_EFFORT_DEFAULT_MIN_DCS", ["-1", "two", ""]),
        ("BEST_EFFORT_DEFAULT_DEADLINE_SECONDS", ["-1", "soon", ""]),
        ("BEST_EFFORT_CHECK_INTERVAL_SECONDS", ["-1", "often", "0"]),
        ("BEST_EFFORT_LATE_RESULT_POLICY", ["", "LOG_ONLY", "drop"]),
    ] {
        for value in values {
            sandbox.call_with(&["run", "w.yaml"], &[(name, value)]).exits(2).err_contains(name);
        }
    }
    assert!(!sandbox.path("log").exists());
}

#[test]
fn an_invalid_deadline_or_minimum_is_refused() {
    for rule in [
        "best_effort_deadline_seconds: -1",
        "best_effort_deadline_seconds: soon",
        "best_effort_min_dcs: -1",
        "on_complete: stay",
    ] {
        let sandbox = datacenters(rule, "");
        sandbox.call(&["check", "w.yaml"]).exits(3);
        sandbox.run().exits(3);
        assert!(!sandbox.path("log").exists(), "{rule}");
    }
}

#[test]
fn the_state_of_a_completion_is_shown_with_the_names_of_its_source() {
    let sandbox = datacenters("best_effort_min_dcs: 3", "");
    let engine = sandbox.start_run();
    report(&sandbox, &[("north", "ok"), ("east", "no")]);
    sandbox.wait_for_events("two results", |events| {
        !all(events, "item_succeeded").is_empty() && !all(events, "item_dead_lettered").is_empty()
    });
    let state = &sandbox.show()["best_effort"];
    assert_fields!(state, {
        "enabled": true, "min_dcs": 3, "target_dcs": ["north", "east", "south", "west"],
        "dcs_completed": ["north"], "dcs_failed": ["east"],
    });
    report(&sandbox, &[("south", "no"), ("west", "no")]);
    engine.wait().exits(4);
    let job = sandbox.show();
    let events = sandbox.events();
    let reached = one(&events, "completion_reached");
    assert_eq!(job["best_effort"]["deadline"], reached["deadline"]);
}

#[test]
fn results_of_commands_that_ended_in_time_during_downtime_count() {
    let (sandbox, engine) = Sandbox::start_workflow(
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
    Sandbox::wait_until("all commands to start", || sandbox.lines("begun").len() == 3);
    engine.kill();
    sandbox.write("go", "");
    Sandbox::wait_until("all commands to end", || sandbox.lines("log").len() == 3);
    let began = std::time::Instant::now();
    Sandbox::wait_until("the deadline has passed", || began.elapsed().as_millis() > 1100);
    let report = sandbox.resume().exits(0).json();
    assert_eq!(report["items"]["succeeded"], 3);
    let events = sandbox.events();
    let reached = all(&events, "completion_reached");
    assert_eq!(reached[0]["reason"], "all_dcs_reported");
    assert_eq!(sandbox.lines("log").last().map(String::as_str), Some("reduced 3"));
}
