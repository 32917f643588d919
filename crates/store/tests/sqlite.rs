//! The SQLite store passes the suite, and tests of what only it has: log, compaction, files of owners.

#![expect(clippy::unwrap_used, reason = "a panic in a test is a red test")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;
use undaunted_store::suite::{Reopenable, run_all, run_model};
use undaunted_store::{AggregateId, Append, Epoch, SqliteOptions, SqliteStore, Store, StoreError, Version};

/// A new store in a temporary folder, which is deleted with the last handle.
fn place() -> Reopenable {
    let folder = TempDir::new().unwrap();
    Reopenable::new(move || {
        let path: PathBuf = folder.path().join("store");
        Box::new(SqliteStore::open(&path).unwrap())
    })
}

fn empty_store() -> (TempDir, SqliteStore) {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    (folder, store)
}

fn job(id: &str) -> AggregateId {
    AggregateId::new("job", id).unwrap()
}

#[test]
fn the_sqlite_store_passes_the_suite() {
    run_all(place);
}

#[test]
fn the_sqlite_store_agrees_with_the_model() {
    run_model(place, 100..110);
}

#[test]
fn the_log_has_a_bounded_length() {
    let (folder, store) = empty_store();
    let job = job("a");
    for n in 0..24 {
        let records = vec![vec![7; 1 << 20]; 2];
        let append = Append::new(job.clone(), Version(n * 2), Epoch::UNCLAIMED, records);
        store.append(vec![append]).unwrap();
    }
    let log = std::fs::metadata(folder.path().join("undaunted.db-wal")).unwrap();
    assert!(log.len() < 40 << 20, "{} bytes", log.len());
}

/// The valid pages of the log, and how many of them were checkpointed.
fn log_of(folder: &Path) -> [i64; 2] {
    let database = Connection::open(folder.join("undaunted.db")).unwrap();
    let asked = database.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| Ok([row.get(1)?, row.get(2)?]));
    asked.unwrap()
}

fn append_one(store: &SqliteStore, n: u64) {
    let job = job("a");
    let append = Append::new(job, Version(n), Epoch::UNCLAIMED, vec![vec![7; 100]]);
    store.append(vec![append]).unwrap();
}

#[test]
fn a_log_of_closed_handles_is_checkpointed_once_it_is_long() {
    let folder = TempDir::new().unwrap();
    let mut lengths = vec![];
    for n in 0..200 {
        let store = SqliteStore::open(folder.path()).unwrap();
        append_one(&store, n);
        let [pages, moved] = log_of(folder.path());
        assert_eq!(moved % pages, 0, "all or none of it was checkpointed");
        lengths.push(pages);
    }
    let longest = lengths.iter().max().unwrap();
    assert!((60..75).contains(longest), "{longest} pages");
    let store = SqliteStore::open(folder.path()).unwrap();
    let job = job("a");
    assert_eq!(store.read(&job, Version::EMPTY).unwrap().count(), 200);
}

#[test]
fn the_log_of_a_killed_process_is_checkpointed_at_the_next_opening() {
    let (folder, store) = empty_store();
    append_one(&store, 0);
    // The files of a killed process: its owner file is there, without a lock.
    let left = TempDir::new().unwrap();
    std::fs::create_dir(left.path().join("owners")).unwrap();
    std::fs::write(left.path().join("owners/dead"), "1\n").unwrap();
    for name in ["undaunted.db", "undaunted.db-wal"] {
        std::fs::copy(folder.path().join(name), left.path().join(name)).unwrap();
    }
    let opened = SqliteStore::open(left.path()).unwrap();
    let [pages, moved] = log_of(left.path());
    assert!(pages > 0 && moved == pages, "{moved} of {pages} pages");
    drop((store, opened));
    let _opened = SqliteStore::open(folder.path()).unwrap();
    assert_eq!(log_of(folder.path())[1], 0, "all handles were closed properly");
}

