//! The catalog in real stores: written by several threads at once, and read again.

use std::sync::Arc;
use std::thread;

use undaunted_engine::catalog::{Catalog, CatalogEvent, FlowLifecycle, FlowStatus};
use undaunted_policy::Timestamp;
use undaunted_store::{
    AppendError, Fault, Faults, FaultyStore, LARGEST_RECORD, MemoryStore, SqliteStore, Store, StoreError,
    Version,
};

use super::{CatalogHandle, journal};
use crate::JournalError;

fn sqlite(folder: &tempfile::TempDir) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(folder.path()).unwrap())
}

fn activated(flow: &str) -> CatalogEvent {
    CatalogEvent::FlowActivated {
        flow: flow.to_owned(),
        since: Timestamp::from_nanos(7),
        labels: vec![],
        parent: None,
    }
}

fn deactivated(flow: &str) -> CatalogEvent {
    CatalogEvent::FlowDeactivated {
        flow: flow.to_owned(),
        status: FlowStatus::Completed,
        error: None,
        ended: Timestamp::from_nanos(8),
    }
}

/// A catalog whose first note is being written until the store is resumed.
fn stalled() -> (Arc<FaultyStore>, Faults, CatalogHandle) {
    let faults = Faults::none().at_append(1, Fault::Stall);
    let store = Arc::new(FaultyStore::new(Box::new(MemoryStore::new()), faults.clone()));
    let handle = CatalogHandle::open(Arc::clone(&store) as Arc<dyn Store>).unwrap();
    handle.note(activated("first"));
    while store.waiting() == 0 {
        thread::yield_now();
    }
    (store, faults, handle)
}

/// Registers a step. If another definition of it exists, returns that as the error.
fn register(handle: &CatalogHandle, id: &str, definition: &str) -> Result<bool, Arc<str>> {
    let (id, definition) = (id.to_owned(), definition.to_owned());
    let changed = handle.change(move |catalog| match catalog.steps.get(&id) {
        Some(there) if **there == *definition => Ok(vec![]),
        Some(there) => Err(Arc::clone(there)),
        None => Ok(vec![CatalogEvent::StepRegistered { id: id.clone(), definition: definition.clone() }]),
    });
    changed.unwrap().map(|events| !events.is_empty())
}

fn whole(handle: &CatalogHandle) -> Catalog {
    handle.read(Clone::clone).unwrap()
}

#[test]
fn of_two_conflicting_registrations_of_a_step_exactly_one_succeeds() {
    const STEPS: usize = 40;
    let folder = tempfile::tempdir().unwrap();
    let handles = [sqlite(&folder), sqlite(&folder)].map(|store| CatalogHandle::open(store).unwrap());
    let won: Vec<Vec<bool>> = thread::scope(|scope| {
        let racing = handles.iter().zip(["one", "two"]).map(|(handle, definition)| {
            scope.spawn(move || {
                let ids = (0..STEPS).map(|n| format!("step-{n}"));
                ids.map(|id| register(handle, &id, definition).is_ok()).collect()
            })
        });
        let racing: Vec<_> = racing.collect();
        racing.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let [one, two] = &handles;
    let catalog = whole(one);
    assert_eq!(whole(two), catalog);
    assert_eq!(catalog.steps.len(), STEPS);
    for (n, (first, second)) in won[0].iter().zip(&won[1]).enumerate() {
        assert!(first ^ second, "step {n}");
        let winner = if *first { "one" } else { "two" };
        assert_eq!(&*catalog.steps[&format!("step-{n}")], winner);
    }
    assert_eq!(one.cached(|_, version| version), Version(40));
}

#[test]
fn equal_registrations_in_one_batch_see_each_other() {
    const CALLERS: usize = 16;
    let (store, _, handle) = stalled();
    let made: usize = thread::scope(|scope| {
        let callers = (0..CALLERS).map(|_| scope.spawn(|| register(&handle, "a", "1").unwrap()));
        let callers: Vec<_> = callers.collect();
        store.resume();
        callers.into_iter().map(|it| usize::from(it.join().unwrap())).sum()
    });
    assert_eq!(made, 1);
    assert_eq!(handle.records_after(Version(1)).unwrap().len(), 1);
}

#[test]
fn notes_of_many_threads_are_written_once_and_survive_reopening() {
    const THREADS: usize = 4;
    const EACH: usize = 500;
    let folder = tempfile::tempdir().unwrap();
    let handle = CatalogHandle::open(sqlite(&folder)).unwrap();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let handle = handle.clone();
            scope.spawn(move || {
                for flow in 0..EACH {
                    handle.note(activated(&format!("{number}-{flow}")));
                    handle.note(deactivated(&format!("{number}-{flow}")));
                }
            });
        }
    });
    handle.flush().unwrap();
    let catalog = handle.cached(|catalog, _| catalog.clone());
    assert_eq!(catalog.flows.len(), THREADS * EACH);
    let ended = |place| place == FlowLifecycle::Deactivated;
    assert!(catalog.flows.values().all(|flow| ended(flow.lifecycle)));
    drop(handle);
    let again = CatalogHandle::open(sqlite(&folder)).unwrap();
    assert_eq!(again.cached(|catalog, _| catalog.clone()), catalog);
    assert_eq!(again.cached(|_, version| version), Version::EMPTY.after(THREADS * EACH * 2));
}

