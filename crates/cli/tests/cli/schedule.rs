//! `undaunted schedule`, as its callers see it.

use crate::binary::{text, undaunted};
use crate::home::CliHome;
use serde_json::{Value, json};

fn schedule(arguments: &[&str]) -> Value {
    let output = undaunted(&[&["schedule", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn delays(plan: &Value) -> Vec<u64> {
    let retries = plan["retries"].as_array().expect("a list");
    retries.iter().map(|retry| retry["delay_ms"].as_u64().expect("whole")).collect()
}

#[test]
fn the_json_has_the_documented_shape() {
    assert_eq!(
        schedule(&["--retry-config", "{attempts: 2, max_delay: 1500ms}"]),
        json!({
            "attempts_allowed": 3,
            "retries": [
                {"retry": 1, "computed_ms": 1000, "capped_ms": 1000, "delay_ms": 1000, "spent_ms": 1000},
                {"retry": 2, "computed_ms": 2000, "capped_ms": 1500, "delay_ms": 1500, "spent_ms": 2500},
            ],
            "stops": {"reason": "attempts", "after_retries": 2},
        })
    );
}

#[test]
fn the_outer_key_is_optional() {
    let bare = schedule(&["--retry-config", "attempts: 5\nbackoff: fibonacci"]);
    let outer = schedule(&["--retry-config", "retry_config:\n  attempts: 5\n  backoff: fibonacci"]);
    assert_eq!(bare, outer);
    assert_eq!(delays(&bare), [1000, 1000, 2000, 3000, 5000]);
}

#[test]
fn an_unlimited_policy_is_shown_up_to_a_hundred_retries() {
    let plan = schedule(&["--retry-config", "{attempts: unlimited}"]);
    assert_eq!(plan["attempts_allowed"], Value::Null);
    assert_eq!(delays(&plan).len(), 100);
    assert_eq!(plan["stops"], json!({"reason": null, "after_retries": 100}));
    let few = schedule(&["--retry-config", "{attempts: unlimited}", "--retries", "3"]);
    assert_eq!(delays(&few), [1000, 2000, 4000]);
}

#[test]
fn asking_for_exactly_the_existing_number_shows_why_there_are_no_more() {
    let plan = schedule(&["--retry-config", "{attempts: 3}", "--retries", "3"]);
    assert_eq!(plan["stops"], json!({"reason": "attempts", "after_retries": 3}));
    let fewer = schedule(&["--retry-config", "{attempts: 3}", "--retries", "2"]);
    assert_eq!(fewer["stops"], json!({"reason": null, "after_retries": 2}));
    let none = schedule(&["--retry-config", "{attempts: 0}"]);
    assert_eq!(none["stops"], json!({"reason": "attempts", "after_retries": 0}));
}

#[test]
fn the_delays_add_up_to_what_is_spent() {
    for jitter in ["true", "full", "equal", "decorrelated"] {
        let config = format!("{{attempts: 50, jitter: {jitter}, initial_delay: 137ms, retry_budget: 3m}}");
        let plan = schedule(&["--retry-config", &config, "--seed", "9"]);
        let spent: u64 = delays(&plan).iter().sum();
        let last = plan["retries"].as_array().and_then(|retries| retries.last());
        assert_eq!(last.expect("retries")["spent_ms"], json!(spent), "{jitter}");
        assert!(spent <= 180_000);
    }
}

#[test]
fn the_seed_decides_the_jitter() {
    let with = |seed: &str| delays(&schedule(&["--retry-config", "{jitter: true}", "--seed", seed]));
    assert_eq!(with("1"), with("1"));
    assert_ne!(with("1"), with("2"));
}

#[test]
fn a_file_is_shown_by_command_or_by_step() {
    let file = tempfile::NamedTempFile::with_suffix(".yaml").expect("a file");
    let yaml = "\
mode: mapreduce
setup: [{shell: 'true', id: prepare}]
map:
  input: a.json
  agent_timeout_secs: 60
  agent_template:
    - {shell: one, id: first}
    - {shell: two, id: second, retry_config: {attempts: 9, backoff: {fixed: {delay: 25s}}, jitter: true}}
";
    std::fs::write(&file, yaml).expect("written");
    let path = file.path().to_str().expect("a path");
    let plan = schedule(&[path]);
    assert_eq!(plan["attempts_allowed"], 10, "the first command that is retried");
    assert_eq!(plan["stops"]["reason"], "deadline");
    assert_eq!(schedule(&[path, "--step", "second"]), plan);
    assert_eq!(schedule(&[path, "--step", "map"]), plan);
    assert_eq!(schedule(&[path, "--step", "first"])["attempts_allowed"], 1);
    let unknown = undaunted(&["schedule", path, "--step", "third"]);
    assert_eq!(unknown.status.code(), Some(6));
    let said = text(&unknown.stderr);
    assert!(said.ends_with("error: step `third` not found; the commands are prepare, first, second\n"));
}

#[test]
fn a_mistake_is_shown_at_its_position() {
    let wrong = undaunted(&["schedule", "--retry-config", "{attempts: 3, initial_delay: 1 second}"]);
    assert_eq!(wrong.status.code(), Some(3));
    assert_eq!(text(&wrong.stdout), "");
    snapbox::assert_data_eq!(
        text(&wrong.stderr),
        snapbox::str![[r"
error[wrong-value]: `1 second` is not a duration
 --> --retry-config:1:30
  |
1 | {attempts: 3, initial_delay: 1 second}
  |                              ^^^^^^^^
  |
  = help: write `1s`

error: invalid retry_config

"]]
    );
    assert_eq!(undaunted(&["schedule"]).status.code(), Some(2));
    assert_eq!(undaunted(&["schedule", "no-such-file.yaml"]).status.code(), Some(6));
}

#[test]
fn people_see_a_bar_for_each_wait() {
    let output = undaunted(&["schedule", "--retry-config", "{attempts: 4, retry_budget: 10s}"]);
    snapbox::assert_data_eq!(
        text(&output.stdout),
        snapbox::str![[r"
retry   computed     capped      delay      spent
    1         1s         1s         1s         1s  ███████▌
    2         2s         2s         2s         3s  ███████████████
    3         4s         4s         4s         7s  ██████████████████████████████
stops after 3 retries (4 attempts): the next delay would exceed the retry budget of 10s

"]]
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let binary = env!("CARGO_BIN_EXE_undaunted");
    let script = format!("'{binary}' schedule --json --retry-config '{{attempts: 1000000}}' | head -c 10");
    let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("sh runs");
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("{\"attempts", ""));
}

#[test]
fn a_job_shows_the_short_delays_of_its_schedule() {
    let home = CliHome::new();
    let policy = "{attempts: 4, initial_delay: 1ms, max_delay: 3ms, jitter: true, retry_budget: 1m}";
    home.write("w.yaml", &format!("- {{id: a, shell: 'exit 1', retry_config: {policy}}}\n"));
    let report = home.json(&["run", "w.yaml", "--seed", "7", "--json"]).remove(0);
    let planned = schedule(&["--retry-config", policy, "--seed", "7"]);
    let planned = planned["retries"].as_array().expect("a list");
    assert!(planned.iter().any(|retry| retry["delay_ms"].as_u64().is_none()), "{planned:?}");
    let of_schedule = |from: &Value| {
        let fields = ["retry", "computed_ms", "capped_ms", "delay_ms", "spent_ms"];
        Value::Object(fields.map(|name| (name.to_owned(), from[name].clone())).into_iter().collect())
    };
    let events = home.json(&["events", "@last", "--json"]);
    let scheduled: Vec<Value> =
        events.iter().filter(|it| it["type"] == "retry_scheduled").map(of_schedule).collect();
    assert_eq!(scheduled, planned.iter().map(of_schedule).collect::<Vec<_>>());
    assert_eq!(Some(&report["delay_ms"]), planned.last().map(|last| &last["spent_ms"]));
    let attempts = home.json(&["attempts", "@last", "--json"]);
    let shown: Vec<&Value> = attempts.iter().map(|it| &it["delay_ms"]).filter(|it| !it.is_null()).collect();
    assert_eq!(shown, planned.iter().map(|retry| &retry["delay_ms"]).collect::<Vec<_>>());
}
