//! What `run --json` and `events --json` print, and the exit codes.

use serde_json::{Value, json};

use crate::history::{kind, one, text};
use crate::world::World;

const KEYS: [&str; 10] = [
    "job",
    "status",
    "reason",
    "error",
    "items",
    "attempts",
    "retries",
    "delay_ms",
    "duration_ms",
    "missing",
];

/// The report, which must be one line with exactly the keys of the contract, in their order.
fn report(workflow: &str, code: i32) -> (World, Value) {
    let world = World::of(workflow);
    let ended = world.run().exits(code);
    assert_eq!(ended.out.lines().count(), 1, "{ended:?}");
    let report = ended.json();
    let mut from = 0;
    for key in KEYS {
        let place = ended.out[from..].find(&format!("\"{key}\":"));
        from += place.unwrap_or_else(|| panic!("{key} is missing or not in its place: {ended:?}"));
    }
    assert_eq!(report.as_object().unwrap().len(), KEYS.len(), "{report}");
    let items = report["items"].as_object().unwrap();
    let known: Vec<&String> = items.keys().collect();
    assert_eq!(known, ["dead", "skipped", "succeeded", "total"]);
    (world, report)
}

#[test]
fn a_completed_job_reports_nulls_where_there_is_nothing_to_say() {
    let (_world, report) = report("[{shell: 'true'}, {shell: 'true'}]", 0);
    assert_eq!(report["status"], "completed");
    assert_eq!((&report["reason"], &report["error"]), (&Value::Null, &Value::Null));
    let items = json!({"total": 2, "succeeded": 2, "dead": 0, "skipped": 0});
    assert_eq!(report["items"], items);
    assert_eq!(report["attempts"], 2);
    assert_eq!((&report["retries"], &report["delay_ms"]), (&json!(0), &json!(0)));
    assert!(report["duration_ms"].is_u64());
    assert_eq!(report["missing"], json!([]));
}

#[test]
fn a_failed_list_reports_the_last_lines_of_stderr_and_what_never_started() {
    let (_world, report) = report(
        "
- shell: echo fine
- id: bad
  shell: echo not this; echo one >&2; echo two >&2; exit 3
  retry_config: {attempts: 2, backoff: fixed, initial_delay: 3ms}
- id: never
  shell: 'true'
",
        1,
    );
    assert_eq!(report["status"], "failed");
    assert_eq!(report["reason"], "attempts");
    let error = text(&report["error"]);
    assert!(error.contains("one\ntwo") && error.contains("exit status 3"), "{error}");
    let items = json!({"total": 3, "succeeded": 1, "dead": 1, "skipped": 0});
    assert_eq!(report["items"], items);
    assert_eq!((&report["attempts"], &report["retries"]), (&json!(4), &json!(2)));
    assert_eq!(report["delay_ms"], 6);
    assert_eq!(report["missing"][0]["item"], "never");
    assert!(report["missing"][0]["reason"].is_string());
}

#[test]
fn a_map_with_dead_letters_is_partial() {
    let (world, report) = report(
        "
mode: mapreduce
map:
  input: {shell: seq 1 3}
  agent_template: [{shell: 'test ${item} != 2'}]
reduce: [{shell: 'echo ${map.successful} ${map.failed} ${map.total} > sum'}]
",
        4,
    );
    assert_eq!(report["status"], "partial");
    let items = json!({"total": 3, "succeeded": 2, "dead": 1, "skipped": 0});
    assert_eq!(report["items"], items);
    // Of the map and the reduce, nothing else.
    assert_eq!(report["attempts"], 4);
    assert_eq!(world.lines("sum"), ["2 1 3"]);
}

#[test]
fn a_map_without_items_is_complete_and_reduce_runs() {
    let (world, report) = report(
        "
mode: mapreduce
map: {input: {shell: 'true'}, agent_template: [{shell: 'true'}]}
reduce: [{shell: 'echo ${map.total} > sum'}]
",
        0,
    );
    assert_eq!(report["items"]["total"], 0);
    assert_eq!(world.lines("sum"), ["0"]);
}

