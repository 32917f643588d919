//! `state`: the retries of a job, carried to another one.

use serde_json::{Value, json};

use crate::home::{CliHome, files};
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
    assert_eq!((at(imported, "/commands"), at(imported, "/pending")), (&json!(1), &json!(1)));
    let job = at(imported, "/job").as_str().expect("a job");
    let shown = home.json(&["show", job, "--json"]);
    assert_eq!(shown.first().map(|it| at(it, "/status").clone()), Some(json!("suspended")));
    let _ = home.run(&["resume", job]).exits(1);
    assert_eq!(home.read("ran"), "first\nsecond 1\nfirst\nsecond 2\nsecond 3\n");
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
    assert_eq!(home.read("ran"), "a\n");
}
