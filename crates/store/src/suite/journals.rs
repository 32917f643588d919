//! Promises about journals: order, versions, atomic appends.

use super::Reopenable;
use super::fixture::{ConformanceCheck, conflict, job, texts, unclaimed, version};
use crate::{Append, AppendError, Epoch, LARGEST_RECORD, StoreError, Version};

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ("records are read in order", in_order),
    ("any bytes are read as they were written", any_bytes),
    ("a reader starts after a version", after_a_version),
    ("an append at the wrong version stores nothing", wrong_version),
    ("an append to several aggregates is atomic", all_or_nothing),
    ("an append may continue another one of its submission", twice_in_one),
    ("an append without records creates nothing", nothing),
    ("an unknown aggregate is empty", unknown),
    ("a list has the aggregates with the prefix", listed),
    ("a removed aggregate is gone", removed),
    ("a second handle sees the same", second_handle),
    ("closing and reopening loses nothing", reopened),
    ("a record above the size limit is refused", too_large),
    ("every change changes the pulse", pulse),
];

fn in_order(stores: &Reopenable) {
    let store = stores.open();
    store.append(vec![unclaimed("a", 0, &["1", "2"])]).unwrap();
    store.append(vec![unclaimed("a", 2, &["3"])]).unwrap();
    assert_eq!(texts(&*store, "a"), ["1", "2", "3"]);
    assert_eq!(version(&*store, "a"), 3);
}

fn any_bytes(stores: &Reopenable) {
    let store = stores.open();
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    let large = every_byte.repeat(12_000);
    let records = vec![vec![], every_byte, vec![0; 9], large.clone(), vec![], large];
    let append = Append::new(job("a"), Version::EMPTY, Epoch::UNCLAIMED, records.clone());
    store.append(vec![append]).unwrap();
    let read = store.read(&job("a"), Version::EMPTY).unwrap();
    let read: Vec<Vec<u8>> = read.map(|record| record.unwrap().1).collect();
    assert!(read == records, "the bytes differ");
}

fn after_a_version(stores: &Reopenable) {
    let store = stores.open();
    store.append(vec![unclaimed("a", 0, &["1", "2", "3"])]).unwrap();
    store.append(vec![unclaimed("a", 3, &["4"])]).unwrap();
    for after in 0..6_u64 {
        let read = store.read(&job("a"), Version(after)).unwrap();
        let versions: Vec<u64> = read.map(|record| record.unwrap().0.0).collect();
        let expected: Vec<u64> = (1..=4).filter(|version| *version > after).collect();
        assert_eq!(versions, expected);
    }
}

fn wrong_version(stores: &Reopenable) {
    let store = stores.open();
    assert_eq!(conflict(store.append(vec![unclaimed("a", 1, &["x"])])), 0);
    store.append(vec![unclaimed("a", 0, &["1", "2"])]).unwrap();
    for wrong in [0, 1, 3, u64::MAX] {
        assert_eq!(conflict(store.append(vec![unclaimed("a", wrong, &["x"])])), 2);
    }
    assert_eq!(texts(&*store, "a"), ["1", "2"]);
}

fn all_or_nothing(stores: &Reopenable) {
    let store = stores.open();
    let both = vec![unclaimed("a", 0, &["1"]), unclaimed("b", 0, &["1"])];
    store.append(both).unwrap();
    let second_is_wrong = vec![unclaimed("a", 1, &["2"]), unclaimed("b", 7, &["2"])];
    conflict(store.append(second_is_wrong));
    let made_with_it = vec![unclaimed("c", 0, &["1"]), unclaimed("a", 0, &["2"])];
    conflict(store.append(made_with_it));
    assert_eq!(texts(&*store, "a"), ["1"]);
    assert_eq!(texts(&*store, "b"), ["1"]);
    assert_eq!(store.head(&job("c")).unwrap(), None);
}

fn twice_in_one(stores: &Reopenable) {
    let store = stores.open();
    let fitting = vec![unclaimed("a", 0, &["1", "2"]), unclaimed("a", 2, &["3"])];
    store.append(fitting).unwrap();
    let overlapping = vec![unclaimed("a", 3, &["4"]), unclaimed("a", 3, &["5"])];
    assert_eq!(conflict(store.append(overlapping)), 4);
    assert_eq!(texts(&*store, "a"), ["1", "2", "3"]);
}

fn nothing(stores: &Reopenable) {
    let store = stores.open();
    store.append(vec![]).unwrap();
    store.append(vec![unclaimed("a", 0, &[])]).unwrap();
    assert_eq!(store.head(&job("a")).unwrap(), None);
    store.append(vec![unclaimed("a", 0, &["1"])]).unwrap();
    store.append(vec![unclaimed("a", 1, &[])]).unwrap();
    assert_eq!(conflict(store.append(vec![unclaimed("a", 0, &[])])), 1);
    assert_eq!(texts(&*store, "a"), ["1"]);
}

