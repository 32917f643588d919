//! Promises about facts: unconditional appends to a shared journal.

use std::sync::mpsc;
use std::thread;

use super::Reopenable;
use super::fixture::{ConformanceCheck, conflict, facts, fence, job, owned, texts, unclaimed, version};
use crate::{Append, AppendError, Epoch, LARGEST_RECORD, Store, StoreError, Version};

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ("facts are added at the end of a journal", never_refused),
    ("facts of several handles are stored in order", in_order),
    ("facts are read at the reported versions", reported_versions),
    ("facts for one aggregate follow each other", several_in_one),
    ("facts are stored or refused with their submission", atomic),
    ("facts raise the version that guarded appends must have", raises_version),
    ("facts without records create nothing", nothing),
    ("facts may take requests", taking),
    ("a fact above the size limit is refused", too_large),
    ("facts of many writers are all kept", many_writers),
    ("facts in flight stay in order", many_in_flight),
];

/// Appends one submission and returns the reported versions.
fn reached(store: &dyn Store, appends: Vec<Append>) -> Vec<u64> {
    store.append(appends).unwrap().into_iter().map(|version| version.0).collect()
}

fn never_refused(stores: &Reopenable) {
    let (store, owner) = (stores.open(), stores.open());
    assert_eq!(reached(&*store, vec![facts("a", &["1"])]), [1]);
    assert_eq!(reached(&*store, vec![unclaimed("a", 1, &["2", "3"])]), [3]);
    assert_eq!(reached(&*store, vec![facts("a", &["4"])]), [4]);
    // Facts are accepted during a claim and after it.
    let claim = owner.claim(&job("a")).unwrap();
    assert_eq!(reached(&*store, vec![facts("a", &["5"])]), [5]);
    owner.unclaim(&claim).unwrap();
    assert_eq!(reached(&*owner, vec![facts("a", &["6"])]), [6]);
    assert_eq!(texts(&*store, "a"), ["1", "2", "3", "4", "5", "6"]);
    // A removed journal starts again at version 1.
    store.remove(&job("a"), claim.epoch).unwrap();
    assert_eq!(reached(&*store, vec![facts("a", &["again"])]), [1]);
    assert_eq!(texts(&*owner, "a"), ["again"]);
}

fn in_order(stores: &Reopenable) {
    let (one, other) = (stores.open(), stores.open());
    for round in 0..20_u64 {
        assert_eq!(reached(&*one, vec![facts("a", &["one"])]), [3 * round + 1]);
        let appends = vec![facts("a", &["other", "last"])];
        assert_eq!(reached(&*other, appends), [3 * round + 3]);
    }
    assert_eq!(texts(&*one, "a"), ["one", "other", "last"].repeat(20));
    assert_eq!(texts(&*other, "a"), texts(&*one, "a"));
}

fn reported_versions(stores: &Reopenable) {
    let store = stores.open();
    let appends = vec![
        facts("b", &["b1"]),
        unclaimed("a", 0, &["a1", "a2"]),
        facts("c", &["c1", "c2", "c3"]),
        unclaimed("a", 2, &[]),
        facts("b", &["b2"]),
    ];
    assert_eq!(reached(&*store, appends), [1, 2, 3, 2, 2]);
    for (id, length) in [("a", 2), ("b", 2), ("c", 3)] {
        let expected: Vec<String> = (1..=length).map(|n| format!("{id}{n}")).collect();
        assert_eq!(texts(&*store, id), expected);
        assert_eq!(version(&*store, id), length);
    }
    assert_eq!(reached(&*store, vec![]), [0; 0]);
}

fn several_in_one(stores: &Reopenable) {
    let store = stores.open();
    let appends = vec![
        facts("a", &["1"]),
        facts("a", &["2", "3"]),
        facts("a", &[]),
        unclaimed("a", 3, &["4"]),
        facts("a", &["5"]),
    ];
    assert_eq!(reached(&*store, appends), [1, 3, 3, 4, 5]);
    assert_eq!(texts(&*store, "a"), ["1", "2", "3", "4", "5"]);
    // The guarded append must count the facts before it.
    let unaware = vec![facts("a", &["x"]), unclaimed("a", 5, &["y"])];
    assert_eq!(conflict(store.append(unaware)), 6);
    assert_eq!(texts(&*store, "a"), ["1", "2", "3", "4", "5"]);
}

