//! A damaged store reports an error or returns an intact beginning, but never wrong data.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a panic in a test is a red test")]

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;
use undaunted_store::{AggregateId, Append, Epoch, SqliteStore, Store, StoreError, Version};

const JOBS: [&str; 3] = ["a", "b", "c"];

fn empty_store() -> (TempDir, SqliteStore) {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    (folder, store)
}

fn job(id: &str) -> AggregateId {
    AggregateId::new("job", id).unwrap()
}

fn record(id: &str, version: u64) -> Vec<u8> {
    format!("{id}{version} ").repeat(1 + usize::try_from(version % 40).unwrap()).into_bytes()
}

/// Three jobs with 90 records each, in batches of different lengths.
fn fill(store: &SqliteStore) {
    for id in JOBS {
        let mut version = 0;
        for length in (1..=12).chain([12]) {
            let records = (1..=length).map(|n| record(id, version + n)).collect();
            let at = Version(version);
            store.append(vec![Append::new(job(id), at, Epoch::UNCLAIMED, records)]).unwrap();
            version += length;
        }
        assert_eq!(version, 90);
        store.save_snapshot(&job(id), Version(50), record(id, 50)).unwrap();
        store.save_snapshot(&job(id), Version(70), record(id, 70)).unwrap();
    }
}

/// Reads and checks the records of a job. Returns the last readable version, and the error that stopped the
/// reader.
fn readable(store: &SqliteStore, id: &str) -> (u64, Option<StoreError>) {
    let mut at = 0;
    let records = match store.read(&job(id), Version::EMPTY) {
        Ok(records) => records,
        Err(error) => return (0, Some(error)),
    };
    for next in records {
        match next {
            Ok((version, bytes)) => {
                at += 1;
                assert_eq!(version, Version(at), "a record was skipped");
                assert_eq!(bytes, record(id, at), "wrong data");
            }
            Err(error) => return (at, Some(error)),
        }
    }
    (at, None)
}

