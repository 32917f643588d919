//! Promises about trimming: it removes the beginning of a journal and changes nothing else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::Reopenable;
use super::fixture::{ConformanceCheck, conflict, facts, job, owned, remaining, texts, unclaimed, version};
use crate::{Epoch, Store, Version};

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ("the remaining records of a trimmed journal keep their versions", kept),
    ("a reader of a trimmed journal starts at the right record", first_record),
    ("the last record of a journal is not trimmed", last_stays),
    ("trimming again or less changes nothing", idempotent),
    ("trimming an unknown journal creates nothing", unknown),
    ("records appended together with a remaining one may remain", together),
    ("a trimmed journal is appended to as before", appended_to),
    ("trimming needs no claim", without_claim),
    ("a trimmed journal is trimmed after reopening", reopened),
    ("a trimmed journal can be removed and created again", removed),
    ("trimming keeps requests and snapshots", keeps_the_rest),
    ("trimming affects one journal", of_one),
    ("journals are trimmed during appends and reads", concurrent),
];

/// Appends records one by one, each with its version as text.
fn filled(store: &dyn Store, id: &str, length: u64) {
    for n in 0..length {
        let text = (n + 1).to_string();
        store.append(vec![unclaimed(id, n, &[&text])]).unwrap();
    }
}

fn trim(store: &dyn Store, id: &str, before: u64) {
    store.trim(&job(id), Version(before)).unwrap();
}

/// The versions of a job's records after a version; their texts must be those of [`filled`].
fn versions(store: &dyn Store, id: &str, after: u64) -> Vec<u64> {
    let records = remaining(store, id, after).into_iter();
    records
        .map(|(version, text)| {
            assert_eq!(text, version.to_string());
            version
        })
        .collect()
}

fn range(first: u64, last: u64) -> Vec<u64> {
    (first..=last).collect()
}

fn kept(stores: &Reopenable) {
    let (store, other) = (stores.open(), stores.open());
    filled(&*store, "a", 10);
    let before = store.list("job", "").unwrap();
    trim(&*store, "a", 4);
    for store in [&*store, &*other] {
        assert_eq!(versions(store, "a", 0), range(4, 10));
        assert_eq!(version(store, "a"), 10);
        assert_eq!(store.list("job", "").unwrap(), before);
    }
    trim(&*other, "a", 7);
    assert_eq!(versions(&*store, "a", 0), range(7, 10));
    assert_eq!(version(&*store, "a"), 10);
}

fn first_record(stores: &Reopenable) {
    let store = stores.open();
    filled(&*store, "a", 10);
    trim(&*store, "a", 6);
    for after in 0..12 {
        assert_eq!(versions(&*store, "a", after), range(6.max(after + 1), 10));
    }
}

fn last_stays(stores: &Reopenable) {
    let store = stores.open();
    for (id, before) in [("a", 5), ("b", 6), ("c", 7), ("d", u64::MAX)] {
        filled(&*store, id, 5);
        trim(&*store, id, before);
        assert_eq!(versions(&*store, id, 0), [5]);
        assert_eq!(version(&*store, id), 5);
    }
    filled(&*store, "e", 1);
    trim(&*store, "e", u64::MAX);
    assert_eq!(versions(&*store, "e", 0), [1]);
    assert_eq!(store.list("job", "").unwrap().len(), 5);
}

fn idempotent(stores: &Reopenable) {
    let (store, other) = (stores.open(), stores.open());
    filled(&*store, "a", 10);
    trim(&*store, "a", 0);
    trim(&*store, "a", 1);
    assert_eq!(versions(&*store, "a", 0), range(1, 10));
    for before in [6, 6, 5, 1, 0, 6] {
        trim(&*store, "a", before);
        trim(&*other, "a", before);
        assert_eq!(versions(&*store, "a", 0), range(6, 10).as_slice());
    }
}

fn unknown(stores: &Reopenable) {
    let store = stores.open();
    trim(&*store, "a", 3);
    assert_eq!(store.head(&job("a")).unwrap(), None);
    let claim = store.claim(&job("a")).unwrap();
    trim(&*store, "a", 3);
    assert_eq!(versions(&*store, "a", 0), [0; 0]);
    let first = store.append(vec![owned("a", 0, claim.epoch, &["1"])]);
    assert_eq!(first.unwrap(), [Version(1)]);
    assert_eq!(versions(&*store, "a", 0), [1]);
}

fn together(stores: &Reopenable) {
    let store = stores.open();
    let batches = [["1", "2", "3"], ["4", "5", "6"], ["7", "8", "9"]];
    for batch in batches {
        store.append(vec![facts("a", &batch)]).unwrap();
    }
    let begins = || versions(&*store, "a", 0)[0];
    trim(&*store, "a", 3);
    assert!((1..=3).contains(&begins()));
    trim(&*store, "a", 4);
    assert_eq!(begins(), 4);
    trim(&*store, "a", 6);
    assert!((4..=6).contains(&begins()));
    for after in 0..9 {
        let expected = range(begins().max(after + 1), 9);
        assert_eq!(versions(&*store, "a", after), expected);
    }
    trim(&*store, "a", 20);
    assert!((7..=9).contains(&begins()));
}