#[test]
fn ten_thousand_notes_are_written_in_a_few_appends() {
    let (store, faults, handle) = stalled();
    for flow in 0..10_000 {
        handle.note(activated(&flow.to_string()));
    }
    let shown = handle.cached(|catalog, _| catalog.flows.len());
    store.resume();
    handle.flush().unwrap();
    assert_eq!(shown, 0, "readers see only what is on disk");
    assert_eq!(handle.cached(|catalog, _| catalog.flows.len()), 10_001);
    assert!(faults.appends() <= 4, "{} appends", faults.appends());
}

#[test]
fn dropping_the_last_handle_writes_all_notes() {
    let store = MemoryStore::new();
    let handle = CatalogHandle::open(Arc::new(store.another())).unwrap();
    for flow in 0..100 {
        handle.clone().note(activated(&flow.to_string()));
    }
    drop(handle);
    assert_eq!(journal::records(&store, Version::EMPTY).unwrap().len(), 100);
}

#[test]
fn the_writer_thread_may_drop_the_last_handle() {
    // The caller is answered before `decide` is dropped, so either may hold the last handle.
    for _ in 0..200 {
        let handle = CatalogHandle::open(Arc::new(MemoryStore::new())).unwrap();
        let held = handle.clone();
        handle.note(activated("f"));
        let changed = handle.change(move |_| {
            let _ = &held;
            Ok::<_, ()>(vec![deactivated("f")])
        });
        assert_eq!(changed.unwrap(), Ok(vec![deactivated("f")]));
    }
}

#[test]
fn read_sees_records_of_other_processes_and_known_does_not() {
    let store = MemoryStore::new();
    let handles = [store.another(), store].map(|store| CatalogHandle::open(Arc::new(store)).unwrap());
    let [one, two] = &handles;
    assert_eq!(register(one, "a", "1"), Ok(true));
    assert!(two.cached(|catalog, _| catalog.steps.is_empty()));
    assert_eq!(whole(two).steps.len(), 1);
    assert_eq!(two.cached(|_, version| version), Version(1));
    // A change that writes nothing is decided on the records of other processes, too.
    assert_eq!(register(one, "b", "1"), Ok(true));
    assert_eq!(register(two, "b", "2"), Err(Arc::from("1")));
    assert_eq!(register(two, "b", "1"), Ok(false));
    assert_eq!(register(one, "c", "1"), Ok(true));
    let found = two.change(|catalog| match catalog.steps.get("c") {
        Some(_) => Ok(vec![]),
        None => Err("there is no such step"),
    });
    assert_eq!(found.unwrap(), Ok(vec![]));
    let records = one.records_after(Version(1)).unwrap();
    let words: Vec<_> = records.iter().map(|(at, it)| (at.0, it.event.word())).collect();
    assert_eq!(words, [(2, "step_registered"), (3, "step_registered")]);
}

