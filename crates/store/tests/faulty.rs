//! A `FaultyStore` fails as its script says and otherwise keeps the contract.

#![expect(clippy::unwrap_used, reason = "a panic in a test is a red test")]

use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};

use tempfile::TempDir;
use undaunted_store::suite::{Reopenable, run_all};
use undaunted_store::{
    AggregateId, Append, AppendError, Epoch, Fault, Faults, FaultyStore, Findings, MemoryStore, Question,
    SqliteStore, Store, StoreError, Version,
};

fn job() -> AggregateId {
    AggregateId::new("job", "a").unwrap()
}

fn append(expected: u64, records: &[&str]) -> Vec<Append> {
    let records = records.iter().map(|text| text.as_bytes().to_vec());
    vec![Append::new(job(), Version(expected), Epoch::UNCLAIMED, records.collect())]
}

/// The readable records, and the error that stopped the reader.
fn read(store: &dyn Store) -> (Vec<String>, Option<StoreError>) {
    let (mut texts, mut stopped) = (vec![], None);
    for record in store.read(&job(), Version::EMPTY).unwrap() {
        match record {
            Ok((_, bytes)) => texts.push(String::from_utf8(bytes).unwrap()),
            Err(error) => stopped = Some(error),
        }
    }
    (texts, stopped)
}

fn must_reopen(result: &Result<Vec<Version>, AppendError>) -> bool {
    matches!(result, Err(AppendError::Store(StoreError::MustReopen { .. })))
}

/// Runs a test on both stores. The test gets a function that opens handles.
fn on_each(test: impl Fn(&dyn Fn() -> Box<dyn Store>)) {
    let root = MemoryStore::new();
    test(&|| Box::new(root.another()));
    let folder = TempDir::new().unwrap();
    test(&|| Box::new(SqliteStore::open(folder.path()).unwrap()));
}

