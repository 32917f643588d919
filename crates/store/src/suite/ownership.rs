//! Promises about claims: one owner, dead owners replaced at once, stale owners fenced.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::Reopenable;
use super::fixture::{ConformanceCheck, fence, job, owned, texts, unclaimed};
use crate::{Append, AppendError, Claim, ClaimError, Epoch, Owner, Store, UnderClaim, Version};

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ("an aggregate has one owner", one_owner),
    ("a dead owner is replaced at once", dead_owner),
    ("a dead owner is replaced while other handles open and close", handles_open_and_close),
    ("a stale owner is fenced before any other check", stale_owner),
    ("a claim is released once", released_once),
    ("a claimed aggregate refuses other writers", closed_to_others),
    ("a claim creates no listed aggregate", claimed_before_it_exists),
    ("a claim that writes is stored with its records or not at all", claimed_with_records),
    ("an epoch is never reused", never_reused),
    ("only the owner removes an aggregate", removal),
    ("claims of different aggregates are independent", independent),
];

fn owner_of(store: &dyn Store, id: &str) -> Owner {
    match store.claim(&job(id)) {
        Err(ClaimError::OwnedBy { owner, aggregate }) => {
            assert_eq!(aggregate, job(id));
            owner
        }
        other => panic!("expected an owner, got {other:?}"),
    }
}

fn claimed(store: &dyn Store, id: &str) -> Claim {
    store.claim(&job(id)).unwrap()
}

fn claimed_with_records(stores: &Reopenable) {
    let (store, other) = (stores.open(), stores.open());
    let under = |expected: Version| -> UnderClaim {
        Box::new(move |claim: &Claim| {
            let records = vec![b"one".to_vec(), b"two".to_vec()];
            let aggregate = claim.aggregate.clone();
            vec![Append::new(aggregate, expected, claim.epoch, records)]
        })
    };
    let refused = store.claim_writing(&job("a"), under(Version(7))).unwrap();
    assert!(matches!(refused, Err(AppendError::Conflict { .. })), "{refused:?}");
    assert_eq!(other.owner(&job("a")).unwrap(), None, "nothing is claimed");
    let claim = store.claim_writing(&job("a"), under(Version::EMPTY)).unwrap().unwrap();
    assert_eq!(texts(&*other, "a"), ["one", "two"]);
    assert!(other.owner(&job("a")).unwrap().is_some());
    let owned = other.claim_writing(&job("a"), under(Version(2)));
    assert!(matches!(owned, Err(ClaimError::OwnedBy { .. })), "{owned:?}");
    let more = Append::new(job("a"), Version(2), claim.epoch, vec![b"three".to_vec()]);
    store.append(vec![more]).unwrap();
    assert_eq!(texts(&*other, "a"), ["one", "two", "three"]);
    let ahead = store.claim_writing_ahead(&job("b"), under(Version::EMPTY)).unwrap().unwrap();
    assert_eq!(texts(&*other, "b"), ["one", "two"]);
    let more = Append::new(job("b"), Version(2), ahead.epoch, vec![b"three".to_vec()]);
    store.append(vec![more]).unwrap();
    assert_eq!(texts(&*other, "b"), ["one", "two", "three"]);
}

fn one_owner(stores: &Reopenable) {
    let (one, other) = (stores.open(), stores.open());
    let claim = claimed(&*one, "a");
    assert_eq!(claim.version, Version::EMPTY);
    assert!(claim.epoch > Epoch::UNCLAIMED);
    let owner = owner_of(&*other, "a");
    assert_eq!(owner.pid, std::process::id());
    assert!(!owner.host.is_empty());
    assert_eq!(owner_of(&*one, "a"), owner, "not even itself twice");
    let owner_at = |id| other.owner(&job(id)).unwrap();
    assert_eq!(owner_at("a"), Some(owner), "every handle can look up the owner");
    assert_eq!(owner_at("b"), None);
    one.unclaim(&claim).unwrap();
    assert_eq!(owner_at("a"), None);
}

fn dead_owner(stores: &Reopenable) {
    let one = stores.open();
    let claim = claimed(&*one, "a");
    one.append(vec![owned("a", 0, claim.epoch, &["1"])]).unwrap();
    drop(one);
    let other = stores.open();
    let next = claimed(&*other, "a");
    assert!(next.epoch > claim.epoch);
    assert_eq!(next.version, Version(1));
    other.append(vec![owned("a", 1, next.epoch, &["2"])]).unwrap();
    assert_eq!(texts(&*other, "a"), ["1", "2"]);
}

