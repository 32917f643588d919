//! Records of breakers as they were written: every one stays readable, and means what it meant.

use std::path::Path;

use proptest::prelude::*;
use undaunted_engine::breaker::{BreakerRecord, BreakerState, Change, Probe};
use undaunted_engine::event::{FORMAT, RecordError};
use undaunted_policy::{Breaker, BreakerSettings, Phase, WhenOpen};

use crate::golden::{Cbor, NULL, file, golden, tree};
use crate::scene::{at, secs};

/// The record of each golden file, by its name.
fn records() -> Vec<(String, BreakerRecord)> {
    let closed = |failures| Phase::Closed { failures };
    let open = Phase::Open {
        since: at(5),
        until: at(65),
    };
    let half_open = |successes, probing| Phase::HalfOpen { successes, probing };
    let records = [
        (Change::Configured, closed(0)),
        (Change::Failed, closed(4)),
        (Change::Succeeded, closed(0)),
        (Change::Opened, open),
        (Change::Tripped, open),
        (Change::HalfOpened, half_open(0, true)),
        (Change::Probed, half_open(1, true)),
        (Change::ProbeSucceeded, half_open(2, false)),
        (Change::ProbeLost, half_open(1, false)),
        (Change::Closed, closed(0)),
        (Change::Reset, closed(0)),
    ];
    let records = records.map(|(change, phase)| {
        let by_hand = matches!(change, Change::Tripped | Change::Reset);
        let probing = matches!(phase, Phase::HalfOpen { probing: true, .. });
        let record = BreakerRecord {
            at: at(5),
            change,
            job: (!by_hand).then(|| "7f3k".to_owned()),
            state: BreakerState {
                settings: BreakerSettings {
                    failure_threshold: 5,
                    recovery_timeout: secs(60),
                    half_open_max_calls: 3,
                    when_open: if by_hand {
                        WhenOpen::Fail
                    } else {
                        WhenOpen::Hold
                    },
                    max_hold: (change == Change::Configured).then(|| secs(600)),
                },
                breaker: Breaker::restored(phase, 300),
                probe: probing.then(|| Probe {
                    job: "7f3k".to_owned(),
                    since: at(4),
                }),
            },
        };
        (format!("breaker_record_{}", change.word()), record)
    });
    records.into()
}

#[test]
fn every_record_of_a_breaker_is_read_and_written_as_ever() {
    for (name, record) in records() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let held = std::fs::read_to_string(folder.join(format!("{name}.hex")));
        assert_eq!(
            held.unwrap_or_default(),
            file(&name, &record.encode()),
            "{name}.hex differs"
        );
        let bytes = golden(&name);
        assert_eq!(BreakerRecord::decode(&bytes).as_ref(), Ok(&record));
        assert_eq!(record.encode(), bytes, "{name}");
    }
}

#[test]
fn no_change_of_a_breaker_is_forgotten() {
    let numbers = records().into_iter().map(|(name, _)| {
        let mut found = tree(&golden(&name)[1..]);
        match found.at(&[1]) {
            Cbor::Plain(number) => number.clone(),
            Cbor::List(list) => match &list[0] {
                Cbor::Plain(number) => number.clone(),
                Cbor::List(_) => panic!("{list:?}"),
            },
        }
    });
    let numbers: Vec<Vec<u8>> = numbers.collect();
    let all: Vec<Vec<u8>> = (0_u8..11)
        .map(|number| minicbor::to_vec(number).unwrap())
        .collect();
    assert_eq!(numbers, all);
}

#[test]
fn a_record_that_lacks_a_field_is_read_without_it_or_refused() {
    for (name, record) in records() {
        for (path, optional) in [
            (&[0][..], false),
            (&[1], false),
            (&[2], true),
            (&[3], false),
            (&[3, 0], false),
            (&[3, 1], false),
            (&[3, 2], false),
            (&[3, 3], false),
            (&[4], false),
            (&[5], false),
        ] {
            let mut lacking = tree(&golden(&name)[1..]);
            *lacking.at(path) = Cbor::Plain(vec![NULL]);
            let mut bytes = vec![FORMAT];
            lacking.write(&mut bytes);
            let found = BreakerRecord::decode(&bytes);
            if optional {
                let mut expected = record.clone();
                expected.job = None;
                assert_eq!(found, Ok(expected), "{name}");
            } else {
                assert!(
                    matches!(found, Err(RecordError::Malformed { .. })),
                    "{name} without {path:?}: {found:?}"
                );
            }
        }
    }
}

#[test]
fn a_record_of_a_newer_release_is_refused() {
    for (name, _) in records() {
        let mut bytes = golden(&name);
        bytes[0] = FORMAT + 1;
        let found = BreakerRecord::decode(&bytes);
        assert_eq!(found, Err(RecordError::Newer { found: FORMAT + 1 }));
    }
}

proptest! {
    #[test]
    fn a_damaged_record_of_a_breaker_is_refused_or_is_another_one(
        which in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let records = records();
        let mut bytes = golden(&which.get(&records).0);
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if let Ok(found) = BreakerRecord::decode(&bytes) {
            prop_assert_eq!(BreakerRecord::decode(&found.encode()), Ok(found));
        }
    }
}
