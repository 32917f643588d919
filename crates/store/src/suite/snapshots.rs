//! Promises about snapshots: the latest one is found, and none is ahead of its journal.

use super::Reopenable;
use super::fixture::{ConformanceCheck, job, unclaimed};
use crate::{Snapshot, Store, StoreError, Version};

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ("the latest snapshot is found", latest),
    ("an older snapshot that is saved late does not hide a newer one", late),
    ("a snapshot ahead of its journal is refused", ahead),
    ("a snapshot belongs to one aggregate", of_one),
];

fn found(store: &dyn Store, id: &str) -> Option<Snapshot> {
    let found = store.latest_snapshot(&job(id)).unwrap();
    assert_eq!(found.ignored, [""; 0]);
    found.latest
}

fn snapshot(at: u64, text: &str) -> Snapshot {
    Snapshot { at: Version(at), bytes: text.as_bytes().to_vec() }
}

fn save(store: &dyn Store, id: &str, at: u64, text: &str) -> Result<(), StoreError> {
    store.save_snapshot(&job(id), Version(at), text.as_bytes().to_vec())
}

fn latest(stores: &Reopenable) {
    let store = stores.open();
    store.append(vec![unclaimed("a", 0, &["1", "2", "3"])]).unwrap();
    assert_eq!(found(&*store, "a"), None);
    for (at, text) in [(0, ""), (1, "one"), (2, "two"), (3, "three"), (3, "3")] {
        save(&*store, "a", at, text).unwrap();
        assert_eq!(found(&*store, "a"), Some(snapshot(at, text)));
    }
    drop(store);
    assert_eq!(found(&*stores.open(), "a"), Some(snapshot(3, "3")));
}

fn late(stores: &Reopenable) {
    let store = stores.open();
    store.append(vec![unclaimed("a", 0, &["1", "2", "3"])]).unwrap();
    save(&*store, "a", 3, "three").unwrap();
    save(&*store, "a", 1, "one").unwrap();
    assert_eq!(found(&*store, "a"), Some(snapshot(3, "three")));
}

fn ahead(stores: &Reopenable) {
    let store = stores.open();
    store.append(vec![unclaimed("a", 0, &["1"])]).unwrap();
    let refused = save(&*store, "a", 2, "two");
    assert!(matches!(refused, Err(StoreError::AheadOfJournal { .. })));
    let unknown = save(&*store, "b", 0, "none");
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
    assert_eq!(found(&*store, "a"), None);
}

fn of_one(stores: &Reopenable) {
    let store = stores.open();
    let both = vec![unclaimed("a", 0, &["1"]), unclaimed("b", 0, &["1", "2"])];
    store.append(both).unwrap();
    save(&*store, "a", 1, "a").unwrap();
    save(&*store, "b", 2, "b").unwrap();
    assert_eq!(found(&*store, "a"), Some(snapshot(1, "a")));
    assert_eq!(found(&*store, "b"), Some(snapshot(2, "b")));
}
