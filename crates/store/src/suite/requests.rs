//! Promises about requests: kept until taken, taken once.

use super::Place;
use super::place::{conflict, free, job, owned, texts};
use super::run::Check;
use crate::aggregate::AggregateId;
use crate::append::{Append, AppendError};
use crate::request::RequestId;
use crate::store::Store;
use crate::version::{Epoch, Version};

pub(super) const CHECKS: &[Check] = &[
    ("requests wait in order, over an ending", in_order),
    ("a request goes with the append that acts upon it", taken),
    ("a refused append takes nothing", refused),
    ("a request is taken once", once),
    ("requests are of one aggregate", of_one),
    ("whom something was asked of is found by family", found),
];

fn asked(store: &dyn Store, id: &str) -> Vec<String> {
    let requests = store.requests(&job(id)).unwrap().into_iter();
    requests
        .map(|request| String::from_utf8(request.bytes).unwrap())
        .collect()
}

fn ask(store: &dyn Store, id: &str, what: &str) -> RequestId {
    store.request(&job(id), what.as_bytes().to_vec()).unwrap()
}

fn already_taken(result: Result<Vec<Version>, AppendError>) -> RequestId {
    match result {
        Err(AppendError::AlreadyTaken { request, .. }) => request,
        other => panic!("expected a request that is taken already, got {other:?}"),
    }
}

fn in_order(place: &Place) {
    let store = place.open();
    store.append(vec![free("a", 0, &["1"])]).unwrap();
    let first = ask(&*store, "a", "pause");
    let second = ask(&*place.open(), "a", "cancel");
    assert!(second > first);
    drop(store);
    assert_eq!(asked(&*place.open(), "a"), ["pause", "cancel"]);
}

fn taken(place: &Place) {
    let (owner, other) = (place.open(), place.open());
    let claim = owner.claim(&job("a")).unwrap();
    owner
        .append(vec![owned("a", 0, claim.epoch, &["1"])])
        .unwrap();
    let pause = ask(&*other, "a", "pause");
    ask(&*other, "a", "cancel");
    let acting = owned("a", 1, claim.epoch, &["paused"]).taking([pause]);
    owner.append(vec![acting]).unwrap();
    assert_eq!(asked(&*other, "a"), ["cancel"]);
    assert_eq!(texts(&*other, "a"), ["1", "paused"]);
    let rest = owner.requests(&job("a")).unwrap();
    let dismissing = owned("a", 2, claim.epoch, &[]).taking(rest.iter().map(|r| r.id));
    owner.append(vec![dismissing]).unwrap();
    assert_eq!(asked(&*owner, "a"), [""; 0]);
}

fn refused(place: &Place) {
    let store = place.open();
    store.append(vec![free("a", 0, &["1"])]).unwrap();
    let pause = ask(&*store, "a", "pause");
    conflict(store.append(vec![free("a", 0, &["x"]).taking([pause])]));
    conflict(store.append(vec![
        free("a", 1, &["x"]).taking([pause]),
        free("b", 4, &[]),
    ]));
    assert_eq!(asked(&*store, "a"), ["pause"]);
}

fn once(place: &Place) {
    let (one, other) = (place.open(), place.open());
    one.append(vec![free("a", 0, &["1"])]).unwrap();
    let pause = ask(&*one, "a", "pause");
    one.append(vec![free("a", 1, &["2"]).taking([pause])])
        .unwrap();
    let again = other.append(vec![free("a", 2, &["x"]).taking([pause])]);
    assert_eq!(already_taken(again), pause);
    let cancel = ask(&*one, "a", "cancel");
    assert!(cancel > pause, "a number never comes back");
    let twice = free("a", 2, &["x"]).taking([cancel, cancel]);
    already_taken(one.append(vec![twice]));
    assert_eq!(texts(&*one, "a"), ["1", "2"]);
    assert_eq!(asked(&*one, "a"), ["cancel"]);
}

fn of_one(place: &Place) {
    let store = place.open();
    let both = vec![free("a", 0, &["1"]), free("b", 0, &["1"])];
    store.append(both).unwrap();
    let pause = ask(&*store, "a", "pause");
    already_taken(store.append(vec![free("b", 1, &["x"]).taking([pause])]));
    assert_eq!(asked(&*store, "b"), [""; 0]);
    assert_eq!(asked(&*store, "a"), ["pause"]);
}

/// The ids of a family of whom something was asked.
fn ids(store: &dyn Store, family: &str) -> Vec<String> {
    let found = store.asked(family).unwrap().into_iter();
    found
        .inspect(|aggregate| assert_eq!(aggregate.family(), family))
        .map(|aggregate| aggregate.id().to_owned())
        .collect()
}

fn found(place: &Place) {
    let (one, other) = (place.open(), place.open());
    assert_eq!(ids(&*one, "job"), [""; 0]);
    let breaker = AggregateId::new("breaker", "b").unwrap();
    let foreign = Append::new(
        breaker.clone(),
        Version::EMPTY,
        Epoch::UNCLAIMED,
        vec![vec![1]],
    );
    let all = ["c", "b", "a"].map(|id| free(id, 0, &["1"]));
    one.append(all.into_iter().chain([foreign]).collect())
        .unwrap();
    assert_eq!(ids(&*one, "job"), [""; 0]);
    let cancel = ask(&*other, "c", "cancel");
    let pause = ask(&*other, "a", "pause");
    let again = ask(&*other, "a", "cancel");
    one.request(&breaker, vec![1]).unwrap();
    assert_eq!(ids(&*one, "job"), ["a", "c"], "in order, each once");
    assert_eq!(ids(&*one, "breaker"), ["b"]);
    assert_eq!(ids(&*one, "jo"), [""; 0]);
    one.append(vec![free("a", 1, &[]).taking([pause])]).unwrap();
    assert_eq!(ids(&*other, "job"), ["a", "c"]);
    one.append(vec![free("a", 1, &[]).taking([again])]).unwrap();
    assert_eq!(ids(&*other, "job"), ["c"]);
    drop((one, other));
    let store = place.open();
    assert_eq!(ids(&*store, "job"), ["c"], "over an ending");
    store.remove(&job("c"), Epoch::UNCLAIMED).unwrap();
    assert_eq!(ids(&*store, "job"), [""; 0]);
    let gone = store.append(vec![free("c", 0, &["1"]).taking([cancel])]);
    assert_eq!(already_taken(gone), cancel);
}
