//! A bad environment of a store (files, permissions, disks, foreign databases) is reported with its facts.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a panic in a test is a red test")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;
use undaunted_store::{
    AggregateId, Append, AppendError, Epoch, FORMAT, SqliteOptions, SqliteStore, Store, StoreError, Version,
};

fn refused(path: &Path) -> StoreError {
    match SqliteStore::open(path) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

fn job() -> AggregateId {
    AggregateId::new("job", "a").unwrap()
}

fn append(expected: u64, bytes: usize) -> Vec<Append> {
    let record = vec![7; bytes];
    let expected = Version(expected);
    vec![Append::new(job(), expected, Epoch::UNCLAIMED, vec![record])]
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_missing_folder_is_created_and_private() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state/undaunted");
    let store = SqliteStore::open(&path).unwrap();
    store.append(append(0, 10)).unwrap();
    store.save_snapshot(&job(), Version(1), vec![1, 2, 3]).unwrap();
    let mut files = 0;
    let mut folders = vec![folder.path().join("state")];
    while let Some(next) = folders.pop() {
        assert_eq!(mode(&next), 0o700, "{next:?}");
        for entry in fs::read_dir(&next).unwrap() {
            let entry = entry.unwrap().path();
            if entry.is_dir() {
                folders.push(entry);
            } else {
                files += 1;
                assert_eq!(mode(&entry), 0o600, "{entry:?}");
            }
        }
    }
    // The database, its log, the index of the log, the opening lock, one owner, one snapshot, the reserve.
    assert_eq!(files, 7);
}

#[test]
fn a_file_in_place_of_the_folder_is_reported() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store");
    fs::write(&path, "something else").unwrap();
    let error = refused(&path);
    assert_eq!(error.code(), "store-not-a-folder");
    assert!(error.to_string().ends_with("store` is not a folder"));
    assert_eq!(refused(&path.join("below")).code(), "store-not-a-folder");
    assert_eq!(fs::read_to_string(path).unwrap(), "something else");
}

#[test]
fn a_folder_in_place_of_the_database_is_reported() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("undaunted.db")).unwrap();
    assert_eq!(refused(folder.path()).code(), "store-not-a-file");
}

#[test]
fn a_file_that_is_not_a_database_is_reported_and_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("undaunted.db");
    let text = "all work and no play ".repeat(300);
    fs::write(&path, &text).unwrap();
    let error = refused(folder.path());
    assert_eq!(error.code(), "not-a-store");
    assert!(error.to_string().contains("not a SQLite database"));
    assert_eq!(fs::read_to_string(path).unwrap(), text);
}