#[test]
fn compacting_returns_the_space_of_removed_data_and_truncates_the_log() {
    let (folder, store) = empty_store();
    let append = |id: &str| {
        let job = job(id);
        let records = vec![vec![7; 1 << 20]; 3];
        let append = Append::new(job.clone(), Version::EMPTY, Epoch::UNCLAIMED, records);
        store.append(vec![append]).unwrap();
        job
    };
    let (gone, kept) = (append("gone"), append("kept"));
    store.remove(&gone, Epoch::UNCLAIMED).unwrap();
    let [before, after] = store.compact().unwrap();
    assert!(before > 5 << 20, "{before} bytes before");
    assert!((3 << 20..4 << 20).contains(&after), "{after} bytes after");
    let log = std::fs::metadata(folder.path().join("undaunted.db-wal")).unwrap();
    assert!(log.len() < 260 << 10, "{} bytes of log", log.len());
    // Without free space and with the shortest log nothing changes.
    assert_eq!(store.compact().unwrap(), [after, after]);
    assert_eq!(store.read(&kept, Version::EMPTY).unwrap().count(), 3);
}

#[test]
fn compacting_takes_nothing_from_a_concurrent_reader() {
    let folder = TempDir::new().unwrap();
    let options = SqliteOptions { patience: Duration::from_millis(30) };
    let store = SqliteStore::open_with(folder.path(), &options).unwrap();
    let job = job("a");
    let append = |at| {
        let records = vec![vec![7; 1 << 20]];
        Append::new(job.clone(), Version(at), Epoch::UNCLAIMED, records)
    };
    store.append(vec![append(0)]).unwrap();
    let reader = Connection::open(store.database()).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let sum = || -> i64 {
        let length = "SELECT sum(length(body)) FROM batches";
        reader.query_row(length, [], |row| row.get(0)).unwrap()
    };
    let seen = sum();
    store.append(vec![append(1)]).unwrap();
    store.compact().unwrap();
    assert_eq!(sum(), seen);
    store.append(vec![append(2)]).unwrap();
    assert_eq!(store.read(&job, Version::EMPTY).unwrap().count(), 3);
}

#[test]
fn a_job_removed_while_it_is_read_is_not_reported_as_damaged() {
    let (_folder, store) = empty_store();
    let job = job("a");
    for n in 0..12 {
        let records = vec![vec![7; 1 << 20]];
        let append = Append::new(job.clone(), Version(n), Epoch::UNCLAIMED, records);
        store.append(vec![append]).unwrap();
    }
    let mut reading = store.read(&job, Version::EMPTY).unwrap();
    reading.next().unwrap().unwrap();
    store.remove(&job, Epoch::UNCLAIMED).unwrap();
    let last = reading.last().unwrap();
    assert!(matches!(last, Err(StoreError::NotFound { .. })), "{last:?}");
}

/// Appends twelve records of a megabyte each, of which a reader fetches a few at a time.
fn long_journal(store: &SqliteStore, job: &AggregateId) {
    for _ in 0..12 {
        let facts = Append::facts(job.clone(), vec![vec![7; 1 << 20]]);
        store.append(vec![facts]).unwrap();
    }
}

#[test]
fn a_reader_skips_records_that_are_trimmed_while_it_reads() {
    let (_folder, store) = empty_store();
    let job = job("a");
    long_journal(&store, &job);
    let mut reading = store.read(&job, Version::EMPTY).unwrap();
    // The first four are fetched one by one, and the next four together.
    assert_eq!(reading.nth(4).unwrap().unwrap().0, Version(5));
    store.trim(&job, Version(11)).unwrap();
    let versions = reading.map(|record| record.unwrap().0.0);
    assert_eq!(versions.collect::<Vec<u64>>(), [6, 7, 8, 11, 12]);
}

#[test]
fn skipped_records_do_not_change_the_records_that_are_read() {
    let (_folder, store) = empty_store();
    let job = job("a");
    let mut written = 0_u8;
    // Rows of one record to seven.
    for row in 1..=7 {
        let records = (0..row).map(|_| {
            written += 1;
            vec![written; usize::from(written)]
        });
        let facts = Append::facts(job.clone(), records.collect());
        store.append(vec![facts]).unwrap();
    }
    let all = || (1..=written).map(|n| (Version(n.into()), vec![n; n.into()]));
    for after in 0..=written {
        for step in 0..usize::from(written) {
            let mut read = store.read(&job, Version(after.into())).unwrap();
            let mut expected = all().skip(after.into());
            while let Some(record) = expected.nth(step) {
                assert_eq!(read.nth(step).unwrap().unwrap(), record);
            }
            assert!(read.nth(step).is_none(), "after {after}, step {step}");
        }
    }
}

#[test]
fn a_reader_whose_whole_journal_is_trimmed_gets_the_first_remaining_record() {
    let (_folder, store) = empty_store();
    let job = job("a");
    long_journal(&store, &job);
    let reading = store.read(&job, Version::EMPTY).unwrap();
    long_journal(&store, &job);
    store.trim(&job, Version(20)).unwrap();
    let versions = reading.map(|record| record.unwrap().0.0);
    assert_eq!(versions.collect::<Vec<u64>>(), [20]);
}

