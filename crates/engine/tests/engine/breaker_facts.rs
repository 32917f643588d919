//! Which facts a breaker counts, and that equal results may be combined into one fact.

use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use undaunted_engine::breaker::{
    AdmissionControl, BreakerChange, BreakerChangeKind, BreakerFact, BreakerRecord, BreakerReport,
    BreakerState, TargetSignal,
};
use undaunted_policy::{Breaker, BreakerSettings, CircuitState, Ticket, Timestamp};

use crate::fixture::{T0, at, secs};

const NAME: &str = "payments";

/// Opens after three failures for a minute, closes after two successes.
const SETTINGS: BreakerSettings =
    BreakerSettings { failure_threshold: 3, half_open_max_calls: 2, ..BreakerSettings::DEFAULT };

fn ended(generation: u32, probe: bool, signal: TargetSignal) -> BreakerReport {
    BreakerReport::Ended { breaker: Arc::from(NAME), ticket: Ticket::restored(generation, probe), signal }
}

fn started(generation: u32) -> BreakerReport {
    BreakerReport::Started { breaker: Arc::from(NAME), ticket: Ticket::restored(generation, true) }
}

/// The facts of one commit of a job with these reports.
fn facts_of(state: BreakerState, reports: &[(Timestamp, BreakerReport)]) -> Vec<BreakerFact> {
    let (name, job) = (Arc::from(NAME), Arc::from("7f3k"));
    let mut admission = AdmissionControl::default();
    admission.load(&name, state.into());
    for (now, report) in reports {
        admission.tick(*now);
        admission.report(&job, report);
    }
    let record = admission.seal(NAME, &job, 1);
    let facts = record.map_or_else(Vec::new, |record| record.facts);
    // A breaker without a journal is configured first.
    facts.into_iter().skip(1).collect()
}

fn reported(at: Timestamp, generation: u32, probe: bool, signal: TargetSignal, many: u32) -> BreakerFact {
    BreakerFact::Reported { at, generation, probe, signal, many }
}

fn single(now: Timestamp, report: &BreakerReport) -> BreakerFact {
    match report {
        BreakerReport::Started { ticket, .. } => {
            BreakerFact::Probed { at: now, generation: ticket.generation() }
        }
        BreakerReport::Ended { ticket, signal, .. } => {
            reported(now, ticket.generation(), ticket.probe, *signal, 1)
        }
    }
}

fn by_job(facts: Vec<BreakerFact>) -> BreakerRecord {
    BreakerRecord { job: Some("7f3k".to_owned()), seq: Some(1), facts }
}

/// A breaker in this state that has opened once.
fn in_phase(phase: CircuitState) -> BreakerState {
    BreakerState { breaker: Breaker::restored(phase, 1), ..BreakerState::with_settings(SETTINGS) }
}

fn phases() -> [CircuitState; 4] {
    let half_open = |probing| CircuitState::HalfOpen { successes: 1, probing };
    let (since, until) = (T0, at(60));
    [
        CircuitState::Closed { failures: 2 },
        CircuitState::Open { since, until },
        half_open(true),
        half_open(false),
    ]
}

#[test]
fn equal_successes_are_one_fact() {
    let up = ended(0, false, TargetSignal::Up);
    let reports: Vec<_> = (0..1000).map(|it| (at(it), up.clone())).collect();
    assert_eq!(
        facts_of(BreakerState::with_settings(SETTINGS), &reports),
        [reported(at(999), 0, false, TargetSignal::Up, 1000)]
    );
}

#[test]
fn failures_are_one_fact_only_at_the_same_instant() {
    let down = ended(0, false, TargetSignal::Down);
    let reports = [0, 0, 1].map(|it| (at(it), down.clone()));
    let facts = facts_of(BreakerState::with_settings(SETTINGS), &reports);
    assert_eq!(
        facts,
        [reported(at(0), 0, false, TargetSignal::Down, 2), reported(at(1), 0, false, TargetSignal::Down, 1)]
    );
    // The time of the last failure is that of the opening.
    let mut state = BreakerState::with_settings(SETTINGS);
    let changes = state.apply(&by_job(facts));
    assert_eq!(changes.last().map(|it| it.failures), Some(3));
    assert_eq!(state.until(), Some(at(61)));
}

