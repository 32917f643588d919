//! Several processes share a store, and some of them are killed.
//!
//! A child process is this test program again, running only the ignored test below.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a panic in a test is a red test")]

use std::io::{BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use undaunted_store::{
    AggregateId, Append, AppendError, ClaimError, Epoch, SqliteStore, Store, StoreError, Version,
};

const FOLDER: &str = "UNDAUNTED_STORE_TEST_FOLDER";
const ROLE: &str = "UNDAUNTED_STORE_TEST_ROLE";
/// Records of one append by a child.
const BATCH: u64 = 7;

fn job(id: &str) -> AggregateId {
    AggregateId::new("job", id).unwrap()
}

#[test]
#[ignore = "the child of the other tests"]
fn the_child() {
    let (Ok(folder), Ok(role)) = (std::env::var(FOLDER), std::env::var(ROLE)) else {
        return;
    };
    let store = SqliteStore::open(Path::new(&folder)).unwrap();
    match role.as_str() {
        "own" => own(&store),
        "append" => append_for_ever(&store),
        "contend" => contend(&store),
        "facts" => facts(&store),
        "overflow" => overflow(&store),
        other => panic!("{other}"),
    }
}

fn own(store: &SqliteStore) {
    let claim = store.claim(&job("a")).unwrap();
    let records = vec![b"mine".to_vec()];
    let append = Append::new(job("a"), claim.version, claim.epoch, records);
    store.append(vec![append]).unwrap();
    // The command outlives this process; the claim must not.
    let mut command = Command::new("sleep");
    command.arg("5").stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut started = command.spawn().unwrap();
    println!("epoch {}", claim.epoch);
    wait_to_be_killed();
    started.wait().unwrap();
}

/// Appends to two aggregates at a time, so that a partial append would be noticed.
fn append_for_ever(store: &SqliteStore) {
    let mut version = Version::EMPTY;
    loop {
        let records = |side: &str| {
            let versions = 1..=BATCH;
            versions.map(|n| format!("{side} {}", version.0 + n).into_bytes()).collect()
        };
        let of = |side: &str| Append::new(job(side), version, Epoch::UNCLAIMED, records(side));
        let append = vec![of("left"), of("right")];
        store.append(append).unwrap();
        version = Version(version.0 + BATCH);
        println!("acknowledged {version}");
    }
}

fn contend(store: &SqliteStore) {
    println!("ready");
    let mut at = Version::EMPTY;
    for _ in 0..100 {
        loop {
            let append = Append::new(job("a"), at, Epoch::UNCLAIMED, vec![b"x".to_vec()]);
            match store.append(vec![append]) {
                Ok(_) => break at = at.next(),
                Err(AppendError::Conflict { found, .. }) => at = found,
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}

/// Appends facts, which every process may do at any time.
fn facts(store: &SqliteStore) {
    println!("ready");
    for _ in 0..100 {
        let facts = Append::facts(job("a"), vec![b"x".to_vec(), b"y".to_vec()]);
        store.append(vec![facts]).unwrap();
    }
}

fn overflow(store: &SqliteStore) {
    let mut version = Version::EMPTY;
    let append = |at| Append::new(job("a"), at, Epoch::UNCLAIMED, vec![vec![7; 50_000]]);
    let error = loop {
        match store.append(vec![append(version)]) {
            Ok(_) => version = version.next(),
            Err(error) => break error,
        }
    };
    let must_reopen = |error| matches!(error, AppendError::Store(StoreError::MustReopen { .. }));
    assert!(must_reopen(error));
    assert!(must_reopen(store.append(vec![append(version)]).unwrap_err()));
    assert!(store.head(&job("a")).is_err());
    println!("acknowledged {version}");
}

fn wait_to_be_killed() {
    // The parent keeps standard input open until it kills this process.
    let _ = std::io::stdin().read(&mut [0]);
}

fn child(folder: &Path, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_child", "--ignored", "--nocapture"]);
    command.env(FOLDER, folder).env(ROLE, role);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

fn start(folder: &Path, role: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = child(folder, role).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

/// The number after a word that a child printed.
fn said(output: &mut impl std::io::BufRead, word: &str) -> Option<u64> {
    let mut line = String::new();
    while output.read_line(&mut line).unwrap() > 0 {
        // The test runner may have printed text before it on the same line.
        if let Some((_, number)) = line.trim_end().rsplit_once(&format!("{word} ")) {
            return Some(number.parse().unwrap());
        }
        line.clear();
    }
    None
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_aggregate_of_a_killed_process_can_be_claimed_at_once() {
    let folder = TempDir::new().unwrap();
    let (owner, mut output) = start(folder.path(), "own");
    let stale = Epoch(said(&mut output, "epoch").unwrap());
    let store = SqliteStore::open(folder.path()).unwrap();
    match store.claim(&job("a")) {
        Err(ClaimError::OwnedBy { owner: found, .. }) => assert_eq!(found.pid, owner.id()),
        other => panic!("{other:?}"),
    }
    kill(owner);
    let began = Instant::now();
    let claim = store.claim(&job("a")).unwrap();
    assert!(claim.epoch > stale);
    assert_eq!(claim.version, Version(1));
    println!("claimed after {:?}", began.elapsed());
    let late = Append::new(job("a"), Version(1), stale, vec![b"late".to_vec()]);
    let late = store.append(vec![late]);
    assert!(matches!(late, Err(AppendError::Fenced { .. })));
}

#[test]
fn a_killed_process_loses_no_acknowledged_append_and_leaves_no_partial_one() {
    let folder = TempDir::new().unwrap();
    for round in 1..=8_u64 {
        let path = folder.path().join(round.to_string());
        let (child, mut output) = start(&path, "append");
        // The child is killed some time after its last acknowledged append, at a different point each time.
        for _ in 0..round * 5 {
            said(&mut output, "acknowledged").unwrap();
        }
        std::thread::sleep(Duration::from_micros(173 * round));
        kill(child);
        let mut last = round * 5 * BATCH;
        while let Some(more) = said(&mut output, "acknowledged") {
            last = more;
        }
        let store = SqliteStore::open(&path).unwrap();
        let lengths = ["left", "right"].map(|side| {
            let records = store.read(&job(side), Version::EMPTY).unwrap();
            let mut length = 0;
            for record in records {
                let (version, bytes) = record.unwrap();
                length += 1;
                assert_eq!(version, Version(length));
                assert_eq!(bytes, format!("{side} {length}").into_bytes());
            }
            length
        });
        assert_eq!(lengths[0], lengths[1], "half an append");
        assert_eq!(lengths[0] % BATCH, 0, "half a batch");
        assert!(lengths[0] >= last, "{} of {last}", lengths[0]);
        assert!(lengths[0] <= last + BATCH);
    }
}

/// Runs three processes with one role at the same time, and opens the store they leave.
fn three_at_once(folder: &Path, role: &str) -> SqliteStore {
    let children: Vec<Child> = (0..3).map(|_| child(folder, role).spawn().unwrap()).collect();
    for mut child in children {
        // Its output is read to the end, because a full pipe would block it.
        let mut output = child.stdout.take().unwrap();
        output.read_to_string(&mut String::new()).unwrap();
        assert!(child.wait().unwrap().success());
    }
    SqliteStore::open(folder).unwrap()
}

#[test]
fn processes_share_one_journal() {
    let folder = TempDir::new().unwrap();
    let store = three_at_once(folder.path(), "contend");
    let head = store.head(&job("a")).unwrap().unwrap();
    assert_eq!(head.version, Version(300));
}

#[test]
fn facts_of_processes_never_conflict_and_none_is_lost() {
    let folder = TempDir::new().unwrap();
    let store = three_at_once(folder.path(), "facts");
    let records = store.read(&job("a"), Version::EMPTY).unwrap();
    let bytes: Vec<u8> = records.flat_map(|record| record.unwrap().1).collect();
    assert_eq!(bytes, b"xy".repeat(300), "each append stays together");
}

#[test]
fn after_a_write_of_unknown_fate_the_store_must_be_reopened() {
    let folder = TempDir::new().unwrap();
    let inner = child(folder.path(), "overflow");
    // A limit on the file size makes a write fail halfway, as a bad disk would.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$@\"", "sh"]);
    limited.arg(inner.get_program()).args(inner.get_args());
    limited.env(FOLDER, folder.path()).env(ROLE, "overflow").stdout(Stdio::piped());
    let output = limited.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let acknowledged = said(&mut output.stdout.as_slice(), "acknowledged").unwrap();
    assert!(acknowledged > 3);
    let store = SqliteStore::open(folder.path()).unwrap();
    let records = store.read(&job("a"), Version::EMPTY).unwrap();
    let found = records.map(Result::unwrap).count();
    let acknowledged = usize::try_from(acknowledged).unwrap();
    assert!(found == acknowledged || found == acknowledged + 1);
}