#[test]
fn an_event_is_a_line_with_number_time_and_type() {
    let world = World::of(
        "
- id: flaky
  shell: test $UNDAUNTED_ATTEMPT -gt 1
  retry_config: {attempts: 2, backoff: fixed, initial_delay: 7ms, retry_budget: 1m}
",
    );
    world.run().exits(0);
    let events = world.events();
    let kinds: Vec<&str> = events.iter().map(kind).collect();
    assert_eq!(
        kinds,
        [
            "job_submitted",
            "step_started",
            "attempt_started",
            "attempt_failed",
            "retry_scheduled",
            "attempt_started",
            "attempt_succeeded",
            "item_succeeded",
            "step_completed",
            "job_completed",
        ]
    );
    for (seq, event) in (1_u64..).zip(&events) {
        assert_eq!(event["seq"], seq);
        let at = text(&event["at"]);
        assert!(at.len() == 24 && at.ends_with('Z') && &at[10..11] == "T", "{at}");
        if kind(event).starts_with("attempt") || kind(event) == "retry_scheduled" {
            assert_eq!((&event["item"], &event["command"]), (&json!("flaky"), &json!("flaky")));
            assert!(event["attempt"].is_u64());
            assert!(event["correlation_id"].is_string());
        }
    }
    let scheduled = one(&events, "retry_scheduled");
    let numbers = ["retry", "computed_ms", "capped_ms", "delay_ms", "spent_ms", "retry_budget_ms"];
    let numbers = numbers.map(|name| scheduled[name].as_u64());
    assert_eq!(numbers, [1, 7, 7, 7, 7, 60_000].map(Some));
    // The attempt that failed, not the one to come.
    assert_eq!(scheduled["attempt"], 1);
    assert!(scheduled["due_at"].is_string());
}

#[test]
fn events_can_be_followed_to_the_end() {
    let world = World::of("[{shell: 'echo $$ > up; until [ -e go ]; do sleep 0.01; done'}]");
    let engine = world.spawn(&["run", "w.yaml"]);
    world.pid("up");
    let reader = world.spawn(&["events", "@last", "--json", "--follow"]);
    world.write("go", "");
    engine.wait().exits(0);
    let read = reader.wait().exits(0);
    assert_eq!(read.out, world.call(&["events", "@last", "--json"]).out);
}

#[test]
fn exit_codes_are_those_of_the_contract() {
    let world = World::of("[{shell: exit 9}]");
    world.call(&["run"]).exits(2);
    world.call(&["run", "w.yaml", "--nonsense"]).exits(2);
    world.call(&["run", "nofile.yaml"]).exits(6);
    world.write("bad.yaml", "[{shel: x}]");
    world.call(&["run", "bad.yaml"]).exits(3);
    world.write("empty.yaml", "");
    world.call(&["run", "empty.yaml"]).exits(3);
    // The exit status of a command is not ours.
    world.call(&["run", "w.yaml"]).exits(1);
    for command in ["resume", "show", "events", "cancel"] {
        let ended = world.call(&[command, "nosuchjob"]).exits(6);
        assert!(ended.err.contains("nosuchjob"), "{ended:?}");
        assert_eq!(ended.out, "");
    }
    assert_eq!(world.call(&["ls", "--json"]).out.lines().count(), 1);
}

#[test]
fn results_go_to_stdout_and_the_rest_to_stderr() {
    let world = World::of(
        "
- id: flaky
  shell: echo noise; test $UNDAUNTED_ATTEMPT -gt 2
  retry_config: {attempts: 3, backoff: fixed, initial_delay: 3ms}
",
    );
    let ended = world.call(&["run", "w.yaml"]).exits(0);
    assert!(!ended.out.contains("retry 1"), "{ended:?}");
    // One number is shown with the other.
    assert!(ended.err.contains("attempt 1 of 4"), "{ended:?}");
    assert!(ended.err.contains("retry 2 of 3"), "{ended:?}");
    assert!(ended.out.contains("completed"), "{ended:?}");
    assert!(!ended.out.contains("noise"), "{ended:?}");
}

#[test]
fn jobs_are_named_by_id_by_its_beginning_and_by_last() {
    let world = World::of("[{shell: 'true'}]");
    let refused = world.call(&["show", "@last"]).exits(6);
    assert!(refused.err.contains("no job"), "{refused:?}");
    // Until two begin alike: with 16 first letters, 17 jobs at the latest.
    let mut jobs: Vec<String> = Vec::new();
    let alike = loop {
        let job = world.run().exits(0).job();
        assert_eq!(world.show()["job"], job.as_str());
        let alike = jobs.iter().any(|other| other[..1] == job[..1]);
        jobs.push(job.clone());
        if alike {
            break job;
        }
    };
    let shown = world.call(&["show", &alike, "--json"]).exits(0).json();
    assert_eq!(shown["job"], alike.as_str());
    let ambiguous = world.call(&["show", &alike[..1]]).exits(2);
    assert!(ambiguous.err.contains(&alike), "{ambiguous:?}");
    let beginning = (2..=alike.len()).map(|length| &alike[..length]);
    let unique =
        beginning.clone().find(|start| jobs.iter().filter(|job| job.starts_with(start)).count() == 1);
    let shown = world.call(&["show", unique.unwrap(), "--json"]).exits(0);
    assert_eq!(shown.job(), alike);
}

#[test]
fn a_reader_that_went_away_does_not_turn_a_failure_into_a_success() {
    let world = World::of("[{shell: exit 1}]");
    for args in [&["run", "w.yaml", "--json"][..], &["run", "w.yaml"], &["resume", "@last"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut program = world.program(args, &[]);
        program.stdout(writer).stderr(std::process::Stdio::null());
        assert_eq!(program.status().unwrap().code(), Some(1), "{args:?}");
    }
}
