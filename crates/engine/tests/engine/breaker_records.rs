//! Records of breakers as they were written: every one stays readable and keeps its meaning.
//!
//! Format 1 held the whole state and is only read. Format 2 holds facts.

use proptest::prelude::*;
use undaunted_engine::breaker::{
    BreakerChange, BreakerChangeKind, BreakerFact, BreakerRecord, BreakerState, Probe, TargetSignal,
};
use undaunted_engine::event::FORMAT;
use undaunted_policy::{Breaker, BreakerSettings, CircuitState, WhenOpen};

use crate::fixture::{
    BREAKER_FORMAT, Cbor, assert_malformed, at, check_damaged, check_golden, check_refused, golden,
    golden_tree, secs, without_field,
};

fn open() -> CircuitState {
    CircuitState::Open { since: at(5), until: at(65) }
}

fn change(change: BreakerChangeKind, phase: CircuitState) -> BreakerChange {
    let by_hand = matches!(change, BreakerChangeKind::Tripped | BreakerChangeKind::Reset);
    let probing = matches!(phase, CircuitState::HalfOpen { probing: true, .. });
    BreakerChange {
        at: at(5),
        change,
        job: (!by_hand).then(|| "7f3k".to_owned()),
        seq: None,
        failures: 0,
        state: BreakerState {
            settings: BreakerSettings {
                failure_threshold: 5,
                recovery_timeout: secs(60),
                half_open_max_calls: 3,
                when_open: if by_hand { WhenOpen::Fail } else { WhenOpen::Hold },
                max_hold: (change == BreakerChangeKind::Configured).then(|| secs(600)),
            },
            breaker: Breaker::restored(phase, 300),
            probe: probing.then(|| Probe { job: "7f3k".to_owned(), since: at(4) }),
            failures_since: 0,
            last_failure_at: None,
        },
    }
}

/// The change in each golden file of format 1, by file name.
fn states() -> Vec<(String, BreakerChange)> {
    let closed = |failures| CircuitState::Closed { failures };
    let half_open = |successes, probing| CircuitState::HalfOpen { successes, probing };
    let changes = [
        (BreakerChangeKind::Configured, closed(0)),
        (BreakerChangeKind::Failed, closed(4)),
        (BreakerChangeKind::Succeeded, closed(0)),
        (BreakerChangeKind::Opened, open()),
        (BreakerChangeKind::Tripped, open()),
        (BreakerChangeKind::HalfOpened, half_open(0, true)),
        (BreakerChangeKind::Probed, half_open(1, true)),
        (BreakerChangeKind::ProbeSucceeded, half_open(2, false)),
        (BreakerChangeKind::ProbeLost, half_open(1, false)),
        (BreakerChangeKind::Closed, closed(0)),
        (BreakerChangeKind::Reset, closed(0)),
    ];
    let changes = changes.map(|(word, phase)| {
        let name = format!("breaker_record_{}", word.word());
        (name, change(word, phase))
    });
    changes.into()
}

fn read_as(change: &BreakerChange) -> BreakerRecord {
    BreakerRecord {
        job: change.job.clone(),
        seq: None,
        facts: vec![BreakerFact::State(Box::new(change.clone()))],
    }
}

fn reported(signal: TargetSignal, probe: bool, many: u32) -> BreakerFact {
    BreakerFact::Reported { at: at(5), generation: 300, probe, signal, many }
}