#[test]
fn a_database_of_another_program_is_reported_and_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("undaunted.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE songs (title)").unwrap();
    drop(other);
    let before = fs::read(&path).unwrap();
    let error = refused(folder.path());
    assert!(error.to_string().contains("another program's"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_store_of_a_later_release_is_refused_with_both_versions() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    store.append(append(0, 10)).unwrap();
    let path = store.database();
    drop(store);
    let database = Connection::open(path).unwrap();
    database.pragma_update(None, "user_version", 7).unwrap();
    drop(database);
    match refused(folder.path()) {
        StoreError::NewerFormat { found, known, .. } => assert_eq!((found, known), (7, FORMAT)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_store_that_stays_locked_is_busy_and_works_again_afterwards() {
    let folder = TempDir::new().unwrap();
    let options = SqliteOptions { patience: Duration::from_millis(30) };
    let store = SqliteStore::open_with(folder.path(), &options).unwrap();
    let other = Connection::open(store.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = store.append(append(0, 10));
    assert!(matches!(refused, Err(AppendError::Store(StoreError::Busy { .. }))));
    other.execute_batch("ROLLBACK").unwrap();
    store.append(append(0, 10)).unwrap();
}

#[test]
fn the_bundled_sqlite_has_the_fix_for_concurrent_checkpoints() {
    // Before 3.51.3 two processes that write and checkpoint at the same time could lose commits.
    assert!(rusqlite::version_number() >= 3_051_003);
}

/// A small file system, if this process may mount one.
struct Mount(TempDir);

impl Mount {
    fn new(options: &str) -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]);
        let mounted = mount.arg(folder.path()).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn remount(&self, options: &str) {
        let mut mount = Command::new("mount");
        let options = format!("remount,{options}");
        mount.args(["-o", &options]).arg(self.path());
        assert!(mount.status().unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

#[test]
fn a_full_disk_is_reported_and_no_acknowledged_append_is_lost() {
    let Some(disk) = Mount::new("size=2m") else {
        eprintln!("skipped: a small disk cannot be mounted here (needs root)");
        return;
    };
    let store = SqliteStore::open(disk.path()).unwrap();
    let mut acknowledged = 0;
    let error = loop {
        match store.append(append(acknowledged, 20_000)) {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), "store-disk-full", "{error:?}");
    assert!(acknowledged > 10);
    let read = |store: &SqliteStore| -> usize {
        let records = store.read(&job(), Version::EMPTY).unwrap();
        records.map(|record| assert_eq!(record.unwrap().1, vec![7; 20_000])).count()
    };
    let stored = usize::try_from(acknowledged).unwrap();
    assert_eq!(read(&store), stored);
    disk.remount("size=64m");
    store.append(append(acknowledged, 20_000)).unwrap();
    drop(store);
    assert_eq!(read(&SqliteStore::open(disk.path()).unwrap()), stored + 1);
}

#[test]
fn a_disk_too_full_for_a_store_is_reported() {
    let Some(disk) = Mount::new("size=16k") else {
        eprintln!("skipped: a small disk cannot be mounted here (needs root)");
        return;
    };
    let error = refused(disk.path());
    assert_eq!(error.code(), "store-disk-full", "{error:?}");
}

#[test]
fn a_read_only_disk_is_reported() {
    let Some(disk) = Mount::new("size=4m") else {
        eprintln!("skipped: a disk cannot be mounted here (needs root)");
        return;
    };
    drop(SqliteStore::open(disk.path()).unwrap());
    disk.remount("ro");
    assert_eq!(refused(disk.path()).code(), "store-read-only");
    let inside = disk.path().join("new");
    assert_eq!(refused(&inside).code(), "store-read-only");
}

/// Writes until there is no room for another byte.
fn fill(disk: &Path) {
    let mut filler = fs::File::create(disk.join("filler")).unwrap();
    for size in [1 << 20, 4096, 1] {
        while filler.write_all(&vec![1; size]).is_ok() {}
    }
}

fn read_all(store: &SqliteStore) -> usize {
    store.read(&job(), Version::EMPTY).unwrap().map(Result::unwrap).count()
}

#[test]
fn a_store_on_a_full_disk_is_read_without_writing_to_it() {
    let Some(disk) = Mount::new("size=8m") else {
        eprintln!("skipped: a small disk cannot be mounted here (needs root)");
        return;
    };
    let path = disk.path().join("100% of #1?");
    let store = SqliteStore::open(&path).unwrap();
    store.append(append(0, 20_000)).unwrap();
    drop(store);
    let index = path.join("undaunted.db-shm");
    for is_missing in [false, true] {
        fs::write(&index, "").unwrap();
        if is_missing {
            fs::remove_file(&index).unwrap();
        }
        fill(disk.path());
        let store = SqliteStore::open_for_reading(&path).unwrap();
        assert_eq!(read_all(&store), 1);
        assert_eq!(store.list("job", "").unwrap().len(), 1);
        assert_eq!(store.pulse().unwrap(), store.pulse().unwrap());
        let refused = store.append(append(1, 10)).unwrap_err();
        assert_eq!(refused.code(), "store-read-only");
        drop(store);
        fs::remove_file(disk.path().join("filler")).unwrap();
    }
}

#[test]
fn a_full_disk_gets_room_by_removing_and_compacting() {
    let Some(disk) = Mount::new("size=16m") else {
        eprintln!("skipped: a small disk cannot be mounted here (needs root)");
        return;
    };
    let store = SqliteStore::open(disk.path()).unwrap();
    for version in 0..40 {
        store.append(append(version, 100_000)).unwrap();
    }
    drop(store);
    fs::write(disk.path().join("undaunted.db-shm"), "").unwrap();
    fill(disk.path());
    // Opening it for anything else would need room.
    assert_eq!(refused(disk.path()).code(), "store-disk-full");
    let store = SqliteStore::open_for_removing(disk.path()).unwrap();
    let claim = store.claim(&job()).unwrap();
    store.remove(&job(), claim.epoch).unwrap();
    let [before, after] = store.compact().unwrap();
    assert!(after < 300_000 && before > 4_000_000, "{before} {after}");
    drop(store);
    let store = SqliteStore::open(disk.path()).unwrap();
    assert_eq!(read_all(&store), 0);
    store.append(append(0, 10)).unwrap();
    drop(store);
    // The log keeps room for the next removal.
    fs::write(disk.path().join("undaunted.db-shm"), "").unwrap();
    fill(disk.path());
    let store = SqliteStore::open_for_removing(disk.path()).unwrap();
    let claim = store.claim(&job()).unwrap();
    store.remove(&job(), claim.epoch).unwrap();
}

#[test]
fn a_disk_that_the_store_itself_has_filled_gets_room_by_removing() {
    let Some(disk) = Mount::new("size=8m") else {
        eprintln!("skipped: a small disk cannot be mounted here (needs root)");
        return;
    };
    let store = SqliteStore::open(disk.path()).unwrap();
    let mut version = 0;
    while store.append(append(version, 20_000)).is_ok() {
        version += 1;
    }
    drop(store);
    for size in [4096, 1] {
        let mut filler =
            fs::File::options().create(true).append(true).open(disk.path().join("filler")).unwrap();
        while filler.write_all(&vec![1; size]).is_ok() {}
    }
    let store = SqliteStore::open_for_removing(disk.path()).unwrap();
    let claim = store.claim(&job()).unwrap();
    store.remove(&job(), claim.epoch).unwrap();
    store.compact().unwrap();
    drop(store);
    let store = SqliteStore::open(disk.path()).unwrap();
    store.append(append(0, 1 << 20)).unwrap();
}

#[test]
fn a_store_in_a_read_only_folder_can_be_read() {
    let Some(disk) = Mount::new("size=8m") else {
        eprintln!("skipped: a disk cannot be mounted here (needs root)");
        return;
    };
    let store = SqliteStore::open(disk.path()).unwrap();
    store.append(append(0, 20_000)).unwrap();
    drop(store);
    let names = ["", "undaunted.db-shm", "undaunted.db-wal"];
    for missing in names {
        if missing.ends_with("wal") {
            let database = Connection::open(disk.path().join("undaunted.db")).unwrap();
            database.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
            drop(database);
        } else if !missing.is_empty() {
            fs::remove_file(disk.path().join(missing)).unwrap();
        }
        disk.remount("ro");
        let store = SqliteStore::open_for_reading(disk.path()).unwrap();
        assert_eq!(read_all(&store), 1, "without `{missing}`");
        assert_eq!(store.owner(&job()).unwrap(), None);
        assert_eq!(store.claim(&job()).unwrap_err().code(), "store-read-only");
        drop(store);
        disk.remount("rw");
    }
}

#[test]
fn a_missing_store_is_reported_and_not_created_by_reading() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("typo");
    for open in [SqliteStore::open_for_reading, SqliteStore::open_for_removing] {
        assert_eq!(open(&path).map(|_| ()).unwrap_err().code(), "no-store");
        assert_eq!(open(folder.path()).map(|_| ()).unwrap_err().code(), "no-store");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    fs::write(&path, "something else").unwrap();
    assert_eq!(SqliteStore::open_for_reading(&path).map(|_| ()).unwrap_err().code(), "store-not-a-folder");
}

#[test]
fn a_store_is_created_in_a_folder_that_can_be_written_but_not_read() {
    let folder = TempDir::new().unwrap();
    let above = folder.path().join("above");
    fs::create_dir(&above).unwrap();
    // The name of the new folder cannot be synced there, except by root.
    fs::set_permissions(&above, fs::Permissions::from_mode(0o300)).unwrap();
    let store = SqliteStore::open(&above.join("state/store")).unwrap();
    store.append(append(0, 10)).unwrap();
    drop(store);
    let store = SqliteStore::open(&above.join("state/store")).unwrap();
    assert_eq!(store.read(&job(), Version::EMPTY).unwrap().count(), 1);
    fs::set_permissions(&above, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_folder_without_write_permission_is_reported() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("theirs");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o500)).unwrap();
    match SqliteStore::open(&path) {
        Ok(_) => eprintln!("skipped: root is denied nothing"),
        Err(error) => assert_eq!(error.code(), "store-denied"),
    }
}
