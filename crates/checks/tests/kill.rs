//! A few rounds of the kill campaign, with the program that it builds itself.

use std::path::Path;
use std::process::Command;

/// Rounds of jobs, and one of servers.
const ROUNDS: &str = "6";

#[test]
fn a_few_rounds_find_nothing_and_say_how_many() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kill");
    let seed = std::env::var("UNDAUNTED_SEED").unwrap_or_else(|_| "1".to_owned());
    let output = Command::new(env!("CARGO_BIN_EXE_undaunted-checks"))
        .args(["kill", "--rounds", ROUNDS, "--first-seed"])
        .arg(seed)
        .arg("--keep")
        .arg(&folder)
        .output()
        .expect("the campaign runs");
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    let mut lines = out.lines().rev();
    let late = lines.next().expect("a last line");
    assert!(late.starts_with("largest lateness of a wait: "), "{out}");
    let counted = lines.next().expect("a line before it");
    assert!(counted.starts_with("6 rounds, "), "{out}");
    assert!(counted.ends_with(" kills, 0 lost, 0 duplicated"), "{out}");
    assert!(!counted.contains(" 0 kills"), "{out}");
    let left = std::fs::read_dir(&folder).expect("it is there");
    assert_eq!(left.count(), 0, "the folders of sound rounds are removed");
}

#[test]
fn what_cannot_be_run_is_no_result() {
    let output = Command::new(env!("CARGO_BIN_EXE_undaunted-checks"))
        .args(["kill", "--rounds", "1", "--program", "/nowhere"])
        .output()
        .expect("the campaign runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}