/// The record in each golden file of format 2, by fact.
fn facts() -> Vec<(&'static str, BreakerRecord)> {
    let (since, until, generation) = (at(5), at(65), 300);
    let settings = change(BreakerChangeKind::Configured, open()).state.settings;
    let opened = BreakerChange { failures: 5, ..change(BreakerChangeKind::Opened, open()) };
    let probing = CircuitState::HalfOpen { successes: 1, probing: true };
    let probed = change(BreakerChangeKind::HalfOpened, probing);
    let by_job = |facts| BreakerRecord { job: Some("7f3k".to_owned()), seq: Some(1000), facts };
    let by_hand = BreakerRecord::by_hand;
    vec![
        ("configured", by_job(vec![BreakerFact::Configured { at: since, settings }])),
        ("reported_up", by_job(vec![reported(TargetSignal::Up, false, 1000)])),
        ("reported_down", by_job(vec![reported(TargetSignal::Down, false, 2)])),
        ("reported_unknown", by_job(vec![reported(TargetSignal::Unknown, true, 1)])),
        ("reported_trip", by_job(vec![reported(TargetSignal::Trip, false, 1)])),
        ("probed", by_job(vec![BreakerFact::Probed { at: since, generation }])),
        ("probe_lost", by_hand(vec![BreakerFact::ProbeLost { at: since, generation }])),
        ("tripped", by_hand(vec![BreakerFact::Tripped { at: since }])),
        ("reset", by_hand(vec![BreakerFact::Reset { at: since }])),
        ("imported", by_job(vec![BreakerFact::Imported { since, until }])),
        (
            "restored",
            by_hand(vec![BreakerFact::Restored {
                at: since,
                circuit: CircuitState::Open { since, until },
                failures: 6,
                last_failure_at: Some(until),
            }]),
        ),
        ("state", by_job(vec![BreakerFact::State(Box::new(opened.clone()))])),
        (
            "folded",
            by_hand(vec![BreakerFact::Folded {
                upto: 1000,
                state: Box::new(probed.state.clone()),
                history: vec![opened, probed],
            }]),
        ),
        (
            "folded_failures",
            by_hand(vec![BreakerFact::Folded {
                upto: 1000,
                state: Box::new(BreakerState {
                    failures_since: 6,
                    last_failure_at: Some(since),
                    ..change(BreakerChangeKind::Opened, open()).state
                }),
                history: vec![],
            }]),
        ),
        (
            "several",
            by_job(vec![
                reported(TargetSignal::Up, true, 1),
                reported(TargetSignal::Down, false, 3),
                BreakerFact::Probed { at: since, generation },
            ]),
        ),
    ]
}

fn name_of(fact: &str) -> String {
    format!("breaker_fact_{fact}")
}

fn all() -> Vec<(String, BreakerRecord)> {
    let states = states();
    let states = states.iter().map(|(name, it)| (name.clone(), read_as(it)));
    let facts = facts().into_iter();
    let facts = facts.map(|(name, record)| (name_of(name), record));
    states.chain(facts).collect()
}

#[test]
fn every_record_of_facts_is_read_and_written_as_its_golden_record() {
    for (name, record) in facts() {
        check_golden(&name_of(name), &record);
        assert_eq!(record.encode()[0], BREAKER_FORMAT, "{name}");
    }
}

#[test]
fn every_record_of_format_1_is_read_as_its_state() {
    for (name, change) in states() {
        let bytes = golden(&name);
        assert_eq!(bytes[0], FORMAT, "{name}");
        let read = BreakerRecord::decode(&bytes).unwrap();
        assert_eq!(read, read_as(&change), "{name}");
        // The earlier state of the breaker does not matter.
        let tripped = BreakerRecord::by_hand(vec![BreakerFact::Tripped { at: at(1) }]);
        for before in [vec![], vec![tripped]] {
            let mut state = BreakerState::default();
            for record in &before {
                let _ = state.apply(record);
            }
            assert_eq!(state.apply(&read), std::slice::from_ref(&change), "{name}");
            assert_eq!(state, change.state, "{name}");
        }
        let rewritten = read.encode();
        assert_eq!(rewritten[0], BREAKER_FORMAT, "format 1 is not written any more");
        assert_eq!(BreakerRecord::decode(&rewritten), Ok(read));
    }
}

/// The number of a variant.
fn number(found: &Cbor) -> Vec<u8> {
    match found {
        Cbor::Plain(number) => number.clone(),
        Cbor::List(list) => number(&list[0]),
    }
}

