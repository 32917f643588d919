//! The output of `run --json` and `events --json`, and the exit codes.

use serde_json::{Value, json};

use crate::history::{assert_fields, kind, one, text};
use crate::sandbox::Sandbox;

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

/// Runs a workflow. Asserts that its report is one line with exactly the documented keys, in their order.
fn report(workflow: &str, code: i32) -> (Sandbox, Value) {
    let sandbox = Sandbox::of(workflow);
    let ended = sandbox.run().exits(code);
    assert_eq!(ended.out.lines().count(), 1, "{ended:?}");
    let report = ended.json();
    let mut from = 0;
    for key in KEYS {
        let position = ended.out[from..].find(&format!("\"{key}\":"));
        from += position.unwrap_or_else(|| panic!("{key} is missing or not in its place: {ended:?}"));
    }
    assert_eq!(report.as_object().unwrap().len(), KEYS.len(), "{report}");
    let items = report["items"].as_object().unwrap();
    let keys: Vec<&String> = items.keys().collect();
    assert_eq!(keys, ["dead", "skipped", "succeeded", "total"]);
    (sandbox, report)
}

#[test]
fn a_completed_job_reports_null_for_fields_without_a_value() {
    let (_sandbox, report) = report("[{shell: 'true'}, {shell: 'true'}]", 0);
    assert_fields!(report, {"status": "completed", "reason": null, "error": null});
    let items = json!({"total": 2, "succeeded": 2, "dead": 0, "skipped": 0});
    assert_eq!(report["items"], items);
    assert_fields!(report, {"attempts": 2, "retries": 0, "delay_ms": 0});
    assert!(report["duration_ms"].is_u64());
    assert_eq!(report["missing"], json!([]));
}

#[test]
fn a_failed_list_reports_the_last_lines_of_stderr_and_what_never_started() {
    let (_sandbox, report) = report(
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
    assert_fields!(report, {"status": "failed", "reason": "attempts"});
    let error = text(&report["error"]);
    assert!(error.contains("one\ntwo") && error.contains("exit status 3"), "{error}");
    let items = json!({"total": 3, "succeeded": 1, "dead": 1, "skipped": 0});
    assert_eq!(report["items"], items);
    assert_fields!(report, {"attempts": 4, "retries": 2, "delay_ms": 6});
    assert_eq!(report["missing"][0]["item"], "never");
    assert!(report["missing"][0]["reason"].is_string());
}

#[test]
fn a_map_with_dead_letters_is_partial() {
    let (sandbox, report) = report(
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
    // Three attempts of the map and one of the reduce.
    assert_eq!(report["attempts"], 4);
    assert_eq!(sandbox.lines("sum"), ["2 1 3"]);
}

#[test]
fn a_map_without_items_is_complete_and_reduce_runs() {
    let (sandbox, report) = report(
        "
mode: mapreduce
map: {input: {shell: 'true'}, agent_template: [{shell: 'true'}]}
reduce: [{shell: 'echo ${map.total} > sum'}]
",
        0,
    );
    assert_eq!(report["items"]["total"], 0);
    assert_eq!(sandbox.lines("sum"), ["0"]);
}

#[test]
fn an_event_is_a_line_with_number_time_and_type() {
    let (sandbox, _) = Sandbox::run_workflow(
        "
- id: flaky
  shell: test $UNDAUNTED_ATTEMPT -gt 1
  retry_config: {attempts: 2, backoff: fixed, initial_delay: 7ms, retry_budget: 1m}
",
        0,
    );
    let events = sandbox.events();
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
            assert_fields!(event, {"item": "flaky", "command": "flaky"});
            assert!(event["attempt"].is_u64());
            assert!(event["correlation_id"].is_string());
        }
    }
    let scheduled = one(&events, "retry_scheduled");
    let numbers = ["retry", "computed_ms", "capped_ms", "delay_ms", "spent_ms", "retry_budget_ms"];
    let numbers = numbers.map(|name| scheduled[name].as_u64());
    assert_eq!(numbers, [1, 7, 7, 7, 7, 60_000].map(Some));
    // The number of the failed attempt, not of the next one.
    assert_eq!(scheduled["attempt"], 1);
    assert!(scheduled["due_at"].is_string());
}