#[test]
fn without_faults_a_wrapped_store_passes_the_suite() {
    run_all(|| {
        let (root, faults) = (MemoryStore::new(), Faults::none());
        Reopenable::new(move || Box::new(FaultyStore::new(Box::new(root.another()), faults.clone())))
    });
    run_all(|| {
        let (folder, faults) = (TempDir::new().unwrap(), Faults::none());
        Reopenable::new(move || {
            let inner = SqliteStore::open(folder.path()).unwrap();
            Box::new(FaultyStore::new(Box::new(inner), faults.clone()))
        })
    });
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged_until_the_store_is_opened_again() {
    for stored in [false, true] {
        on_each(|open| {
            let faults = Faults::none().at_append(2, Fault::SyncFails { stored });
            let store = FaultyStore::new(open(), faults.clone());
            store.append(append(0, &["1"])).unwrap();
            assert!(must_reopen(&store.append(append(1, &["2"]))));
            assert!(must_reopen(&store.append(append(1, &["2"]))));
            assert!(must_reopen(&store.append(append(2, &["3"]))));
            assert!(store.head(&job()).is_err());
            assert!(store.claim(&job()).is_err());
            drop(store);
            let store = FaultyStore::new(open(), faults);
            let expected: &[&str] = if stored { &["1", "2"] } else { &["1"] };
            assert_eq!(read(&store).0, expected);
            let length = u64::try_from(expected.len()).unwrap();
            store.append(append(length, &["3"])).unwrap();
        });
    }
}

#[test]
fn a_refused_append_stores_nothing_and_the_store_stays_usable() {
    on_each(|open| {
        let full = StoreError::DiskFull { path: Path::new("there").to_owned() };
        let store = FaultyStore::new(open(), Faults::none().at_append(1, Fault::Refuse(full)));
        let refused = store.append(append(0, &["1"]));
        assert_eq!(refused.unwrap_err().code(), "store-disk-full");
        store.append(append(0, &["1"])).unwrap();
        assert_eq!(read(&store).0, ["1"]);
    });
}

#[test]
fn a_lost_write_is_noticed_by_the_next_append() {
    on_each(|open| {
        let store = FaultyStore::new(open(), Faults::none().at_append(2, Fault::Lose));
        store.append(append(0, &["1"])).unwrap();
        store.append(append(1, &["lost"])).unwrap();
        let next = store.append(append(2, &["3"]));
        assert!(matches!(next, Err(AppendError::Conflict { found: Version(1), .. })));
        assert_eq!(read(&store).0, ["1"]);
    });
}

#[test]
fn lost_facts_get_the_versions_they_would_have_had() {
    on_each(|open| {
        let store = FaultyStore::new(open(), Faults::none().at_append(2, Fault::Lose));
        let facts = |records: usize| Append::facts(job(), vec![b"x".to_vec(); records]);
        assert_eq!(store.append(vec![facts(1)]).unwrap(), [Version(1)]);
        let lost = store.append(vec![facts(2), facts(1)]);
        assert_eq!(lost.unwrap(), [Version(3), Version(4)]);
        assert_eq!(store.append(vec![facts(1)]).unwrap(), [Version(2)]);
        assert_eq!(read(&store).0, ["x", "x"]);
    });
}

#[test]
fn a_torn_append_is_reported_at_its_first_damaged_record() {
    on_each(|open| {
        let faults = Faults::none().at_append(2, Fault::Tear { whole: 1 });
        let store = FaultyStore::new(open(), faults.clone());
        store.append(append(0, &["1"])).unwrap();
        assert!(must_reopen(&store.append(append(1, &["2", "3", "4"]))));
        drop(store);
        let store = FaultyStore::new(open(), faults);
        let (texts, stopped) = read(&store);
        assert_eq!(texts, ["1", "2"]);
        let at = Version(3);
        assert!(matches!(stopped, Some(StoreError::Damaged { version, .. }) if version == at));
    });
}

#[test]
fn a_stalled_store_answers_in_order_when_the_stall_ends() {
    on_each(|open| {
        let store = FaultyStore::new(open(), Faults::none().at_append(2, Fault::Stall));
        let answers = Arc::new(Mutex::new(vec![]));
        for n in 0..4_u64 {
            let answers = Arc::clone(&answers);
            let done = move |result: Result<Vec<Version>, AppendError>| {
                answers.lock().unwrap().push((n, result.is_ok()));
            };
            store.submit(append(n, &["x"]), Box::new(done));
        }
        assert_eq!(store.waiting(), 3);
        store.resume();
        assert_eq!(store.waiting(), 0);
        // This append comes after those that were submitted before it.
        store.append(append(4, &["x"])).unwrap();
        let expected = [(0, true), (1, true), (2, true), (3, true)];
        assert_eq!(*answers.lock().unwrap(), expected);
    });
}

#[test]
fn a_read_fails_as_scripted() {
    on_each(|open| {
        let error = StoreError::ReadOnly { path: Path::new("there").to_owned() };
        let store = FaultyStore::new(open(), Faults::none().at_read(2, error));
        assert!(store.read(&job(), Version::EMPTY).is_ok());
        assert!(store.read(&job(), Version::EMPTY).is_err());
        assert!(store.read(&job(), Version::EMPTY).is_ok());
    });
}

/// Whether the store answers an empty question.
fn is_reached(store: &dyn Store) -> bool {
    let (sender, receiver) = mpsc::channel();
    let done = move |found: Result<Findings, StoreError>| sender.send(found.is_ok()).unwrap();
    store.ask(Question::default(), Box::new(done));
    receiver.recv().unwrap()
}

#[test]
fn an_append_whose_answer_is_lost_can_be_repeated_after_a_question_without_duplicates() {
    for stored in [false, true] {
        on_each(|open| {
            let outage = Fault::Outage { stored, questions: 2 };
            let store = FaultyStore::new(open(), Faults::none().at_append(2, outage));
            store.append(append(0, &["1"])).unwrap();
            let unreachable = |result: Result<Vec<Version>, AppendError>| {
                assert_eq!(result.unwrap_err().code(), "store-unreachable");
            };
            unreachable(store.append(append(1, &["2"])));
            unreachable(store.append(append(1, &["2"])));
            assert!(store.head(&job()).is_err());
            assert!(!is_reached(&store));
            assert!(!is_reached(&store));
            unreachable(store.append(append(1, &["2"])));
            assert!(is_reached(&store));
            let again = store.append(append(1, &["2"]));
            assert_eq!(again.map_err(|error| error.code()).is_err(), stored);
            assert_eq!(read(&store).0, ["1", "2"]);
            store.append(append(2, &["3"])).unwrap();
        });
    }
}