fn numbers(count: u8) -> Vec<Vec<u8>> {
    let numbers = (0..count).map(|number| minicbor::to_vec(number).unwrap());
    numbers.collect()
}

#[test]
fn every_change_of_a_breaker_has_a_golden_record() {
    let found = states().into_iter().map(|(name, _)| {
        let mut found = golden_tree(&name);
        number(found.at(&[1]))
    });
    assert_eq!(found.collect::<Vec<_>>(), numbers(11));
}

#[test]
fn every_fact_and_every_signal_has_a_golden_record() {
    let mut kinds = Vec::new();
    let mut signals = Vec::new();
    for (name, _) in facts() {
        let mut found = golden_tree(&name_of(name));
        kinds.push(number(found.at(&[2, 0])));
        if name.starts_with("reported") {
            signals.push(number(found.at(&[2, 0, 1, 3])));
        }
    }
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds, numbers(10));
    assert_eq!(signals, numbers(4));
}

fn is_malformed(name: &str, path: &[usize]) {
    assert_malformed::<BreakerRecord>(&without_field(name, path), name);
}

#[test]
fn a_record_of_format_1_that_lacks_a_field_is_read_without_it_or_refused() {
    for (name, change) in states() {
        for path in [&[0][..], &[1], &[3], &[3, 0], &[3, 1], &[3, 2], &[3, 3], &[4], &[5]] {
            is_malformed(&name, path);
        }
        let by_hand = BreakerChange { job: None, ..change };
        let found = BreakerRecord::decode(&without_field(&name, &[2]));
        assert_eq!(found, Ok(read_as(&by_hand)), "{name}");
    }
}

#[test]
fn a_record_of_facts_that_lacks_a_field_is_read_without_it_or_refused() {
    for (name, record) in facts() {
        let name = name_of(name);
        is_malformed(&name, &[2]);
        for number in 0..record.facts.len() {
            is_malformed(&name, &[2, number]);
            is_malformed(&name, &[2, number, 0]);
            let mut whole = golden_tree(&name);
            let Cbor::List(fields) = whole.at(&[2, number, 1]) else {
                panic!("{name} has no fields");
            };
            let needed = match &record.facts[number] {
                BreakerFact::Restored { .. } => 3,
                _ => fields.len(),
            };
            for field in 0..needed {
                is_malformed(&name, &[2, number, 1, field]);
            }
        }
        let expected = BreakerRecord { job: None, ..record.clone() };
        assert_eq!(BreakerRecord::decode(&without_field(&name, &[0])), Ok(expected));
        let expected = BreakerRecord { seq: None, ..record };
        assert_eq!(BreakerRecord::decode(&without_field(&name, &[1])), Ok(expected));
    }
}

#[test]
fn a_change_without_a_count_of_failures_is_read_with_zero() {
    // Releases that wrote format 1 did not count failures.
    let found = BreakerRecord::decode(&without_field("breaker_fact_state", &[2, 0, 1, 0, 7]));
    let [BreakerFact::State(change)] = &found.unwrap().facts[..] else {
        panic!("no state");
    };
    assert_eq!((change.change, change.failures), (BreakerChangeKind::Opened, 0));
}

#[test]
fn records_of_breakers_that_are_newer_cut_short_or_too_long_are_refused() {
    for (name, _) in all() {
        check_refused::<BreakerRecord>(&name);
    }
}

proptest! {
    #[test]
    fn a_damaged_record_of_a_breaker_is_refused_or_is_another_one(
        which in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        check_damaged::<BreakerRecord>(&which.get(&all()).0, place, byte);
    }

    #[test]
    fn arbitrary_bytes_are_read_as_a_record_of_a_breaker_or_refused(
        format in 0_u8..4,
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let bytes = [&[format], &bytes[..]].concat();
        let _ = BreakerRecord::decode(&bytes);
    }
}