#[test]
fn results_of_other_generations_of_probes_and_with_other_signals_are_separate_facts() {
    let reports = [
        ended(1, false, TargetSignal::Up),
        ended(0, false, TargetSignal::Up),
        ended(0, true, TargetSignal::Up),
        ended(0, true, TargetSignal::Up),
        ended(0, false, TargetSignal::Unknown),
        ended(0, false, TargetSignal::Up),
    ];
    let reports = reports.map(|report| (at(1), report));
    let facts = facts_of(BreakerState::with_settings(SETTINGS), &reports);
    let singles: Vec<BreakerFact> = reports.iter().map(|(now, it)| single(*now, it)).collect();
    assert_eq!(facts, singles);
}

#[test]
fn a_start_that_is_no_probe_is_no_fact() {
    let report = BreakerReport::Started { breaker: Arc::from(NAME), ticket: Ticket::restored(0, false) };
    assert_eq!(facts_of(BreakerState::with_settings(SETTINGS), &[(T0, report)]), []);
}

fn signal() -> impl Strategy<Value = TargetSignal> {
    prop_oneof![
        4 => Just(TargetSignal::Up),
        6 => Just(TargetSignal::Down),
        2 => Just(TargetSignal::Unknown),
        1 => Just(TargetSignal::Trip),
    ]
}

/// A report, and the time since the previous one.
fn report() -> impl Strategy<Value = (u64, BreakerReport)> {
    let generation = 0_u32..4;
    let end = (generation.clone(), prop::bool::weighted(0.3), signal());
    let report = prop_oneof![
        6 => end.prop_map(|(generation, probe, signal)| ended(generation, probe, signal)),
        1 => generation.prop_map(started),
    ];
    (prop_oneof![3 => Just(0), 1 => 1_u64..30_000], report)
}

fn transitions(changes: Vec<BreakerChange>) -> Vec<BreakerChange> {
    let changes = changes.into_iter();
    changes.filter(|it| it.change.is_transition()).collect()
}

proptest! {
    #[test]
    fn combined_facts_fold_to_the_state_of_single_ones(
        phase in prop::sample::select(phases().to_vec()),
        reports in vec(report(), 0..40),
    ) {
        let mut now = T0;
        let mut timed = Vec::new();
        for (later, report) in reports {
            now = now.after(Duration::from_millis(later));
            timed.push((now, report));
        }
        let mut expected = in_phase(phase);
        let mut changes = Vec::new();
        for (now, report) in &timed {
            changes.extend(expected.apply(&by_job(vec![single(*now, report)])));
        }
        let facts = facts_of(in_phase(phase), &timed);
        prop_assert!(facts.len() <= timed.len());
        let record = by_job(facts);
        let read = BreakerRecord::decode(&record.encode()).unwrap();
        let mut found = in_phase(phase);
        let coalesced = found.apply(&read);
        prop_assert_eq!(found, expected);
        prop_assert_eq!(transitions(coalesced), transitions(changes));
    }
}

#[test]
fn results_of_starts_from_before_the_last_opening_are_ignored() {
    for phase in phases() {
        for signal in [TargetSignal::Up, TargetSignal::Down, TargetSignal::Unknown, TargetSignal::Trip] {
            for probe in [false, true] {
                let mut state = in_phase(phase);
                let result = reported(at(9), 0, probe, signal, 5);
                assert_eq!(state.apply(&by_job(vec![result])), [], "{phase:?} {signal:?}");
                assert_eq!(state, in_phase(phase));
            }
        }
    }
}

#[test]
fn probes_of_older_generations_and_of_a_closed_breaker_are_ignored() {
    let probed = |generation| by_job(vec![BreakerFact::Probed { at: at(9), generation }]);
    let lost = |generation| by_job(vec![BreakerFact::ProbeLost { at: at(9), generation }]);
    for phase in phases() {
        let mut state = in_phase(phase);
        assert_eq!(state.apply(&probed(0)), [], "{phase:?}");
        assert_eq!(state.apply(&lost(0)), [], "{phase:?}");
        assert_eq!(state, in_phase(phase));
    }
    let mut closed = in_phase(CircuitState::default());
    assert_eq!(closed.apply(&probed(1)), []);
    assert_eq!(closed, in_phase(CircuitState::default()));
}

