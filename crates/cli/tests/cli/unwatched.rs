//! A job whose output goes to files and pipes, or to a closed pipe.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::binary::text;

/// The last item fails twice.
const MAP: &str = "
name: regions
mode: mapreduce
map:
  input: {shell: \"printf 'north\\neast\\n'\"}
  max_parallel: 1
  error_policy:
    on_item_failure: dlq
    retry_config: {attempts: 1, backoff: fixed, initial_delay: 1ms}
  agent_template:
    - shell: 'echo ${item} >> log; test ${item} = north || { echo no answer >&2; exit 1; }'
";

fn folder(workflow: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("w.yaml"), workflow).expect("written");
    folder
}

fn undaunted(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_undaunted"));
    command
        .args(arguments)
        .current_dir(folder)
        .env("UNDAUNTED_HOME", folder.join("store"))
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Both streams of a run with this option, without what differs from run to run.
fn printed(option: &[&str]) -> String {
    let folder = folder(MAP);
    let arguments = [&["run", "w.yaml"], option].concat();
    let ended = undaunted(folder.path(), &arguments).output().expect("it runs");
    assert_eq!(ended.status.code(), Some(4));
    let both = format!("{}--\n{}", text(&ended.stderr), text(&ended.stdout));
    assert!(!both.contains('\x1b'), "{both:?}");
    let id = both.split_once("job ").map(|(_, rest)| rest.split_at(10).0);
    let both = both.replace(id.unwrap_or("no id"), "ID");
    let lines = both.lines().map(|line| {
        let line = line.split_once("; took ").map_or(line, |(before, _)| before);
        format!("{line}\n")
    });
    lines.collect()
}

#[test]
fn a_stderr_that_is_not_a_terminal_gets_plain_lines() {
    snapbox::assert_data_eq!(
        printed(&[]),
        snapbox::str![[r"
job ID  regions
  map: 2 items, 1 at a time
  east: attempt 1 of 2 failed (exit status 1: no answer); retry 1 of 1 in 1ms
  east: stopped after 2 attempts: All attempts used (1 retry, 2 attempts); last error: exit status 1: no answer
--
job ID completed with dead letters (attempts)
  error: All attempts used (1 retry, 2 attempts); last error: exit status 1: no answer
  1 of 2 items succeeded, 1 dead letter; 3 attempts, 1 retry, 1ms of delays
  why:    undaunted explain ID
  again:  undaunted dlq redrive ID

"]]
    );
}

#[test]
fn verbose_lines_tell_of_every_start_and_success() {
    snapbox::assert_data_eq!(
        printed(&["--verbose"]),
        snapbox::str![[r"
job ID  regions
  map: 2 items, 1 at a time
  north: attempt 1 started
  north: attempt 1 succeeded
  east: attempt 1 started
  east: attempt 1 of 2 failed (exit status 1: no answer); retry 1 of 1 in 1ms
  east: attempt 2 started
  east: stopped after 2 attempts: All attempts used (1 retry, 2 attempts); last error: exit status 1: no answer
--
job ID completed with dead letters (attempts)
  error: All attempts used (1 retry, 2 attempts); last error: exit status 1: no answer
  1 of 2 items succeeded, 1 dead letter; 3 attempts, 1 retry, 1ms of delays
  why:    undaunted explain ID
  again:  undaunted dlq redrive ID

"]]
    );
}

#[test]
fn verbose_lines_contain_the_warnings_about_budgets() {
    let folder =
        folder("- {id: fetch, shell: exit 1, retry_config: {initial_delay: 10ms, retry_budget: 15ms}}\n");
    let ended = undaunted(folder.path(), &["run", "w.yaml", "-v"]).output().expect("it runs");
    let printed = text(&ended.stderr);
    assert!(printed.contains("  WARN Retry budget exhausted for fetch (job "), "{printed}");
    assert!(!printed.contains("DEBUG"), "{printed}");
    let ended = undaunted(folder.path(), &["run", "w.yaml", "-vv"]).output().expect("it runs");
    let printed = text(&ended.stderr);
    assert!(printed.contains("  WARN Retry budget exhausted for fetch (job "), "{printed}");
    assert!(printed.contains("  DEBUG retry_scheduled (job "), "{printed}");
    let ended = undaunted(folder.path(), &["run", "w.yaml"]).output().expect("it runs");
    assert!(!text(&ended.stderr).contains("WARN"), "{}", text(&ended.stderr));

    let pool =
        "retry_budget: 1\ncommands:\n- {id: fetch, shell: exit 1, retry_config: {initial_delay: 1ms}}\n";
    fs::write(folder.path().join("w.yaml"), pool).expect("written");
    let ended = undaunted(folder.path(), &["run", "w.yaml", "-v"]).output().expect("it runs");
    let printed = text(&ended.stderr);
    assert!(printed.contains("  WARN RetryBudgetExhausted (job "), "{printed}");
    assert!(printed.contains("consumed 1, total 1, reason job_budget_exhausted (1/1))"), "{printed}");
}

#[test]
fn a_quiet_job_prints_only_its_result() {
    snapbox::assert_data_eq!(
        printed(&["--quiet"]),
        snapbox::str![[r"
--
job ID completed with dead letters (attempts)
  error: All attempts used (1 retry, 2 attempts); last error: exit status 1: no answer
  1 of 2 items succeeded, 1 dead letter; 3 attempts, 1 retry, 1ms of delays
  why:    undaunted explain ID
  again:  undaunted dlq redrive ID

"]]
    );
}

#[test]
fn with_json_nothing_else_is_printed() {
    let printed = printed(&["--json"]);
    let (lines, object) = printed.split_once("--\n").expect("both streams");
    assert_eq!(lines, "");
    let object: serde_json::Value = serde_json::from_str(object).expect("one object");
    assert_eq!(object["status"], "partial");
}

#[test]
fn contradictory_selections_are_refused() {
    let folder = folder(MAP);
    for other in ["--quiet", "--json"] {
        let arguments = ["run", "w.yaml", "--verbose", other];
        let ended = undaunted(folder.path(), &arguments).output();
        assert_eq!(ended.expect("it runs").status.code(), Some(2));
    }
}

#[test]
fn a_quiet_job_still_says_what_is_wrong() {
    let folder = folder("- shel: 'true'\n");
    let arguments = ["run", "w.yaml", "--quiet"];
    let ended = undaunted(folder.path(), &arguments).output().expect("it runs");
    assert_eq!(ended.status.code(), Some(3));
    assert!(text(&ended.stderr).contains("error: w.yaml is not valid"));
}

/// A pipe whose reader is gone.
fn closed_pipe() -> Stdio {
    let (reader, writer) = io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

#[test]
fn a_job_whose_summary_is_not_read_ends_normally() {
    let folder = folder(MAP);
    let mut command = undaunted(folder.path(), &["run", "w.yaml", "--quiet"]);
    let ended = command.stdout(closed_pipe()).output().expect("it runs");
    assert_eq!(ended.status.code(), Some(4));
    assert_eq!(text(&ended.stderr), "");
}

#[test]
fn a_job_whose_output_is_not_read_keeps_running() {
    let folder = folder(MAP);
    let mut command = undaunted(folder.path(), &["run", "w.yaml", "--verbose"]);
    let ended = command.stderr(closed_pipe()).output().expect("it runs");
    assert_eq!(ended.status.code(), Some(4));
    assert!(text(&ended.stdout).contains("1 of 2 items succeeded"));
    let log = fs::read_to_string(folder.path().join("log"));
    assert_eq!(log.expect("a log"), "north\neast\neast\n");
}

#[test]
fn a_reader_of_lines_that_goes_away_does_not_stop_the_job() {
    let gated =
        MAP.replace("echo ${item} >> log;", "until [ -e go ] || [ ! -e w.yaml ]; do sleep 0.01; done;");
    let folder = folder(&gated);
    let mut running = undaunted(folder.path(), &["run", "w.yaml", "--verbose"]).spawn().expect("it runs");
    let mut lines = running.stderr.take().expect("piped");
    let mut first = [0_u8; 4];
    lines.read_exact(&mut first).expect("something is said");
    assert_eq!(&first, b"job ");
    drop(lines);
    fs::write(folder.path().join("go"), "").expect("written");
    let ended = running.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(4));
}

#[test]
fn a_reader_that_has_seen_enough_is_not_complained_about() {
    let folder = folder(MAP);
    let run = undaunted(folder.path(), &["run", "w.yaml", "--quiet"]).output();
    assert_eq!(run.expect("it runs").status.code(), Some(4));
    for arguments in [
        &["events", "@last"][..],
        &["events", "@last", "--json"],
        &["show", "@last"],
        &["show", "@last", "--json"],
        &["ls"],
        &["schema"],
        &["--help"],
    ] {
        let mut command = undaunted(folder.path(), arguments);
        let ended = command.stdout(closed_pipe()).output().expect("it runs");
        assert_eq!(text(&ended.stderr), "", "{arguments:?}");
    }
}
