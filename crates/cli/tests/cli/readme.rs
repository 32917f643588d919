//! The first page is true: its workflow is run, killed and resumed, and prints what the page shows.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::binary::{repository, text};
use crate::documents::{blocks, check};

#[test]
fn the_workflows_of_the_readme_are_valid_and_the_first_is_the_example() {
    let page = fs::read_to_string(repository().join("README.md")).expect("a page");
    let blocks = blocks(&page);
    let workflows: Vec<_> = blocks.iter().filter(|it| it.language == "yaml").collect();
    for block in &workflows {
        let (printed, status) = check(&block.content);
        assert_eq!(status, Some(0), "{printed}");
    }
    let first = workflows.first().expect("a workflow");
    let example = fs::read_to_string(repository().join("examples/survive.yaml"));
    assert_eq!(first.content, example.expect("the example"));
    assert_eq!(first.content.lines().count(), 12);
}

#[test]
fn the_readme_shows_what_is_printed_after_a_kill_and_a_resume() {
    let page = fs::read_to_string(repository().join("README.md")).expect("a page");
    let shown = blocks(&page);
    let shown = shown.iter().find(|block| block.content.contains("Killed"));
    let shown = &shown.expect("the block with the kill").content;

    let store = tempfile::tempdir().expect("a folder");
    let mut printed = String::from("$ cargo run --release -- run examples/survive.yaml\n");
    let mut run =
        undaunted(store.path(), &["run", "examples/survive.yaml"]).spawn().expect("the binary runs");
    let mut lines = BufReader::new(run.stderr.take().expect("piped")).lines();
    while !printed.contains("east") {
        printed.push_str(&lines.next().expect("a line").expect("text"));
        printed.push('\n');
    }
    // Its keeper begins `south` at once; the resume counts what is on record as running.
    let is_recorded = |events: &str| {
        let mut starts = events.lines().filter(|line| line.contains("attempt_started"));
        starts.any(|line| line.contains("south"))
    };
    loop {
        let events = undaunted(store.path(), &["events", "@last", "--json"]).output().expect("it runs");
        if is_recorded(&text(&events.stdout)) {
            break;
        }
    }
    run.kill().expect("killed");
    run.wait().expect("gone");
    printed.push_str("Killed                                    (by `kill -9`, while `south` is running)\n");
    printed.push_str("$ cargo run --release -- resume @last\n");
    let resumed = undaunted(store.path(), &["resume", "@last"]).output().expect("the binary runs");
    assert_eq!(resumed.status.code(), Some(0));
    printed.push_str(&text(&resumed.stderr));
    printed.push_str(&text(&resumed.stdout));
    assert_eq!(without_chance(shown), without_chance(&printed));
}

fn undaunted(store: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_undaunted"));
    command
        .args(arguments)
        .current_dir(repository())
        .env("NO_COLOR", "1")
        .env("UNDAUNTED_HOME", store)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The text without what differs from run to run: the id of the job, and two durations.
fn without_chance(page: &str) -> String {
    let line = |line: &str| {
        let line = match line.strip_prefix("job ").and_then(|rest| rest.split_once(' ')) {
            Some((_, rest)) => format!("job ID {rest}"),
            None => line.to_owned(),
        };
        let line = match line.split_once("; took ") {
            Some((before, _)) => format!("{before}; took T"),
            None => line,
        };
        match line.split_once("last activity ").zip(line.split_once(" ago ")) {
            Some(((before, _), (_, after))) => format!("{before}last activity T ago {after}"),
            None => line,
        }
    };
    page.lines().map(|text| line(text) + "\n").collect()
}
