//! A program with functions that is killed with SIGKILL and started again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use undaunted_engine::event::{Event, ItemEvent};
use undaunted_engine::job::Plans;
use undaunted_runner::journal;
use undaunted_store::SqliteStore;

const ITEMS: usize = 400;
const WIDTH: usize = 8;

fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_test-embed"));
    command.arg(folder.join("store")).arg(folder.join("log")).arg(ITEMS.to_string());
    command
}

fn calls(folder: &Path) -> Vec<String> {
    let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    log.lines().map(str::to_owned).collect()
}

/// Waits until so many calls were made, and kills it.
fn kill_after(folder: &Path, mut child: Child, many: usize) {
    let patience = Instant::now() + Duration::from_mins(1);
    while calls(folder).len() < many {
        assert!(Instant::now() < patience, "the program makes no progress");
        assert!(child.try_wait().unwrap().is_none(), "the program ended before it was killed");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_program_killed_repeatedly_loses_and_repeats_nothing_on_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let kills = [40, 150, 151, 300];
    for many in kills {
        let child = program(path).stdout(Stdio::null()).spawn().unwrap();
        kill_after(path, child, many.max(calls(path).len() + 1));
    }
    let done = program(path).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let told = String::from_utf8(done.stdout).unwrap();
    let told: Vec<u64> = told.split_whitespace().map(|it| it.parse().unwrap()).collect();

    let calls = calls(path);
    let different: BTreeSet<&String> = calls.iter().collect();
    assert_eq!(different.len(), calls.len(), "a number was used twice");
    let store = SqliteStore::open(&path.join("store")).unwrap();
    let mut started = BTreeSet::new();
    let mut succeeded: BTreeMap<u32, u32> = BTreeMap::new();
    journal::replay(&store, "noted", &Plans::default(), |job, _, record| match &record.event {
        Event::Item(ItemEvent::AttemptStarted(it)) => {
            let of = it.of;
            assert!(!succeeded.contains_key(&of.index), "{of:?} is repeated");
            let name = job.step(of.step).unwrap().items.identity(of.index);
            started.insert(format!("{name} {}", of.attempt));
        }
        Event::Item(ItemEvent::AttemptSucceeded(it)) => {
            *succeeded.entry(it.of.index).or_default() += 1;
        }
        _ => {}
    })
    .unwrap();
    assert_eq!(succeeded.len(), ITEMS);
    assert!(succeeded.values().all(|many| *many == 1));
    // Every call was on record before it was made; at most those that were about to begin at a kill
    // were not made.
    assert!(calls.iter().all(|call| started.contains(call)));
    assert!(started.len() - calls.len() <= kills.len() * WIDTH);
    let started = u64::try_from(started.len()).unwrap();
    assert_eq!(told, [started, started - u64::try_from(ITEMS).unwrap()]);
}
