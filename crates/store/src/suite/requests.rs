//! Promises about requests and questions: a request is kept until an append takes it, once.

use super::Reopenable;
use super::fixture::{ConformanceCheck, conflict, facts, findings, job, owned, texts, unclaimed};
use crate::{AppendError, Question, RequestId, Store, Version};

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ("requests are kept in order after a restart", in_order),
    ("the append that acts upon a request deletes it", taken),
    ("a refused append takes no request", refused),
    ("a request is taken once", once),
    ("a request belongs to one aggregate", of_one),
    ("a handle finds the requests to aggregates it has claimed", found),
    ("a handle finds the new records of journals it follows", followed),
    ("a handle finds the awaited aggregates without an owner", awaited),
];

fn texts_of_requests(store: &dyn Store, id: &str) -> Vec<String> {
    let requests = store.requests(&job(id)).unwrap().into_iter();
    requests.map(|request| String::from_utf8(request.bytes).unwrap()).collect()
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

fn in_order(stores: &Reopenable) {
    let store = stores.open();
    store.append(vec![unclaimed("a", 0, &["1"])]).unwrap();
    let first = ask(&*store, "a", "pause");
    let second = ask(&*stores.open(), "a", "cancel");
    assert!(second > first);
    drop(store);
    assert_eq!(texts_of_requests(&*stores.open(), "a"), ["pause", "cancel"]);
}

fn taken(stores: &Reopenable) {
    let (owner, other) = (stores.open(), stores.open());
    let claim = owner.claim(&job("a")).unwrap();
    owner.append(vec![owned("a", 0, claim.epoch, &["1"])]).unwrap();
    let pause = ask(&*other, "a", "pause");
    ask(&*other, "a", "cancel");
    let acting = owned("a", 1, claim.epoch, &["paused"]).taking([pause]);
    owner.append(vec![acting]).unwrap();
    assert_eq!(texts_of_requests(&*other, "a"), ["cancel"]);
    assert_eq!(texts(&*other, "a"), ["1", "paused"]);
    let open = owner.requests(&job("a")).unwrap();
    let dismissing = owned("a", 2, claim.epoch, &[]).taking(open.iter().map(|r| r.id));
    owner.append(vec![dismissing]).unwrap();
    assert_eq!(texts_of_requests(&*owner, "a"), [""; 0]);
}

fn refused(stores: &Reopenable) {
    let store = stores.open();
    store.append(vec![unclaimed("a", 0, &["1"])]).unwrap();
    let pause = ask(&*store, "a", "pause");
    conflict(store.append(vec![unclaimed("a", 0, &["x"]).taking([pause])]));
    conflict(store.append(vec![unclaimed("a", 1, &["x"]).taking([pause]), unclaimed("b", 4, &[])]));
    assert_eq!(texts_of_requests(&*store, "a"), ["pause"]);
}

fn once(stores: &Reopenable) {
    let (one, other) = (stores.open(), stores.open());
    one.append(vec![unclaimed("a", 0, &["1"])]).unwrap();
    let pause = ask(&*one, "a", "pause");
    one.append(vec![unclaimed("a", 1, &["2"]).taking([pause])]).unwrap();
    let again = other.append(vec![unclaimed("a", 2, &["x"]).taking([pause])]);
    assert_eq!(already_taken(again), pause);
    let cancel = ask(&*one, "a", "cancel");
    assert!(cancel > pause, "a number is never reused");
    let twice = unclaimed("a", 2, &["x"]).taking([cancel, cancel]);
    already_taken(one.append(vec![twice]));
    assert_eq!(texts(&*one, "a"), ["1", "2"]);
    assert_eq!(texts_of_requests(&*one, "a"), ["cancel"]);
}

fn of_one(stores: &Reopenable) {
    let store = stores.open();
    let both = vec![unclaimed("a", 0, &["1"]), unclaimed("b", 0, &["1"])];
    store.append(both).unwrap();
    let pause = ask(&*store, "a", "pause");
    already_taken(store.append(vec![unclaimed("b", 1, &["x"]).taking([pause])]));
    assert_eq!(texts_of_requests(&*store, "b"), [""; 0]);
    assert_eq!(texts_of_requests(&*store, "a"), ["pause"]);
}

/// The requests to the jobs that are claimed through this handle.
fn requests(store: &dyn Store) -> Vec<(String, Vec<u8>)> {
    let found = findings(store, Question::default()).requests.into_iter();
    let each = found.flat_map(|(of, requests)| {
        requests.unwrap().into_iter().map(move |request| (of.id().to_owned(), request.bytes))
    });
    each.collect()
}

fn found(stores: &Reopenable) {
    let (one, other) = (stores.open(), stores.open());
    one.append(["a", "b", "c"].map(|id| unclaimed(id, 0, &["1"])).into()).unwrap();
    let mine = one.claim(&job("a")).unwrap();
    let also = one.claim(&job("c")).unwrap();
    other.claim(&job("b")).unwrap();
    assert_eq!(requests(&*one), []);
    let pause = ask(&*other, "a", "pause");
    for (id, what) in [("b", "cancel"), ("c", "cancel"), ("a", "cancel")] {
        ask(&*one, id, what);
    }
    let named = |id: &str, what: &str| (id.to_owned(), what.as_bytes().to_vec());
    let expected = [named("a", "pause"), named("a", "cancel"), named("c", "cancel")];
    assert_eq!(requests(&*one), expected, "oldest first");
    assert_eq!(requests(&*other), [named("b", "cancel")]);
    let paused = owned("a", 1, mine.epoch, &["paused"]).taking([pause]);
    one.append(vec![paused]).unwrap();
    one.unclaim(&also).unwrap();
    assert_eq!(requests(&*one), [named("a", "cancel")]);
}

fn followed(stores: &Reopenable) {
    let (one, other) = (stores.open(), stores.open());
    one.append(vec![facts("a", &["1", "2"]), facts("b", &["1"])]).unwrap();
    let follow = |of: &[(&str, u64)], since| {
        let follows = of.iter().map(|(id, known)| (job(id), Version(*known))).collect();
        let question = Question { follows, since, ..Question::default() };
        let found = findings(&*other, question);
        let records = found.records.into_iter().map(|(of, records)| {
            let texts = records.unwrap().into_iter();
            let texts = texts.map(|(at, bytes)| (at.0, String::from_utf8(bytes).unwrap()));
            (of.id().to_owned(), texts.collect::<Vec<_>>())
        });
        (records.collect::<Vec<_>>(), found.pulse)
    };
    let all = [("a", 1), ("b", 1), ("none", 0)];
    let (records, pulse) = follow(&all, None);
    let second = vec![(2, "2".to_owned())];
    assert_eq!(records, [("a".to_owned(), second.clone())]);
    assert_eq!(follow(&all, Some(pulse)), (vec![], pulse), "nothing new");
    assert_eq!(follow(&all, None).0, [("a".to_owned(), second)]);
    one.append(vec![facts("b", &["2"])]).unwrap();
    let (records, later) = follow(&[("b", 1)], Some(pulse));
    assert_eq!(records, [("b".to_owned(), vec![(2, "2".to_owned())])]);
    assert_ne!(later, pulse);
    one.trim(&job("a"), Version(2)).unwrap();
    let (records, _) = follow(&[("a", 0)], None);
    let last = records[0].1.last().cloned();
    assert_eq!(last, Some((2, "2".to_owned())));
}

fn awaited(stores: &Reopenable) {
    let (one, other) = (stores.open(), stores.open());
    let claim = one.claim(&job("a")).unwrap();
    one.claim(&job("b")).unwrap();
    let mut question = Question { awaits: ["a", "b", "none"].map(job).into(), ..Question::default() };
    let found = findings(&*other, question.clone());
    assert_eq!(found.unowned, [job("none")].into());
    question.since = Some(found.pulse);
    one.unclaim(&claim).unwrap();
    let found = findings(&*other, question.clone());
    assert_eq!(found.unowned, [job("a"), job("none")].into());
    question.since = Some(found.pulse);
    drop(one);
    let found = findings(&*other, question);
    assert_eq!(found.unowned.len(), 3, "a dead owner is found although nothing was written");
}
