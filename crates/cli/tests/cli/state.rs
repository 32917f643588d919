//! `state`: the retries of a job, carried to another one.

use serde_json::{Value, json};

use crate::home::{CliHome, CliOutput, files};
use crate::plain::at;

const WORKFLOW: &str = "
- {id: first, shell: echo first >> ran}
- id: second
  shell: 'echo second $UNDAUNTED_ATTEMPT >> ran; test -e fixed'
  retry_config: {attempts: 2, backoff: fixed, initial_delay: 2s, retry_budget: 10m}
";

/// A home in which the job was killed while its second command waits for its first retry.
fn killed() -> CliHome {
    let home = CliHome::new();
    home.write("w.yaml", WORKFLOW);
    let mut run = home.command(&["run", "w.yaml"]).spawn().expect("it runs");
    while !home.run(&["events", "@last"]).out.contains("retry_scheduled") {}
    run.kill().expect("killed");
    run.wait().expect("gone");
    home
}

fn exported(home: &CliHome) -> Value {
    let printed = home.run(&["state", "export", "@last"]).exits(0);
    home.write("state.json", &printed.out);
    serde_json::from_str(&printed.out).expect("JSON")
}

#[test]
fn an_imported_job_continues_where_the_exported_one_stood() {
    let home = killed();
    let state = exported(&home);
    let second = at(&state, "/command_retry_states/second");
    assert_eq!(at(second, "/attempt_count"), 1);
    assert_eq!(at(second, "/max_attempts"), 3);
    assert_eq!(at(second, "/backoff_state/current_delay"), "2s");
    assert_eq!(*at(second, "/backoff_state/strategy"), json!({ "Fixed": { "delay": "2s" } }));
    assert_eq!(at(second, "/retry_history/0/success"), false);
    assert!(at(second, "/next_retry_at").as_str().is_some_and(|at| at.ends_with('Z')));
    let import = ["state", "import", "state.json", "--workflow", "w.yaml"];
    let imported = home.json(&[&import[..], &["--json"]].concat());
    let imported = imported.first().expect("an object");
    assert_eq!(at(imported, "/status"), "suspended");
    let counts = ["/commands", "/pending", "/succeeded"].map(|field| at(imported, field).clone());
    assert_eq!(counts, [json!(2), json!(1), json!(1)]);
    let job = at(imported, "/job").as_str().expect("a job");
    let shown = home.json(&["show", job, "--json"]);
    assert_eq!(shown.first().map(|it| at(it, "/status").clone()), Some(json!("suspended")));
    let _ = home.run(&["resume", job]).exits(1);
    assert_eq!(home.read("ran"), "first\nsecond 1\nsecond 2\nsecond 3\n", "nothing runs twice");
    let explained = home.run(&["explain", &format!("{job}/second")]).exits(0).out;
    let before = "  second: 1 attempt before the state was imported\n";
    assert!(explained.contains(before), "{explained}");
}

#[test]
fn invalid_combinations_are_refused_and_nothing_is_stored() {
    let home = CliHome::new();
    home.write("w.yaml", WORKFLOW);
    for (state, why) in [
        (
            json!({ "command_retry_states": { "third": {} } }),
            "`third` names the command `third`, but the workflow has no such command",
        ),
        (
            json!({ "command_retry_states": { "second": { "attempt_count": 4 } } }),
            "`second` has made 4 attempts, but the workflow allows only 3",
        ),
        (
            json!({ "command_retry_states": { "second": {
                "attempt_count": 1,
                "backoff_state": { "strategy": { "Custom": { "formula": "n * n" } } },
            } } }),
            "`second` has the strategy `Custom` with the formula `n * n`; formulas are not supported",
        ),
        (
            json!({ "command_retry_states": { "second": { "next_retry_at": "soon" } } }),
            "`soon` is not a time in RFC 3339",
        ),
    ] {
        home.write("state.json", &state.to_string());
        let printed = home.run(&["state", "import", "state.json", "--workflow", "w.yaml"]);
        let printed = printed.exits(3);
        assert!(printed.err.contains(why), "{}", printed.err);
        assert_eq!(printed.out, "");
    }
    assert_eq!(files(&home.store()), 0, "there is not even a store");
    let missing = ["state", "import", "nothing.json", "--workflow", "w.yaml"];
    let _ = home.run(&missing).exits(6);
}

#[test]
fn dead_letters_are_exported_with_their_attempts_and_stop_at_once_when_imported() {
    let home = CliHome::new();
    home.write(
        "w.yaml",
        "mode: mapreduce\nmap:\n  input: {shell: \"printf 'a\\nb\\n'\"}\n  agent_template:\n    \
         - {id: get, shell: 'echo ${item} >> ran; test ${item} = a', \
         retry_config: {attempts: 1, initial_delay: 1ms}}\n",
    );
    let _ = home.run(&["run", "w.yaml"]).exits(4);
    let state = exported(&home);
    let states = at(&state, "/command_retry_states").as_object().expect("states");
    assert_eq!(states.keys().collect::<Vec<_>>(), ["b/get"]);
    std::fs::remove_file(home.path("ran")).expect("removed");
    let import = ["state", "import", "state.json", "--workflow", "w.yaml"];
    let _ = home.run(&import).exits(0);
    let done = home.json(&["resume", "@last", "--json"]);
    let done = done.first().expect("an object");
    assert_eq!(at(done, "/status"), "partial");
    assert_eq!(at(done, "/reason"), "attempts");
    assert_eq!(home.read("ran"), "", "`a` had succeeded");
}

const ITEMS: &str = r#"[{"id": "north"}, {"id": "south"}, {"id": "west"}]"#;

