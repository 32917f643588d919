//! The binary that is released has no switch by which it can be made to die, to mistake the time or to
//! make a mistake.
//!
//! Empty with the feature `failpoints`: `cargo test -p undaunted --test released` runs it.
#![cfg(not(feature = "failpoints"))]

use std::fs;
use std::process::Command;

use undaunted_engine::mutant::{self, Mutant};

const BINARY: &str = env!("CARGO_BIN_EXE_undaunted");
const VARIABLES: [&str; 2] = ["UNDAUNTED_TEST_DIE", "UNDAUNTED_TEST_CLOCK"];

/// Known when it is compiled, so no mistake can be chosen: with the feature `mutants` this does not build.
const IS_MISTAKEN: bool = mutant::is(Mutant::ExtraAttempt);

#[test]
fn the_released_binary_makes_no_mistake_on_purpose() {
    const { assert!(!IS_MISTAKEN) }
}

#[test]
fn the_released_binary_does_not_contain_the_names_of_the_switches() {
    let bytes = fs::read(BINARY).unwrap();
    let has = |text: &str| {
        let mut parts = bytes.windows(text.len());
        parts.any(|part| part == text.as_bytes())
    };
    // What it does contain is found this way.
    assert!(has("UNDAUNTED_HOME"));
    for name in VARIABLES.iter().chain(&["UNDAUNTED_TEST_"]) {
        assert!(!has(name), "{name}");
    }
}

#[test]
fn the_released_binary_ignores_the_switches() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("w.yaml");
    fs::write(&file, "[{shell: echo run >> log}, {shell: echo run >> log}]").unwrap();
    for place in ["claimed:1", "append-before:3", "begin-before:1", "spawning:1", "exited:1"] {
        let output = Command::new(BINARY)
            .arg("--store")
            .arg(folder.path().join("store"))
            .args(["run", "w.yaml", "--json"])
            .current_dir(folder.path())
            .env("UNDAUNTED_TEST_DIE", place)
            .env("UNDAUNTED_TEST_CLOCK", "1000000000")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{place}: {output:?}");
    }
    let events = Command::new(BINARY)
        .arg("--store")
        .arg(folder.path().join("store"))
        .args(["events", "@last", "--json"])
        .env("UNDAUNTED_TEST_CLOCK", "1000000000")
        .output()
        .unwrap();
    let first = String::from_utf8(events.stdout).unwrap();
    let event: serde_json::Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    let year: u32 = event["at"].as_str().unwrap()[..4].parse().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = 1970 + u32::try_from(now.as_secs() / 31_556_952).unwrap();
    assert!(year.abs_diff(now) <= 1, "the year {year} instead of {now}");
}
