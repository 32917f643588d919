//! Each law of a breaker, broken on purpose.

use super::*;

const SETTINGS: BreakerSettings = BreakerSettings::DEFAULT;
const NOW: Timestamp = Timestamp::from_millis(1000);

fn open() -> Breaker {
    let mut breaker = Breaker::default();
    breaker.trip(&SETTINGS, NOW);
    breaker
}

fn ticket() -> Ticket {
    match Breaker::default().admit(&SETTINGS, NOW).0 {
        Admission::Go(ticket) => ticket,
        other => unreachable!("{other:?}"),
    }
}

fn observation(before: Breaker, after: Breaker, answer: BreakerOutput) -> BreakerObservation {
    BreakerObservation {
        settings: SETTINGS,
        now: NOW,
        before,
        after,
        answer,
        result: Some((Health::Down, false, false)),
    }
}

#[test]
fn a_start_that_passes_an_open_breaker_is_found() {
    let passed = BreakerOutput::Started(Admission::Go(ticket()), None);
    assert_eq!(
        observation(open(), open(), passed).broken(),
        Some("a start passes unless the breaker is open or probing")
    );
}

#[test]
fn a_closed_breaker_that_holds_is_found() {
    let held = BreakerOutput::Started(Admission::Held { until: None }, None);
    assert_eq!(
        observation(Breaker::default(), Breaker::default(), held).broken(),
        Some("a start passes unless the breaker is open or probing")
    );
}

#[test]
fn a_late_result_that_counts_is_found() {
    let until = NOW.after(SETTINGS.recovery_timeout);
    let opened = BreakerOutput::Ended(Some(Transition::Opened { until }));
    let late = BreakerObservation {
        result: Some((Health::Down, false, true)),
        ..observation(Breaker::default(), open(), opened)
    };
    let law = "a result from before an opening changes nothing";
    assert_eq!(late.broken(), Some(law));
}

#[test]
fn an_opening_by_a_good_result_or_for_another_time_is_found() {
    let until = NOW.after(SETTINGS.recovery_timeout);
    let law = Some("a result opens when bad, closes when good");
    let good = BreakerObservation {
        result: Some((Health::Up, false, false)),
        ..observation(Breaker::default(), open(), BreakerOutput::Ended(Some(Transition::Opened { until })))
    };
    assert_eq!(good.broken(), law);
    let early = BreakerOutput::Ended(Some(Transition::Opened { until: NOW }));
    assert_eq!(observation(Breaker::default(), open(), early).broken(), law);
}

#[test]
fn a_failure_that_is_not_counted_is_found() {
    let ignored = BreakerOutput::Ended(None);
    assert_eq!(
        observation(Breaker::default(), Breaker::default(), ignored).broken(),
        Some("a closed breaker counts failures in a row up to its threshold")
    );
}

#[test]
fn a_trip_that_opens_nothing_is_found() {
    let until = NOW.after(SETTINGS.recovery_timeout);
    let tripped = BreakerOutput::Tripped(Transition::Opened { until });
    let idle = observation(Breaker::default(), Breaker::default(), tripped);
    assert_eq!(idle.broken(), Some("a trip opens"));
    assert_eq!(observation(Breaker::default(), open(), tripped).broken(), None);
}