fn unknown(stores: &Reopenable) {
    let store = stores.open();
    assert_eq!(store.head(&job("a")).unwrap(), None);
    assert_eq!(texts(&*store, "a"), [""; 0]);
    assert_eq!(store.requests(&job("a")).unwrap(), []);
    assert_eq!(store.latest_snapshot(&job("a")).unwrap().latest, None);
    store.remove(&job("a"), Epoch(3)).unwrap();
    let refused = store.request(&job("a"), b"cancel".to_vec());
    assert!(matches!(refused, Err(StoreError::NotFound { .. })));
}

fn listed(stores: &Reopenable) {
    let store = stores.open();
    for id in ["b", "a%c", "aé", "a_c", "a", "abc", "A", "a\u{10ffff}z"] {
        store.append(vec![unclaimed(id, 0, &["1", "2"])]).unwrap();
    }
    let ids = |prefix: &str| -> Vec<String> {
        let listed = store.list("job", prefix).unwrap().into_iter();
        listed
            .map(|one| {
                assert_eq!(one.head.version, Version(2));
                one.aggregate.id().to_owned()
            })
            .collect()
    };
    let all = ["A", "a", "a%c", "a_c", "abc", "aé", "a\u{10ffff}z", "b"];
    assert_eq!(ids(""), all);
    assert_eq!(ids("a"), all[1..7]);
    assert_eq!(ids("a%"), ["a%c"]);
    assert_eq!(ids("a_"), ["a_c"]);
    assert_eq!(ids("a\u{10ffff}"), ["a\u{10ffff}z"]);
    assert_eq!(ids("ac"), [""; 0]);
    assert_eq!(store.list("jobs", "").unwrap(), []);
}

fn removed(stores: &Reopenable) {
    let store = stores.open();
    store.append(vec![unclaimed("a", 0, &["1"])]).unwrap();
    store.append(vec![unclaimed("b", 0, &["1"])]).unwrap();
    store.request(&job("a"), b"cancel".to_vec()).unwrap();
    store.save_snapshot(&job("a"), Version(1), vec![7]).unwrap();
    store.remove(&job("a"), Epoch::UNCLAIMED).unwrap();
    assert_eq!(store.head(&job("a")).unwrap(), None);
    assert_eq!(conflict(store.append(vec![unclaimed("a", 1, &["2"])])), 0);
    store.append(vec![unclaimed("a", 0, &["again"])]).unwrap();
    assert_eq!(texts(&*store, "a"), ["again"]);
    assert_eq!(store.requests(&job("a")).unwrap(), []);
    assert_eq!(store.latest_snapshot(&job("a")).unwrap().latest, None);
    assert_eq!(texts(&*store, "b"), ["1"]);
}

fn second_handle(stores: &Reopenable) {
    let (one, other) = (stores.open(), stores.open());
    for round in 0..20 {
        one.append(vec![unclaimed("a", 2 * round, &["one"])]).unwrap();
        conflict(other.append(vec![unclaimed("a", 2 * round, &["late"])]));
        other.append(vec![unclaimed("a", 2 * round + 1, &["other"])]).unwrap();
        conflict(one.append(vec![unclaimed("a", 2 * round + 1, &["late"])]));
    }
    assert_eq!(texts(&*one, "a"), ["one", "other"].repeat(20));
    assert_eq!(texts(&*other, "a"), texts(&*one, "a"));
    other.remove(&job("a"), Epoch::UNCLAIMED).unwrap();
    one.append(vec![unclaimed("a", 0, &["again"])]).unwrap();
    assert_eq!(texts(&*other, "a"), ["again"]);
}

fn reopened(stores: &Reopenable) {
    for round in 0..5_u64 {
        let store = stores.open();
        assert_eq!(version(&*store, "a"), round);
        store.append(vec![unclaimed("a", round, &["x"])]).unwrap();
    }
    assert_eq!(texts(&*stores.open(), "a"), ["x"; 5]);
}

fn too_large(stores: &Reopenable) {
    let store = stores.open();
    let record = vec![0; LARGEST_RECORD + 1];
    let append = Append::new(job("a"), Version::EMPTY, Epoch::UNCLAIMED, vec![record]);
    let refused = store.append(vec![append]);
    assert!(matches!(refused, Err(AppendError::Store(StoreError::TooLarge { .. }))));
    assert_eq!(store.head(&job("a")).unwrap(), None);
}

fn pulse(stores: &Reopenable) {
    let (one, other) = (stores.open(), stores.open());
    let mut last = one.pulse().unwrap();
    let mut beats = |what: &str| {
        let now = one.pulse().unwrap();
        assert_ne!(now, last, "{what}");
        assert_eq!(one.pulse().unwrap(), now, "nothing happened");
        last = now;
    };
    other.append(vec![unclaimed("a", 0, &["1"])]).unwrap();
    beats("another handle's append");
    one.append(vec![unclaimed("a", 1, &["2"])]).unwrap();
    beats("an append");
    other.request(&job("a"), b"cancel".to_vec()).unwrap();
    beats("a request");
    other.claim(&job("a")).unwrap();
    beats("a claim");
}