#[test]
fn the_result_of_a_probe_that_was_given_up_is_ignored() {
    let mut state = in_phase(phases()[1]);
    let generation = 1;
    let probed = state.apply(&by_job(vec![BreakerFact::Probed { at: at(60), generation }]));
    assert_eq!(probed[0].change, BreakerChangeKind::HalfOpened);
    assert_eq!(state.probe.as_ref().unwrap().job, "7f3k");
    assert_eq!(state.overdue_probe(at(119)), None);
    assert!(state.overdue_probe(at(120)).is_some());
    let lost = BreakerFact::ProbeLost { at: at(120), generation };
    let changes = state.apply(&BreakerRecord::by_hand(vec![lost.clone()]));
    assert_eq!(changes[0].change, BreakerChangeKind::ProbeLost);
    assert!(!state.is_probing() && state.is_open_or_half_open() && state.probe.is_none());
    let given_up = state.clone();
    let late = reported(at(121), generation, true, TargetSignal::Up, 1);
    assert_eq!(state.apply(&by_job(vec![late, lost])), []);
    assert_eq!(state, given_up);
}

#[test]
fn an_opening_records_the_failures_in_a_row_or_none_for_a_failed_probe() {
    let mut state = BreakerState::with_settings(SETTINGS);
    let down =
        |generation, probe, many| by_job(vec![reported(at(1), generation, probe, TargetSignal::Down, many)]);
    let opened = state.apply(&down(0, false, 7)).pop().unwrap();
    assert_eq!((opened.change, opened.failures), (BreakerChangeKind::Opened, 3));
    let _ = state.apply(&by_job(vec![BreakerFact::Probed { at: at(61), generation: 1 }]));
    let opened = state.apply(&down(1, true, 1)).pop().unwrap();
    assert_eq!((opened.change, opened.failures), (BreakerChangeKind::Opened, 0));
    let tripped = state.apply(&BreakerRecord::by_hand(vec![BreakerFact::Tripped { at: at(90) }]));
    assert_eq!((tripped[0].change, tripped[0].failures), (BreakerChangeKind::Tripped, 0));
    assert_eq!(state.until(), Some(at(150)));
    // A threshold that was lowered meanwhile opens with the next failure.
    let mut state = BreakerState::with_settings(BreakerSettings { failure_threshold: 9, ..SETTINGS });
    let _ = state.apply(&down(0, false, 6));
    let settings = SETTINGS;
    let _ = state.apply(&by_job(vec![BreakerFact::Configured { at: at(2), settings }]));
    let opened = state.apply(&down(0, false, 1)).pop().unwrap();
    assert_eq!((opened.change, opened.failures), (BreakerChangeKind::Opened, 7));
}

#[test]
fn an_imported_breaker_is_open_and_ignores_older_results() {
    let mut state = BreakerState::with_settings(SETTINGS);
    let (since, until) = (at(1), at(500));
    let changes = state.apply(&by_job(vec![BreakerFact::Imported { since, until }]));
    assert_eq!((changes[0].at, changes[0].change), (since, BreakerChangeKind::Tripped));
    assert_eq!((state.until(), state.breaker.generation()), (Some(until), 1));
    let up = reported(at(2), 0, false, TargetSignal::Up, 1);
    assert_eq!(state.apply(&by_job(vec![up])), []);
}

#[test]
fn a_huge_count_of_failures_is_folded_quickly() {
    let settings = BreakerSettings { failure_threshold: u32::MAX, recovery_timeout: secs(60), ..SETTINGS };
    let mut state = BreakerState::with_settings(settings);
    for signal in [TargetSignal::Down, TargetSignal::Up, TargetSignal::Unknown, TargetSignal::Down] {
        let _ = state.apply(&by_job(vec![reported(at(1), 0, false, signal, u32::MAX)]));
    }
    assert_eq!(state.failures(), 1 << 20);
}