fn appended_to(stores: &Reopenable) {
    let (store, other) = (stores.open(), stores.open());
    filled(&*store, "a", 5);
    trim(&*store, "a", 9);
    assert_eq!(conflict(store.append(vec![unclaimed("a", 1, &["x"])])), 5);
    assert_eq!(conflict(other.append(vec![unclaimed("a", 0, &["x"])])), 5);
    let guarded = other.append(vec![unclaimed("a", 5, &["6"])]);
    assert_eq!(guarded.unwrap(), [Version(6)]);
    let appended = store.append(vec![facts("a", &["7"]), facts("a", &["8"])]);
    assert_eq!(appended.unwrap(), [Version(7), Version(8)]);
    assert_eq!(versions(&*other, "a", 0), range(5, 8));
    trim(&*other, "a", 7);
    assert_eq!(versions(&*store, "a", 0), range(7, 8));
}

fn without_claim(stores: &Reopenable) {
    let (owner, other) = (stores.open(), stores.open());
    let claim = owner.claim(&job("a")).unwrap();
    for n in 0..4_u64 {
        let text = (n + 1).to_string();
        let append = owned("a", n, claim.epoch, &[&text]);
        owner.append(vec![append]).unwrap();
    }
    trim(&*other, "a", 3);
    assert!(other.owner(&job("a")).unwrap().is_some());
    let next = owned("a", 4, claim.epoch, &["5"]);
    assert_eq!(owner.append(vec![next]).unwrap(), [Version(5)]);
    assert_eq!(versions(&*owner, "a", 0), range(3, 5));
}

fn reopened(stores: &Reopenable) {
    let store = stores.open();
    filled(&*store, "a", 6);
    trim(&*store, "a", 4);
    drop(store);
    let store = stores.open();
    assert_eq!(versions(&*store, "a", 0), range(4, 6));
    store.append(vec![facts("a", &["7"])]).unwrap();
    trim(&*store, "a", 5);
    drop(store);
    assert_eq!(versions(&*stores.open(), "a", 0), range(5, 7));
}

fn removed(stores: &Reopenable) {
    let store = stores.open();
    filled(&*store, "a", 6);
    trim(&*store, "a", 4);
    store.remove(&job("a"), Epoch::UNCLAIMED).unwrap();
    assert_eq!(store.head(&job("a")).unwrap(), None);
    assert_eq!(store.list("job", "").unwrap(), []);
    filled(&*store, "a", 3);
    assert_eq!(texts(&*store, "a"), ["1", "2", "3"]);
    trim(&*store, "a", 2);
    assert_eq!(versions(&*store, "a", 0), range(2, 3));
}

fn keeps_the_rest(stores: &Reopenable) {
    let store = stores.open();
    filled(&*store, "a", 6);
    let request = store.request(&job("a"), b"reset".to_vec()).unwrap();
    store.save_snapshot(&job("a"), Version(2), vec![7]).unwrap();
    trim(&*store, "a", 6);
    let latest = store.latest_snapshot(&job("a")).unwrap().latest;
    assert_eq!(latest.map(|found| found.at), Some(Version(2)));
    assert_eq!(store.requests(&job("a")).unwrap().len(), 1);
    let acting = facts("a", &["7"]).taking([request]);
    assert_eq!(store.append(vec![acting]).unwrap(), [Version(7)]);
    store.request(&job("a"), b"again".to_vec()).unwrap();
    store.save_snapshot(&job("a"), Version(7), vec![8]).unwrap();
    assert_eq!(store.latest_snapshot(&job("a")).unwrap().latest.map(|found| found.at), Some(Version(7)));
}

fn of_one(stores: &Reopenable) {
    let store = stores.open();
    for id in ["a", "b", "c"] {
        filled(&*store, id, 4);
    }
    trim(&*store, "b", 3);
    assert_eq!(versions(&*store, "a", 0), range(1, 4));
    assert_eq!(versions(&*store, "b", 0), range(3, 4));
    assert_eq!(versions(&*store, "c", 0), range(1, 4));
}

/// Two handles append and trim while a third reads; every reader reaches the head it began with.
fn concurrent(stores: &Reopenable) {
    const RECORDS: u64 = 60;
    let [one, other, reader] = [stores.open(), stores.open(), stores.open()];
    filled(&*one, "a", 1);
    let written = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers = [&*one, &*other].map(|store| {
            scope.spawn(move || {
                for _ in 0..RECORDS {
                    store.append(vec![facts("a", &["x"])]).unwrap();
                    trim(store, "a", version(store, "a").saturating_sub(3));
                }
            })
        });
        let (reader, written) = (&*reader, &written);
        scope.spawn(move || {
            while !written.load(Ordering::SeqCst) {
                let head = version(reader, "a");
                let mut last = 0;
                for record in reader.read(&job("a"), Version::EMPTY).unwrap() {
                    let (version, _) = record.unwrap();
                    assert!(version.0 > last, "{version} after {last}");
                    last = version.0;
                }
                assert!(last >= head, "read up to {last} of {head}");
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        written.store(true, Ordering::SeqCst);
    });
    assert_eq!(version(&*reader, "a"), 2 * RECORDS + 1);
    trim(&*reader, "a", 2 * RECORDS);
    let left: Vec<u64> = remaining(&*one, "a", 0).into_iter().map(|(version, _)| version).collect();
    assert_eq!(left, range(2 * RECORDS, 2 * RECORDS + 1));
}