fn chance(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 33).unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in ["undaunted.db", "undaunted.db-wal"] {
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

/// Alters one file in many copies of a store, each copy in a different place.
fn altered(from: &Path, file: &str, rounds: usize, mut seed: u64) {
    let whole = fs::read(from.join(file)).unwrap();
    let (mut stopped, mut refused, mut shorter) = (0, 0, 0);
    for round in 0..rounds {
        let to = TempDir::new().unwrap();
        copy(from, to.path());
        let mut bytes = whole.clone();
        let place = chance(&mut seed) % bytes.len();
        let length = [1, 1, 1, 16, 600][round % 5].min(bytes.len() - place);
        for byte in &mut bytes[place..place + length] {
            *byte ^= u8::try_from(1 + chance(&mut seed) % 255).unwrap();
        }
        if round % 10 == 9 {
            bytes.truncate(place);
        }
        fs::write(to.path().join(file), bytes).unwrap();
        let Ok(store) = SqliteStore::open(to.path()) else {
            refused += 1;
            continue;
        };
        for id in JOBS {
            match readable(&store, id) {
                (_, Some(_)) => stopped += 1,
                (at, None) if at < 90 => shorter += 1,
                _ => {}
            }
        }
    }
    println!("{file}: {refused} refused, {stopped} stopped, {shorter} shorter, of {rounds}");
}

#[test]
fn an_altered_database_gives_an_error_or_an_intact_beginning() {
    let (folder, store) = empty_store();
    fill(&store);
    // Then all records are in the database, and the log is nearly empty.
    store.compact().unwrap();
    drop(store);
    altered(folder.path(), "undaunted.db", 250, 1);
}

#[test]
fn an_altered_log_gives_an_error_or_an_intact_beginning() {
    let (folder, store) = empty_store();
    fill(&store);
    // While the store is open, all records are in the log. A copy of it is what a crash leaves.
    let copied = folder.path().join("copied");
    copy(folder.path(), &copied);
    drop(store);
    // The preallocated zeros at its end are cut off, because altering them would damage nothing.
    let log = copied.join("undaunted.db-wal");
    let mut bytes = fs::read(&log).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes.truncate(end + 1);
    fs::write(&log, bytes).unwrap();
    altered(&copied, "undaunted.db-wal", 100, 2);
}

/// A filled store whose database was changed with a SQL statement.
fn changed(statement: &str) -> (TempDir, SqliteStore) {
    let folder = TempDir::new().unwrap();
    fill(&SqliteStore::open(folder.path()).unwrap());
    let database = Connection::open(folder.path().join("undaunted.db")).unwrap();
    database.execute_batch(statement).unwrap();
    drop(database);
    let store = SqliteStore::open(folder.path()).unwrap();
    (folder, store)
}

#[test]
fn damage_is_reported_after_all_records_before_it() {
    // Job b is the second; versions 29 to 36 share a row.
    let b = "aggregate = 2 AND first = 29";
    let middle = "x'ffff', substr(body, 1, 100), substr(body, 103)";
    let cases = [
        (format!("DELETE FROM batches WHERE {b}"), 28, "missing"),
        (format!("UPDATE batches SET body = x'' WHERE {b}"), 28, "cut"),
        (format!("UPDATE batches SET count = 9 WHERE {b}"), 36, "cut"),
        (format!("UPDATE batches SET count = 7 WHERE {b}"), 35, "more"),
        (format!("UPDATE batches SET first = 30 WHERE {b}"), 28, "missing"),
        (format!("UPDATE batches SET body = concat({middle}) WHERE {b}"), 28, ""),
        (format!("UPDATE batches SET body = 3.5 WHERE {b}"), 28, "cut"),
        ("UPDATE batches SET count = 5 WHERE aggregate = 2 AND first = 79".to_owned(), 83, "more"),
        (
            format!(
                "UPDATE batches SET body = (SELECT body FROM batches WHERE aggregate = 1 AND first = 29) WHERE {b}"
            ),
            28,
            "checksum",
        ),
    ];
    for (statement, intact, why) in cases {
        let (_folder, store) = changed(&statement);
        let (at, stopped) = readable(&store, "b");
        assert_eq!(at, intact, "{statement}");
        match stopped {
            Some(StoreError::Damaged { aggregate, version, what }) => {
                assert_eq!(aggregate, job("b"));
                assert_eq!(version, Version(intact + 1), "{statement}");
                assert!(what.contains(why), "{statement}: {what}");
            }
            other => panic!("{statement}: {other:?}"),
        }
        assert_eq!(readable(&store, "a").0, 90);
        assert_eq!(readable(&store, "c").0, 90);
    }
}

#[test]
fn damage_after_a_trimmed_beginning_is_reported() {
    // Job b begins with the row of versions 29 to 36.
    let cases = [
        ("", 29..91, None),
        ("DELETE FROM batches WHERE aggregate = 2 AND first = 37", 29..37, Some(37)),
        ("DELETE FROM batches WHERE aggregate = 2 AND first = 29", 0..0, Some(29)),
        ("DELETE FROM batches WHERE aggregate = 2", 0..0, Some(29)),
        // Records that were not trimmed according to the counter are missing.
        ("DELETE FROM counters WHERE name = 'begin/2'", 0..0, Some(1)),
        ("UPDATE counters SET value = -1 WHERE name = 'begin/2'", 0..0, Some(1)),
        ("UPDATE counters SET value = 20 WHERE name = 'begin/2'", 0..0, Some(20)),
    ];
    for (statement, intact, damaged) in cases {
        let folder = TempDir::new().unwrap();
        let store = SqliteStore::open(folder.path()).unwrap();
        fill(&store);
        store.trim(&job("b"), Version(33)).unwrap();
        drop(store);
        let database = Connection::open(folder.path().join("undaunted.db")).unwrap();
        database.execute_batch(statement).unwrap();
        drop(database);
        let store = SqliteStore::open(folder.path()).unwrap();
        let (mut read, mut stopped) = (vec![], None);
        for next in store.read(&job("b"), Version::EMPTY).unwrap() {
            match next {
                Ok((Version(version), bytes)) => {
                    assert_eq!(bytes, record("b", version), "wrong data");
                    read.push(version);
                }
                Err(StoreError::Damaged { version, .. }) => stopped = Some(version.0),
                Err(other) => panic!("{statement}: {other:?}"),
            }
        }
        assert_eq!(read, intact.collect::<Vec<u64>>(), "{statement}");
        assert_eq!(stopped, damaged, "{statement}");
        assert_eq!(readable(&store, "a").0, 90);
    }
}

#[test]
fn a_damaged_snapshot_is_reported_and_the_one_before_it_is_used() {
    let (folder, store) = empty_store();
    fill(&store);
    let latest = folder.path().join("snapshots/1/70");
    let mut bytes = fs::read(&latest).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    for damaged in [bytes, vec![], b"undaunt1".to_vec(), b"something else".to_vec()] {
        fs::write(&latest, damaged).unwrap();
        let found = store.latest_snapshot(&job("a")).unwrap();
        assert_eq!(found.latest.unwrap().bytes, record("a", 50));
        assert_eq!(found.ignored.len(), 1);
        assert!(found.ignored[0].starts_with("the snapshot of job a at version 70 "));
    }
    fs::remove_dir_all(folder.path().join("snapshots")).unwrap();
    let found = store.latest_snapshot(&job("a")).unwrap();
    assert_eq!((found.latest, found.ignored.len()), (None, 0));
    assert_eq!(readable(&store, "a").0, 90);
}

#[test]
fn a_snapshot_ahead_of_a_journal_that_lost_its_end_is_not_used() {
    let (_folder, store) = changed("DELETE FROM batches WHERE aggregate = 1 AND first > 60");
    let found = store.latest_snapshot(&job("a")).unwrap();
    assert_eq!(found.ignored.len(), 1);
    assert_eq!(found.latest.map(|snapshot| snapshot.at), Some(Version(50)));
}
