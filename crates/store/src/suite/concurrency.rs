//! Promises about concurrent writers and readers.

use std::sync::mpsc;
use std::thread;

use super::Reopenable;
use super::fixture::{ConformanceCheck, conflict, texts, unclaimed, version};
use crate::{AppendError, Store, Version};

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ("threads with their own journals never conflict", own_journals),
    ("of several appends at one version one is accepted", one_wins),
    ("a refused append does not affect others in flight", isolated),
    ("appends of one thread in flight stay in order", many_in_flight),
    ("handles share a journal by retrying conflicts", two_handles),
    ("readers see whole appends", whole_appends),
];

const THREADS: u64 = 8;

fn own_journals(stores: &Reopenable) {
    let store = stores.open();
    let store = &*store;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let id = format!("t{thread}");
                for n in 0..25_u64 {
                    let (text, again) = (format!("{thread}.{n}"), format!("{thread}.{n}+"));
                    store.append(vec![unclaimed(&id, n * 2, &[&text, &again])]).unwrap();
                }
            });
        }
    });
    for thread in 0..THREADS {
        let expected: Vec<String> =
            (0..25_u64).flat_map(|n| [format!("{thread}.{n}"), format!("{thread}.{n}+")]).collect();
        assert_eq!(texts(store, &format!("t{thread}")), expected);
    }
}

fn one_wins(stores: &Reopenable) {
    let store = stores.open();
    let store = &*store;
    for round in 0..10_u64 {
        let won: usize = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| scope.spawn(move || store.append(vec![unclaimed("a", round, &["x"])])))
                .collect();
            let results = threads.into_iter().map(|thread| thread.join().unwrap());
            results
                .map(|result| match result {
                    Ok(_) => 1,
                    lost => {
                        assert_eq!(conflict(lost), round + 1);
                        0
                    }
                })
                .sum()
        });
        assert_eq!(won, 1);
    }
    assert_eq!(version(store, "a"), 10);
}

fn isolated(stores: &Reopenable) {
    let store = stores.open();
    let (sender, receiver) = mpsc::channel();
    for n in 0..200_u64 {
        let sender = sender.clone();
        // Every third submission is refused, and the aggregate it would create must not appear.
        let appends = if n % 3 == 2 {
            vec![unclaimed(&format!("never{n}"), 0, &["x"]), unclaimed("a", 9_999, &[])]
        } else {
            vec![unclaimed(&format!("made{n}"), 0, &["1", "2"])]
        };
        let done = move |result| sender.send((n, result)).unwrap();
        store.submit(appends, Box::new(done));
    }
    drop(sender);
    let mut answers = 0;
    for (n, result) in receiver {
        answers += 1;
        if n % 3 == 2 {
            conflict(result);
        } else {
            result.unwrap();
        }
    }
    assert_eq!(answers, 200);
    assert_eq!(store.list("job", "never").unwrap(), []);
    assert_eq!(store.list("job", "made").unwrap().len(), 134);
}

fn many_in_flight(stores: &Reopenable) {
    let store = stores.open();
    let (sender, receiver) = mpsc::channel();
    for n in 0..300_u64 {
        let sender = sender.clone();
        let done = move |result: Result<Vec<Version>, AppendError>| sender.send((n, result)).unwrap();
        store.submit(vec![unclaimed("a", n, &[&n.to_string()])], Box::new(done));
    }
    drop(sender);
    let order: Vec<u64> = receiver
        .into_iter()
        .map(|(n, result)| {
            result.unwrap();
            n
        })
        .collect();
    assert_eq!(order, (0..300).collect::<Vec<u64>>());
    let expected: Vec<String> = (0..300).map(|n: u64| n.to_string()).collect();
    assert_eq!(texts(&*store, "a"), expected);
}

fn add_by_trying(store: &dyn Store, times: u64) {
    for _ in 0..times {
        let mut at = version(store, "a");
        while let Err(error) = store.append(vec![unclaimed("a", at, &["x"])]) {
            at = conflict(Err(error));
        }
    }
}

fn two_handles(stores: &Reopenable) {
    let (one, other) = (stores.open(), stores.open());
    thread::scope(|scope| {
        for store in [&*one, &*one, &*other, &*other] {
            scope.spawn(move || add_by_trying(store, 20));
        }
    });
    assert_eq!(texts(&*one, "a"), ["x"; 80]);
    assert_eq!(version(&*other, "a"), 80);
}

fn whole_appends(stores: &Reopenable) {
    let (writer, reader) = (stores.open(), stores.open());
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..40_u64 {
                writer.append(vec![unclaimed("a", n * 5, &["x"; 5])]).unwrap();
            }
        });
        loop {
            let seen = texts(&*reader, "a").len();
            assert_eq!(seen % 5, 0, "part of an append was seen");
            if seen == 200 {
                break;
            }
        }
    });
}
