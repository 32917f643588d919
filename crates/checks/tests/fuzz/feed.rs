//! Runs a target on its corpus and on mutants of it.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;
use std::{env, fs, io};

use undaunted_checks::fuzz::{FuzzTarget, run};
use undaunted_checks::repository;

/// Every input that the target may be given breaks no law.
pub(crate) fn fuzz(target: FuzzTarget, name: &str, inputs: u64) {
    let seed = given("UNDAUNTED_SEED").unwrap_or(1);
    let inputs = given("UNDAUNTED_FUZZ_INPUTS").unwrap_or(inputs);
    eprintln!("UNDAUNTED_SEED={seed}  {inputs} inputs of {name}");
    let outcome = run(target, &corpus(name), inputs, seed);
    if let Err(finding) = &outcome {
        eprintln!("{finding}");
    }
    assert!(outcome.is_ok(), "a law was broken; see above how to repeat it");
}

/// A run with seed 1 brings up all of this.
#[track_caller]
pub(crate) fn brings_up(target: FuzzTarget, name: &str, inputs: u64, expected: &[&'static str]) {
    let outcome = run(target, &corpus(name), inputs, 1);
    if let Err(finding) = &outcome {
        eprintln!("{finding}");
    }
    assert!(outcome.is_ok(), "a law was broken; see above");
    let seen = outcome.unwrap_or_default();
    let expected: BTreeSet<&str> = expected.iter().copied().collect();
    let missing: Vec<&&str> = expected.difference(&seen).collect();
    assert!(missing.is_empty(), "{missing:?} did not come up: {seen:?}");
}

/// The corpus of a target, in the order of its file names; empty if it has none.
pub(crate) fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = repository().join("crates/checks/corpus").join(name);
    if !folder.exists() {
        return Vec::new();
    }
    let files = files(&folder);
    assert!(files.is_ok(), "the corpus of {name}: {files:?}");
    files.unwrap_or_default()
}

fn files(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    paths.iter().map(fs::read).collect()
}

fn given<N: FromStr>(name: &str) -> Option<N> {
    let given = env::var_os(name)?;
    let number = given.to_str().and_then(|text| text.parse().ok());
    assert!(number.is_some(), "{name} is {}; accepted is a number from 0 to 2^64-1", given.display());
    number
}