#[test]
fn events_can_be_followed_to_the_end() {
    let sandbox = Sandbox::of("[{shell: 'echo $$ > up; until [ -e go ]; do sleep 0.01; done'}]");
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    sandbox.pid("up");
    let reader = sandbox.spawn(&["events", "@last", "--json", "--follow"]);
    sandbox.write("go", "");
    engine.wait().exits(0);
    let read = reader.wait().exits(0);
    assert_eq!(read.out, sandbox.call(&["events", "@last", "--json"]).out);
}

#[test]
fn exit_codes_are_those_of_the_contract() {
    let sandbox = Sandbox::of("[{shell: exit 9}]");
    sandbox.call(&["run"]).exits(2);
    sandbox.call(&["run", "w.yaml", "--nonsense"]).exits(2);
    sandbox.call(&["run", "nofile.yaml"]).exits(6);
    sandbox.write("bad.yaml", "[{shel: x}]");
    sandbox.call(&["run", "bad.yaml"]).exits(3);
    sandbox.write("empty.yaml", "");
    sandbox.call(&["run", "empty.yaml"]).exits(3);
    // The exit status of a command does not become that of the binary.
    sandbox.call(&["run", "w.yaml"]).exits(1);
    for command in ["resume", "show", "events", "cancel"] {
        let ended = sandbox.call(&[command, "nosuchjob"]).exits(6).err_contains("nosuchjob");
        assert_eq!(ended.out, "");
    }
    assert_eq!(sandbox.call(&["ls", "--json"]).out.lines().count(), 1);
}

#[test]
fn results_go_to_stdout_and_the_rest_to_stderr() {
    let sandbox = Sandbox::of(
        "
- id: flaky
  shell: echo noise; test $UNDAUNTED_ATTEMPT -gt 2
  retry_config: {attempts: 3, backoff: fixed, initial_delay: 3ms}
",
    );
    let ended = sandbox.call(&["run", "w.yaml"]).exits(0);
    assert!(!ended.out.contains("retry 1"), "{ended:?}");
    // Messages show the number of attempts and the number of retries.
    assert!(ended.err.contains("attempt 1 of 4"), "{ended:?}");
    assert!(ended.err.contains("retry 2 of 3"), "{ended:?}");
    assert!(ended.out.contains("completed"), "{ended:?}");
    assert!(!ended.out.contains("noise"), "{ended:?}");
}

#[test]
fn jobs_are_named_by_id_by_its_beginning_and_by_last() {
    let sandbox = Sandbox::of("[{shell: 'true'}]");
    sandbox.call(&["show", "@last"]).exits(6).err_contains("no job");
    // Until two ids have the same first character: there are 16, so after 17 jobs at the latest.
    let mut jobs: Vec<String> = Vec::new();
    let alike = loop {
        let job = sandbox.run().exits(0).job();
        assert_eq!(sandbox.show()["job"], job.as_str());
        let alike = jobs.iter().any(|other| other[..1] == job[..1]);
        jobs.push(job.clone());
        if alike {
            break job;
        }
    };
    let job = sandbox.json(&["show", &alike, "--json"]);
    assert_eq!(job["job"], alike.as_str());
    sandbox.call(&["show", &alike[..1]]).exits(2).err_contains(&alike);
    let beginning = (2..=alike.len()).map(|length| &alike[..length]);
    let unique =
        beginning.clone().find(|start| jobs.iter().filter(|job| job.starts_with(start)).count() == 1);
    let job = sandbox.call(&["show", unique.unwrap(), "--json"]).exits(0);
    assert_eq!(job.job(), alike);
}

#[test]
fn a_reader_that_went_away_does_not_turn_a_failure_into_a_success() {
    let sandbox = Sandbox::of("[{shell: exit 1}]");
    for args in [&["run", "w.yaml", "--json"][..], &["run", "w.yaml"], &["resume", "@last"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut program = sandbox.program(args, &[]);
        program.stdout(writer).stderr(std::process::Stdio::null());
        assert_eq!(program.status().unwrap().code(), Some(1), "{args:?}");
    }
}