fn atomic(stores: &Reopenable) {
    let store = stores.open();
    let claim = store.claim(&job("a")).unwrap();
    let with = |expected, epoch| vec![facts("b", &["x"]), owned("a", expected, epoch, &["1"])];
    assert_eq!(conflict(store.append(with(1, claim.epoch))), 0);
    assert_eq!(fence(store.append(with(0, Epoch::UNCLAIMED))), claim.epoch);
    let mut reversed = with(7, claim.epoch);
    reversed.reverse();
    assert_eq!(conflict(store.append(reversed)), 0);
    assert_eq!(store.head(&job("b")).unwrap(), None);
    assert_eq!(store.list("job", "").unwrap(), []);
    assert_eq!(reached(&*store, with(0, claim.epoch)), [1, 1]);
    conflict(store.append(with(0, claim.epoch)));
    assert_eq!(reached(&*store, vec![facts("b", &["y"])]), [2]);
    assert_eq!(texts(&*store, "b"), ["x", "y"]);
    assert_eq!(texts(&*store, "a"), ["1"]);
}

fn raises_version(stores: &Reopenable) {
    let (one, other) = (stores.open(), stores.open());
    one.append(vec![unclaimed("a", 0, &["1"])]).unwrap();
    other.append(vec![facts("a", &["2"])]).unwrap();
    assert_eq!(conflict(one.append(vec![unclaimed("a", 1, &["x"])])), 2);
    assert_eq!(reached(&*one, vec![unclaimed("a", 2, &["3"])]), [3]);
    assert_eq!(texts(&*other, "a"), ["1", "2", "3"]);
}

fn nothing(stores: &Reopenable) {
    let store = stores.open();
    assert_eq!(reached(&*store, vec![facts("a", &[])]), [0]);
    assert_eq!(store.head(&job("a")).unwrap(), None);
    store.append(vec![facts("a", &["1"])]).unwrap();
    assert_eq!(reached(&*store, vec![facts("a", &[])]), [1]);
    assert_eq!(texts(&*store, "a"), ["1"]);
}

fn taking(stores: &Reopenable) {
    let store = stores.open();
    store.append(vec![facts("a", &["1"])]).unwrap();
    let request = store.request(&job("a"), b"reset".to_vec()).unwrap();
    let acting = || vec![facts("a", &["reset"]).taking([request])];
    assert_eq!(reached(&*store, acting()), [2]);
    assert_eq!(store.requests(&job("a")).unwrap(), []);
    let again = store.append(acting());
    assert!(matches!(again, Err(AppendError::AlreadyTaken { .. })));
    assert_eq!(texts(&*store, "a"), ["1", "reset"]);
}

fn too_large(stores: &Reopenable) {
    let store = stores.open();
    let large = Append::facts(job("b"), vec![vec![0; LARGEST_RECORD + 1]]);
    let refused = store.append(vec![facts("a", &["x"]), large]);
    assert!(matches!(refused, Err(AppendError::Store(StoreError::TooLarge { .. }))));
    assert_eq!(store.list("job", "").unwrap(), []);
}

/// Four threads on two handles append facts to a shared journal, each together with its own journal.
fn many_writers(stores: &Reopenable) {
    const ROUNDS: u64 = 25;
    let (one, other) = (stores.open(), stores.open());
    let writers = [&*one, &*one, &*other, &*other].into_iter().enumerate();
    let mut landed: Vec<(u64, String)> = thread::scope(|scope| {
        let threads: Vec<_> = writers
            .map(|(writer, store)| {
                scope.spawn(move || {
                    let (own, mut landed) = (format!("own{writer}"), vec![]);
                    for n in 0..ROUNDS {
                        let [first, second] = [0, 1].map(|half| format!("{writer}.{n}.{half}"));
                        let seen = facts("shared", &[&first, &second]);
                        let reached = reached(store, vec![unclaimed(&own, n, &["x"]), seen]);
                        assert_eq!(reached[0], n + 1);
                        landed.extend([(reached[1] - 1, first), (reached[1], second)]);
                    }
                    landed
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    landed.sort();
    let versions: Vec<u64> = landed.iter().map(|(version, _)| *version).collect();
    assert_eq!(versions, (1..=4 * 2 * ROUNDS).collect::<Vec<u64>>());
    let landed: Vec<String> = landed.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts(&*one, "shared"), landed);
    assert_eq!(texts(&*other, "shared"), landed);
}

fn many_in_flight(stores: &Reopenable) {
    let store = stores.open();
    let (sender, receiver) = mpsc::channel();
    let mut expected: Vec<String> = vec![];
    for n in 0..200_u64 {
        let text = n.to_string();
        let mut appends = vec![facts("a", &[&text])];
        // Every fourth submission is refused together with its fact, and leaves no gap.
        if n % 4 == 3 {
            appends.push(unclaimed("b", 9_999, &[]));
        } else {
            expected.push(text);
        }
        let sender = sender.clone();
        let done = move |result| sender.send((n, result)).unwrap();
        store.submit(appends, Box::new(done));
    }
    drop(sender);
    let mut last = Version::EMPTY;
    for (n, result) in receiver {
        if n % 4 == 3 {
            conflict(result);
        } else {
            last = last.next();
            assert_eq!(result.unwrap(), [last]);
        }
    }
    assert_eq!(texts(&*store, "a"), expected);
}