fn map(command: &str) -> String {
    format!(
        "mode: mapreduce\nretry_config: {{attempts: 3, initial_delay: 1h, max_delay: 2h, jitter: true}}\n\
         map:\n  input: a.json\n  max_parallel: 1\n  agent_template:\n    - {{id: get, shell: '{command}', \
         breaker: {{name: gate, failure_threshold: 4, recovery_timeout: 1h}}}}\n\
         reduce: [{{id: report, shell: 'true'}}]\n"
    )
}

fn import(home: &CliHome, state: &Value) -> CliOutput {
    home.write("state.json", &state.to_string());
    home.run(&["state", "import", "state.json", "--workflow", "w.yaml"])
}

#[test]
fn what_is_not_a_state_or_names_items_that_do_not_exist_is_refused_and_nothing_is_stored() {
    let home = CliHome::new();
    home.write("w.yaml", &map("true"));
    home.write("a.json", ITEMS);
    for (state, why) in [
        (
            json!([]),
            "`state.json` is not a retry state: invalid type: sequence, expected an object at line 1",
        ),
        (
            json!({ "command_retry_states": { "east/get": { "attempt_count": 1 } } }),
            "state.json: `east/get` names the item `east`, but the input of the map has no such item",
        ),
        (
            json!({ "retry_execution_history": [{ "command_id": "east/get", "success": true }] }),
            "state.json: `east/get` names the item `east`, but the input of the map has no such item",
        ),
        (
            json!({ "retry_correlation_map": { "east/get": "x" } }),
            "state.json: `east/get` names the item `east`, but the input of the map has no such item",
        ),
    ] {
        let printed = import(&home, &state).exits(3);
        assert!(printed.err.contains(why), "{}", printed.err);
    }
    assert_eq!(files(&home.store()), 0, "there is not even a store");
}

#[test]
fn an_exported_state_is_imported_and_exported_unchanged() {
    let home = CliHome::new();
    home.write("w.yaml", &map("test ${item.id} = north"));
    home.write("a.json", ITEMS);
    let mut run = home.command(&["run", "w.yaml"]).spawn().expect("it runs");
    while home.run(&["events", "@last"]).out.matches("retry_scheduled").count() < 2 {}
    run.kill().expect("killed");
    run.wait().expect("gone");
    let state = exported(&home);
    let states = at(&state, "/command_retry_states").as_object().expect("states");
    assert_eq!(states.keys().collect::<Vec<_>>(), ["south/get", "west/get"]);
    assert_eq!(at(&state, "/retry_execution_history").as_array().map(Vec::len), Some(3), "north too");
    assert_eq!(at(&state, "/global_retry_config/attempts"), 3);
    let gate = at(&state, "/circuit_breaker_states/gate");
    assert_eq!((at(gate, "/state"), at(gate, "/failure_count")), (&json!("Closed"), &json!(2)));
    assert_eq!((at(gate, "/failure_threshold"), at(gate, "/recovery_timeout")), (&json!(4), &json!("1h")));
    assert!(at(gate, "/last_failure_at").is_string());
    let other = CliHome::new();
    other.write("w.yaml", &map("test ${item.id} = north"));
    other.write("a.json", ITEMS);
    let _ = import(&other, &state).exits(0);
    assert_eq!(exported(&other), state);
}

#[test]
fn imported_correlation_ids_reach_the_commands() {
    let home = CliHome::new();
    home.write("w.yaml", "- {id: a, shell: 'echo $UNDAUNTED_CORRELATION_ID > ran'}\n");
    let state = json!({ "retry_correlation_map": { "a": "from-elsewhere" } });
    let _ = import(&home, &state).exits(0);
    let _ = home.run(&["resume", "@last"]).exits(0);
    assert_eq!(home.read("ran"), "from-elsewhere\n");
    let events = home.json(&["events", "@last", "--json"]);
    let started = events.iter().find(|it| at(it, "/type") == "attempt_started").expect("a start");
    assert_eq!(at(started, "/correlation_id"), "from-elsewhere");
}

#[test]
fn an_imported_breaker_is_what_the_document_says() {
    let guarded = |when_open: &str| {
        format!(
            "- {{id: a, shell: 'test -e fixed', retry_config: {{attempts: 3, initial_delay: 1ms}}, breaker: \
             {{name: gate, failure_threshold: 3, recovery_timeout: 1h, when_open: {when_open}, \
             half_open_max_calls: 1}}}}\n"
        )
    };
    let home = CliHome::new();
    home.write("w.yaml", &guarded("hold"));
    home.write("fixed", "");
    let open = json!({ "state": "Open", "failure_count": 3, "failure_threshold": 3,
        "last_failure_at": "2025-01-16T12:00:00Z", "recovery_timeout": "60s", "half_open_max_calls": 1 });
    let _ = import(&home, &json!({ "circuit_breaker_states": { "gate": open } })).exits(0);
    let _ = home.run(&["resume", "@last"]).exits(0);
    let events = home.json(&["events", "@last", "--json"]);
    assert!(!events.iter().any(|it| at(it, "/type") == "held"), "its time was over");

    let home = CliHome::new();
    home.write("w.yaml", &guarded("fail"));
    let closed = json!({ "state": "Closed", "failure_count": 2 });
    let _ = import(&home, &json!({ "circuit_breaker_states": { "gate": closed } })).exits(0);
    let report = home.json(&["resume", "@last", "--json"]);
    let report = report.first().expect("a report");
    assert_eq!((at(report, "/reason"), at(report, "/attempts")), (&json!("circuit_open"), &json!(1)));
    let gate = at(&exported(&home), "/circuit_breaker_states/gate").clone();
    assert_eq!((at(&gate, "/state"), at(&gate, "/failure_count")), (&json!("Open"), &json!(3)));
}