fn handles_open_and_close(stores: &Reopenable) {
    let (claimant, ended) = (stores.open(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                drop(stores.open());
            }
        });
        for _ in 0..30 {
            let dying = stores.open();
            claimed(&*dying, "a");
            drop(dying);
            let claim = claimant.claim(&job("a"));
            ended.fetch_or(claim.is_err(), Ordering::Relaxed);
            claimant.unclaim(&claim.unwrap()).unwrap();
        }
        ended.store(true, Ordering::Relaxed);
    });
}

fn stale_owner(stores: &Reopenable) {
    let (one, other) = (stores.open(), stores.open());
    let stale = claimed(&*one, "a");
    one.append(vec![owned("a", 0, stale.epoch, &["1"])]).unwrap();
    one.unclaim(&stale).unwrap();
    let current = claimed(&*other, "a");
    let right_version = one.append(vec![owned("a", 1, stale.epoch, &["x"])]);
    assert_eq!(fence(right_version), current.epoch);
    let wrong_version = one.append(vec![owned("a", 9, stale.epoch, &["x"])]);
    assert_eq!(fence(wrong_version), current.epoch);
    let with_another = one.append(vec![unclaimed("b", 0, &["x"]), owned("a", 1, stale.epoch, &["x"])]);
    fence(with_another);
    assert_eq!(other.head(&job("b")).unwrap(), None);
    assert_eq!(texts(&*other, "a"), ["1"]);
}

fn released_once(stores: &Reopenable) {
    let (one, other) = (stores.open(), stores.open());
    let first = claimed(&*one, "a");
    one.unclaim(&first).unwrap();
    let second = claimed(&*other, "a");
    one.unclaim(&first).unwrap();
    owner_of(&*one, "a");
    other.unclaim(&second).unwrap();
    claimed(&*one, "a");
}

fn closed_to_others(stores: &Reopenable) {
    let store = stores.open();
    store.append(vec![unclaimed("a", 0, &["1"])]).unwrap();
    let claim = claimed(&*store, "a");
    assert_eq!(fence(store.append(vec![unclaimed("a", 1, &["x"])])), claim.epoch);
    let from_the_future = owned("a", 1, claim.epoch.next(), &["x"]);
    assert_eq!(fence(store.append(vec![from_the_future])), claim.epoch);
    store.append(vec![owned("a", 1, claim.epoch, &["2"])]).unwrap();
    assert_eq!(texts(&*store, "a"), ["1", "2"]);
}

fn claimed_before_it_exists(stores: &Reopenable) {
    let store = stores.open();
    let claim = claimed(&*store, "a");
    assert_eq!(store.list("job", "").unwrap(), []);
    assert!(store.request(&job("a"), vec![]).is_err());
    store.append(vec![owned("a", 0, claim.epoch, &["1"])]).unwrap();
    let listed = store.list("job", "").unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed.first().map(|one| one.head.epoch), Some(claim.epoch));
}

fn never_reused(stores: &Reopenable) {
    let (one, other) = (stores.open(), stores.open());
    let stale = claimed(&*one, "a");
    one.append(vec![owned("a", 0, stale.epoch, &["1"])]).unwrap();
    one.unclaim(&stale).unwrap();
    let remover = claimed(&*other, "a");
    other.remove(&job("a"), remover.epoch).unwrap();
    let again = claimed(&*other, "a");
    assert!(again.epoch > remover.epoch && remover.epoch > stale.epoch);
    fence(one.append(vec![owned("a", 0, stale.epoch, &["x"])]));
    drop((one, other));
    assert!(claimed(&*stores.open(), "a").epoch > again.epoch);
}

fn removal(stores: &Reopenable) {
    let (one, other) = (stores.open(), stores.open());
    let claim = claimed(&*one, "a");
    one.append(vec![owned("a", 0, claim.epoch, &["1"])]).unwrap();
    for epoch in [Epoch::UNCLAIMED, claim.epoch.next()] {
        assert_eq!(fence(other.remove(&job("a"), epoch)), claim.epoch);
    }
    assert_eq!(texts(&*one, "a"), ["1"]);
    one.remove(&job("a"), claim.epoch).unwrap();
    fence(one.append(vec![owned("a", 1, claim.epoch, &["2"])]));
    assert_eq!(one.head(&job("a")).unwrap(), None);
}

fn independent(stores: &Reopenable) {
    let (one, other) = (stores.open(), stores.open());
    claimed(&*one, "a");
    claimed(&*other, "b");
    owner_of(&*one, "b");
    drop(other);
    claimed(&*one, "b");
}
