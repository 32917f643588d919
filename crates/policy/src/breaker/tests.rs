//! Tests of the breaker: when it opens, probes and closes.

use proptest::prelude::*;

use super::*;

const SETTINGS: BreakerSettings = BreakerSettings::DEFAULT;

fn second(n: u64) -> Timestamp {
    Timestamp::from_millis(n * 1000)
}

fn go(breaker: &mut Breaker, now: Timestamp) -> Ticket {
    match breaker.admit(&SETTINGS, now).0 {
        Admission::Go(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

fn opened(at: Timestamp) -> Breaker {
    let mut breaker = Breaker::default();
    for _ in 0..SETTINGS.failure_threshold {
        let ticket = go(&mut breaker, at);
        breaker.report(&SETTINGS, ticket, Health::Down, at);
    }
    breaker
}

#[test]
fn five_failures_in_a_row_open_it_for_a_minute() {
    let mut breaker = Breaker::default();
    for failure in 1..=5 {
        let ticket = go(&mut breaker, second(failure));
        let transition = breaker.report(&SETTINGS, ticket, Health::Down, second(failure));
        let until = second(65);
        assert_eq!(transition, (failure == 5).then_some(Transition::Opened { until }));
    }
    let held = Admission::Held { until: Some(second(65)) };
    assert_eq!(breaker.admit(&SETTINGS, second(64)), (held, None));
}

#[test]
fn a_success_between_failures_starts_the_count_again() {
    let mut breaker = Breaker::default();
    for health in [Health::Down, Health::Down, Health::Down, Health::Down, Health::Up] {
        let ticket = go(&mut breaker, second(1));
        breaker.report(&SETTINGS, ticket, health, second(1));
    }
    assert_eq!(breaker.circuit(), CircuitState::Closed { failures: 0 });
    let ticket = go(&mut breaker, second(1));
    breaker.report(&SETTINGS, ticket, Health::Unknown, second(1));
    assert_eq!(breaker.circuit(), CircuitState::Closed { failures: 0 });
}

#[test]
fn one_probe_at_a_time_and_three_successes_close_it() {
    let mut breaker = opened(second(0));
    for success in 1..=3 {
        let now = second(60 + success);
        let (admission, transition) = breaker.admit(&SETTINGS, now);
        assert_eq!(transition, (success == 1).then_some(Transition::HalfOpened));
        let Admission::Go(ticket) = admission else { panic!("{admission:?}") };
        assert!(ticket.probe);
        let waiting = breaker.admit(&SETTINGS, now).0;
        assert_eq!(waiting, Admission::Held { until: None });
        let transition = breaker.report(&SETTINGS, ticket, Health::Up, now);
        assert_eq!(transition, (success == 3).then_some(Transition::Closed));
    }
    assert!(!go(&mut breaker, second(64)).probe);
}

#[test]
fn one_failed_probe_opens_it_for_another_full_timeout() {
    let mut breaker = opened(second(0));
    let ticket = go(&mut breaker, second(100));
    let reopened = breaker.report(&SETTINGS, ticket, Health::Down, second(101));
    assert_eq!(reopened, Some(Transition::Opened { until: second(161) }));
}

#[test]
fn a_probe_with_an_unknown_result_lets_the_next_one_start() {
    let mut breaker = opened(second(0));
    let ticket = go(&mut breaker, second(60));
    breaker.report(&SETTINGS, ticket, Health::Unknown, second(61));
    assert!(go(&mut breaker, second(61)).probe);
}

#[test]
fn results_of_starts_from_before_the_opening_are_ignored() {
    let mut breaker = Breaker::default();
    let early = go(&mut breaker, second(0));
    for _ in 0..5 {
        let ticket = go(&mut breaker, second(0));
        breaker.report(&SETTINGS, ticket, Health::Down, second(0));
    }
    let probe = go(&mut breaker, second(60));
    for health in [Health::Up, Health::Down, Health::Unknown] {
        let before = breaker;
        assert_eq!(breaker.report(&SETTINGS, early, health, second(60)), None);
        assert_eq!(breaker, before);
    }
    breaker.report(&SETTINGS, probe, Health::Up, second(60));
    assert_eq!(breaker.circuit(), CircuitState::HalfOpen { successes: 1, probing: false });
}

#[test]
fn fail_refuses_where_hold_waits() {
    let mut breaker = opened(second(0));
    let fail = BreakerSettings { when_open: WhenOpen::Fail, ..SETTINGS };
    assert_eq!(breaker.admit(&fail, second(1)).0, Admission::Refused);
}

#[test]
fn each_failure_tells_whether_its_target_is_up() {
    use FailureClass::{Permanent, Throttled, Transient};
    for (cause, class, health) in [
        (FailureCause::Exit(1), Transient, Health::Down),
        (FailureCause::Timeout, Transient, Health::Down),
        (FailureCause::Network, Transient, Health::Down),
        (FailureCause::Status(503), Transient, Health::Down),
        (FailureCause::Status(503), Throttled, Health::Down),
        (FailureCause::Status(429), Throttled, Health::Down),
        (FailureCause::Status(404), Permanent, Health::Up),
        (FailureCause::Refused, Permanent, Health::Up),
        (FailureCause::Unreadable, Permanent, Health::Up),
        (FailureCause::Timeout, Permanent, Health::Down),
        (FailureCause::Status(500), Permanent, Health::Down),
        (FailureCause::Exit(127), Permanent, Health::Unknown),
        (FailureCause::Exit(1), Permanent, Health::Down),
        (FailureCause::Other(Permanent), Permanent, Health::Unknown),
        (FailureCause::Interrupted, Transient, Health::Unknown),
    ] {
        assert_eq!(Health::of_failure(cause, class), health, "{cause:?} {class:?}");
    }
}

#[derive(Clone, Copy, Debug)]
enum BreakerInput {
    Start,
    End(usize, Health),
    Pass(u64),
    Trip,
    Reset,
}

fn step() -> impl Strategy<Value = BreakerInput> {
    let health = prop_oneof![Just(Health::Up), Just(Health::Down), Just(Health::Unknown)];
    prop_oneof![
        4 => Just(BreakerInput::Start),
        4 => (0_usize..8, health).prop_map(|(which, health)| BreakerInput::End(which, health)),
        2 => (0_u64..40).prop_map(BreakerInput::Pass),
        1 => Just(BreakerInput::Trip),
        1 => Just(BreakerInput::Reset),
    ]
}

proptest! {
    #[test]
    fn an_open_breaker_admits_no_start_and_one_probe_runs_at_a_time(
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut breaker = Breaker::default();
        let mut now = second(0);
        let mut running: Vec<Ticket> = Vec::new();
        for step in steps {
            let before = breaker;
            match step {
                BreakerInput::Start => {
                    let admission = breaker.admit(&SETTINGS, now).0;
                    if let CircuitState::Open { until, .. } = before.circuit()
                        && now < until
                    {
                        let until = Some(until);
                        prop_assert_eq!(admission, Admission::Held { until });
                    }
                    if let Admission::Go(ticket) = admission {
                        let probes = |t: &&Ticket| t.probe && t.generation == breaker.generation;
                        if ticket.probe {
                            prop_assert_eq!(running.iter().filter(probes).count(), 0);
                        }
                        running.push(ticket);
                    }
                }
                BreakerInput::End(which, health) if which < running.len() => {
                    let ticket = running.swap_remove(which);
                    let transition = breaker.report(&SETTINGS, ticket, health, now);
                    match transition {
                        Some(Transition::Opened { .. }) => prop_assert_eq!(health, Health::Down),
                        Some(Transition::Closed) => prop_assert_eq!(health, Health::Up),
                        Some(Transition::HalfOpened) => prop_assert!(false, "only a start half-opens"),
                        None => {}
                    }
                }
                BreakerInput::End(..) => {}
                BreakerInput::Pass(seconds) => now = now.after(Duration::from_secs(seconds)),
                BreakerInput::Trip => {
                    breaker.trip(&SETTINGS, now);
                }
                BreakerInput::Reset => {
                    breaker.reset();
                }
            }
            if let CircuitState::Closed { failures } = breaker.circuit() {
                prop_assert!(failures < SETTINGS.failure_threshold);
            }
        }
        // From any state, three successful probes an hour later close it.
        now = now.after(Duration::from_hours(1));
        for ticket in running {
            breaker.report(&SETTINGS, ticket, Health::Unknown, now);
        }
        for _ in 0..3 {
            let ticket = go(&mut breaker, now);
            breaker.report(&SETTINGS, ticket, Health::Up, now);
        }
        prop_assert_eq!(breaker.circuit(), CircuitState::default());
    }
}
