//! `undaunted check` and `explain-config`, as their callers see them.

use std::fs;

use crate::binary::{repository, text, undaunted};
use serde_json::Value;

fn file(yaml: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("job.yaml");
    fs::write(&path, yaml).expect("written");
    let path = path.to_str().expect("a path").to_owned();
    (folder, path)
}

const BROKEN: &str = "\
- shell: curl -fO https://example.org/data.gz
  retry_config:
    atempts: 5
    initial_delay: 2 minutes
- shell: gunzip data.gz
  timeout: [30s]
";

#[test]
fn a_broken_file_is_shown_with_marks_and_exits_3() {
    let (_folder, path) = file(BROKEN);
    let output = undaunted(&["check", &path]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(text(&output.stdout), "");
    let shown = text(&output.stderr).replace(&path, "job.yaml");
    snapbox::assert_data_eq!(
        shown,
        snapbox::str![[r"
error[unknown-key]: `atempts` is not a key of a retry_config
 --> job.yaml:3:5
  |
3 |     atempts: 5
  |     ^^^^^^^
  |
  = help: did you mean `attempts`?

error[wrong-value]: `2 minutes` is not a duration
 --> job.yaml:4:20
  |
4 |     initial_delay: 2 minutes
  |                    ^^^^^^^^^
  |
  = help: write `2m`

error[wrong-value]: expected a duration such as `30s`, found a list
 --> job.yaml:6:12
  |
6 |   timeout: [30s]
  |            ^^^^^

error: job.yaml is not valid: 3 errors

"]]
    );
}

#[test]
fn editors_get_the_same_as_json() {
    let (_folder, path) = file(BROKEN);
    let output = undaunted(&["check", "--json", &path]);
    assert_eq!(output.status.code(), Some(3));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let found = &report["files"][0];
    assert_eq!(found["valid"], false);
    assert_eq!(found["file"], path.as_str());
    let first = serde_json::json!({
        "code": "unknown-key", "severity": "error",
        "line": 3, "column": 5, "end_line": 3, "end_column": 12,
        "message": "`atempts` is not a key of a retry_config", "help": "did you mean `attempts`?",
    });
    assert_eq!(found["diagnostics"][0], first);
    assert_eq!(found["diagnostics"].as_array().map(Vec::len), Some(3));
}

#[test]
fn warnings_alone_are_no_failure() {
    let (_folder, path) = file("- {shell: 'true', retry_config: {attempts: unlimited}}\n");
    let output = undaunted(&["check", &path]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).ends_with("valid, 1 step, 1 warning\n"));
    assert!(text(&output.stderr).starts_with("warning[unlimited-retries]"));
}

#[test]
fn no_input_is_opened_and_no_agent_needed() {
    let (_folder, path) = file(
        "\
mode: mapreduce
map: {input: does-not-exist.json, agent_template: [{claude: hello}]}
",
    );
    assert_eq!(undaunted(&["check", &path]).status.code(), Some(0));
}

#[test]
fn hostile_files_end_with_exit_3_and_a_place() {
    let bomb: String = (1..30).fold("a0: &a0 [x, x]\n".to_owned(), |text, n| {
        text + &format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}]\n", n - 1)
    });
    for (name, bytes) in [
        ("alias bomb", bomb.into_bytes()),
        ("deep flow", b"[".repeat(20_000)),
        ("deep block", b"- ".repeat(20_000)),
        ("binary", (0..=255).cycle().take(10_000).collect()),
        ("duplicate keys", b"a: 1\na: 2\n".to_vec()),
        ("tags", b"- !!python/object:os.system {shell: x}\n".to_vec()),
        ("empty", Vec::new()),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.yaml");
        fs::write(&path, bytes).expect("written");
        let output = undaunted(&["check", "--json", path.to_str().expect("a path")]);
        assert_eq!(output.status.code(), Some(3), "{name}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let line = &report["files"][0]["diagnostics"][0]["line"];
        assert!(line.as_u64() >= Some(1), "{name}: {report}");
    }
}

#[test]
fn a_malformed_setting_of_the_operator_is_named() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_undaunted"))
        .args(["check", "examples/flaky-download.yaml"])
        .current_dir(repository())
        .env("RETRY_BUDGET_MAX", "many")
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "error: the environment variable RETRY_BUDGET_MAX must be a number of at least 0, not `many`\n"
    );
}

#[test]
fn every_value_of_a_policy_has_an_origin() {
    let (_folder, path) = file(
        "\
mode: mapreduce
error_policy: {retry_config: {backoff: fibonacci, jitter: true}}
map:
  input: a.json
  agent_timeout_secs: 600
  agent_template:
    - {shell: 'echo ${item.id}', id: show, retry_config: {attempts: 5}}
    - {shell: x, id: plain, on_failure: {shell: y}}
",
    );
    let output = undaunted(&["explain-config", &path]);
    snapbox::assert_data_eq!(
        text(&output.stdout),
        snapbox::str![[r"
map/show (line 7)
  attempts         5                        retry_config of the command, line 7
  backoff          fibonacci                error_policy of the workflow, line 2
  initial_delay    1s                       default
  max_delay        30s                      default
  jitter           true                     error_policy of the workflow, line 2
  jitter_factor    0.3                      default
  deadline         10m                      deadline, line 5
  max_retry_after  5m                       default

map/plain (line 8)
  attempts         3                        default
  backoff          fibonacci                error_policy of the workflow, line 2
  initial_delay    1s                       default
  max_delay        30s                      default
  jitter           true                     error_policy of the workflow, line 2
  jitter_factor    0.3                      default
  deadline         10m                      deadline, line 5
  max_retry_after  5m                       default

map/on_failure-shell-1 (line 8)
  runs once: no retry settings

"]]
    );
    let json = undaunted(&["explain-config", "--json", &path]);
    let report: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let attempts = &report["commands"][0]["settings"]["attempts"];
    assert_eq!(*attempts, serde_json::json!({"value": 5, "from": "retry_config of the command", "line": 7}));
}

/// Every YAML file in `examples/`, and every block of the documents the language follows.
pub(crate) fn yaml_texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(repository().join("examples")).expect("examples") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = fs::read_to_string(&path).expect("text");
            texts.push((path.display().to_string(), text));
        }
    }
    let examples = texts.len();
    assert!(examples >= 10, "{examples} examples");
    for page in ["retry-budget", "backoff-strategies"] {
        let path = repository().join(format!("crates/engine/tests/documents/{page}.md"));
        let text = fs::read_to_string(path).expect("text");
        for block in text.split("```yaml\n").skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            let wrapped = if block.starts_with("retry_config:") {
                let lines: Vec<_> = block.lines().map(|line| format!("  {line}")).collect();
                format!("- shell: 'true'\n{}\n", lines.join("\n"))
            } else {
                block.to_owned()
            };
            texts.push((page.to_owned(), wrapped));
        }
    }
    assert_eq!(texts.len() - examples, 17);
    texts
}

#[test]
fn every_example_is_valid() {
    for (name, yaml) in yaml_texts() {
        let (_folder, path) = file(&yaml);
        let output = undaunted(&["check", &path]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
    }
}