#[test]
fn the_error_of_a_malformed_record_names_its_version() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(&folder);
    let handle = CatalogHandle::open(Arc::clone(&store)).unwrap();
    assert_eq!(register(&handle, "a", "1"), Ok(true));
    let mut damaged = journal::append(Version(1), &[]).unwrap();
    damaged.records = vec![vec![1, 0xff]];
    store.append(vec![damaged]).unwrap();
    let check = |found: Result<(), JournalError>| {
        let error = found.unwrap_err();
        let place = matches!(error, JournalError::CatalogRecord { version: Version(2), .. });
        assert!(place, "{error:?}");
        assert!(error.to_string().starts_with("record 2 of the catalog "));
    };
    check(handle.read(|_| ()));
    check(handle.change(|_| Ok::<_, ()>(vec![])).map(|_| ()));
    check(CatalogHandle::open(Arc::clone(&store)).map(|_| ()));
    check(journal::records(&*store, Version::EMPTY).map(|_| ()));
    assert_eq!(handle.cached(|catalog, _| catalog.steps.len()), 1, "the records before it stay");
}

#[test]
fn flush_returns_the_error_of_a_note_once() {
    let full = StoreError::DiskFull { path: "here".into() };
    let faults = Faults::none().at_append(1, Fault::Refuse(full.clone())).at_append(2, Fault::Refuse(full));
    let store = FaultyStore::new(Box::new(MemoryStore::new()), faults);
    let handle = CatalogHandle::open(Arc::new(store)).unwrap();
    let is_full = |error: Option<JournalError>| {
        let found = error.unwrap();
        let full = AppendError::Store(StoreError::DiskFull { path: "here".into() });
        assert_eq!(found.to_string(), full.to_string());
    };
    handle.note(activated("f"));
    is_full(handle.flush().err());
    // The error is returned once.
    handle.flush().unwrap();
    is_full(handle.change(|_| Ok::<_, ()>(vec![activated("g")])).err());
    assert!(whole(&handle).flows.is_empty());
    handle.note(activated("h"));
    handle.flush().unwrap();
    let flows = whole(&handle).flows.into_keys().collect::<Vec<_>>();
    assert_eq!(flows, ["h".into()]);
}

#[test]
fn a_note_that_is_too_large_is_refused_alone() {
    let (store, _, handle) = stalled();
    handle.note(activated("before"));
    handle.note(CatalogEvent::StepRegistered { id: "a".to_owned(), definition: " ".repeat(LARGEST_RECORD) });
    handle.note(activated("behind"));
    store.resume();
    let found = handle.flush().unwrap_err();
    let large = AppendError::Store(StoreError::TooLarge {
        aggregate: journal::aggregate().unwrap(),
        bytes: 0,
        most: 0,
    });
    assert!(matches!(&found, JournalError::Append(error) if error.code() == large.code()), "{found}");
    let catalog = whole(&handle);
    assert_eq!(catalog.flows.len(), 3);
    assert!(catalog.steps.is_empty());
}

#[test]
fn a_store_that_loses_records_leads_to_an_error_instead_of_a_loop() {
    let faults = Faults::none().at_append(1, Fault::Lose);
    let store = FaultyStore::new(Box::new(MemoryStore::new()), faults);
    let handle = CatalogHandle::open(Arc::new(store)).unwrap();
    assert_eq!(register(&handle, "a", "1"), Ok(true));
    let found = handle.change(|_| Ok::<_, ()>(vec![activated("f")]));
    let conflict = matches!(found, Err(JournalError::Append(AppendError::Conflict { .. })));
    assert!(conflict, "{found:?}");
}
