//! The first 100 delays of a policy, in order.
//!
//! A simulation or a preview needs them. The creation of the iterator is included for all contestants.
//! Undaunted's returns a verdict for each retry, with the sum so far; the peers return delays.

use std::hint::black_box;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio_retry::strategy;
use undaunted_policy::{JitterMode, PolicyError, RetryConfig, Schedule};

use crate::contestant::{Contestant, Group, Role, repeat};
use crate::delay::{CAP, FIRST, draws};

const RETRIES: usize = 100;

pub(crate) fn group() -> Result<Group, PolicyError> {
    let policy = RetryConfig::exponential(2.0)
        .unlimited_attempts()
        .initial_delay(FIRST)
        .max_delay(CAP)
        .jitter(JitterMode::Full)
        .build()?;
    let backoff = exponential_backoff::Backoff::new(u32::MAX, FIRST, CAP);
    Ok(Group {
        name: "schedule",
        about: "the first 100 delays with jitter, including the creation of the iterator",
        target: None,
        left_out: "tower's backoff returns timers instead of delays",
        contestants: vec![
            Contestant::new(Role::Variant, "undaunted", "`Schedule`: a verdict for each retry", move |n| {
                repeat(n, || all(Schedule::new(black_box(&policy), draws())))
            }),
            Contestant::new(Role::Peer, "backon", "`ExponentialBuilder`", |n| {
                let builder = ExponentialBuilder::new()
                    .with_jitter()
                    .with_min_delay(FIRST)
                    .with_max_delay(CAP)
                    .without_max_times();
                repeat(n, || all(black_box(builder).build()))
            }),
            Contestant::new(Role::Peer, "tokio-retry", "`ExponentialBackoff` and `jitter`", |n| {
                repeat(n, || {
                    let delays = strategy::ExponentialBackoff::from_millis(black_box(2));
                    all(delays.factor(50).max_delay(CAP).map(strategy::jitter));
                })
            }),
            Contestant::new(Role::Peer, "exponential-backoff", "`Backoff::iter`", move |n| {
                repeat(n, || all(black_box(&backoff).iter()))
            }),
            Contestant::new(Role::Peer, "failsafe", "`full_jittered` from 1 s", |n| {
                let second = Duration::from_secs(1);
                repeat(n, || {
                    all(failsafe::backoff::full_jittered(black_box(second), CAP));
                })
            }),
        ],
    })
}

fn all<I: Iterator>(delays: I) {
    for delay in delays.take(RETRIES) {
        black_box(&delay);
    }
}