#[test]
fn removing_a_trimmed_journal_removes_its_counter() {
    let (_folder, store) = empty_store();
    let job = job("a");
    long_journal(&store, &job);
    let database = Connection::open(store.database()).unwrap();
    let counters = || -> i64 {
        let counted = database.query_row("SELECT count(*) FROM counters", [], |row| row.get(0));
        counted.unwrap()
    };
    let before = counters();
    store.trim(&job, Version(1)).unwrap();
    assert_eq!(counters(), before, "nothing was trimmed");
    store.trim(&job, Version(3)).unwrap();
    store.trim(&job, Version(5)).unwrap();
    assert_eq!(counters(), before + 1);
    store.remove(&job, Epoch::UNCLAIMED).unwrap();
    assert_eq!(counters(), before);
}

#[test]
fn an_append_that_the_database_refuses_does_not_affect_the_others() {
    let (_folder, store) = empty_store();
    let append = |id: &str, at, records: usize| {
        let job = job(id);
        vec![Append::new(job, Version(at), Epoch::UNCLAIMED, vec![vec![7]; records])]
    };
    store.append(append("bad", 0, 4)).unwrap();
    // A row that conflicts with the next one, which only the database notices.
    let database = Connection::open(store.database()).unwrap();
    let row = "INSERT INTO batches (aggregate, first, count, body) VALUES (1, 5, 0, x'')";
    database.execute_batch(row).unwrap();
    let (sender, receiver) = mpsc::channel();
    for n in 0..50 {
        let (sender, bad) = (sender.clone(), n % 10 == 5);
        let id = format!("good {n}");
        let appends = if bad { append("bad", 4, 1) } else { append(&id, 0, 3) };
        store.submit(appends, Box::new(move |result| sender.send((bad, result)).unwrap()));
    }
    drop(sender);
    for (bad, result) in receiver {
        assert_eq!(result.is_err(), bad, "{result:?}");
    }
    assert_eq!(store.list("job", "good").unwrap().len(), 45);
}

#[test]
fn processes_that_check_a_dead_owner_do_not_take_each_other_for_it() {
    let (folder, store) = empty_store();
    let job = job("a");
    let first = store.claim(&job).unwrap();
    // A killed process leaves a file without a lock.
    let sign = folder.path().join("owners/dead");
    std::fs::write(&sign, "").unwrap();
    let database = Connection::open(store.database()).unwrap();
    let owned = "UPDATE aggregates SET owner = 'dead'";
    database.execute_batch(owned).unwrap();
    // Another process is checking whether the owner is alive.
    let asking = File::open(&sign).unwrap();
    asking.try_lock_shared().unwrap();
    let second = store.claim(&job).unwrap();
    assert!(second.epoch > first.epoch);
    drop(SqliteStore::open(folder.path()).unwrap());
    assert!(!sign.exists(), "removing files of dead owners works under a shared lock");
}

#[test]
fn an_unfinished_snapshot_of_a_dead_process_is_removed_with_the_next_one() {
    let (folder, store) = empty_store();
    let job = job("a");
    let append = Append::new(job.clone(), Version::EMPTY, Epoch::UNCLAIMED, vec![vec![7]]);
    store.append(vec![append]).unwrap();
    store.save_snapshot(&job, Version(0), vec![1]).unwrap();
    let below = |name: &str| folder.path().join("snapshots/1").join(name);
    // The files of killed processes, even if a living process has their id.
    let own = format!("1.{}.half", std::process::id());
    let dead = ["0.4711.half", "1.1.half", &own].map(below);
    for path in &dead {
        std::fs::write(path, "undaunt1").unwrap();
    }
    // A file that another process is writing.
    let writing = File::create(below("1.42.half")).unwrap();
    writing.lock().unwrap();
    store.save_snapshot(&job, Version(1), vec![2]).unwrap();
    for path in &dead {
        assert!(!path.exists(), "{path:?}");
    }
    assert!(below("1.42.half").exists());
    let found = store.latest_snapshot(&job).unwrap();
    assert_eq!(found.latest.unwrap().bytes, [2]);
    drop(writing);
    store.save_snapshot(&job, Version(1), vec![3]).unwrap();
    assert!(!below("1.42.half").exists());
}
