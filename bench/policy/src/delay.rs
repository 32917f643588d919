//! One delay with jitter: exponential with base 2 from 100 ms, capped at 30 s.
//!
//! All contestants compute the delay of retry 5. Undaunted's is a function of the retry number. The peers are
//! iterators, which are created beforehand; one `next()` is timed. An iterator advances, so it is configured to
//! stay where each step costs as much as the step to retry 5. Otherwise it soon reaches its cap, where most save
//! a multiplication: that is a separate group. tower's backoff returns a timer instead of a delay and is left out.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use failsafe::backoff::{equal_jittered, full_jittered};
use tokio_retry::strategy;
use undaunted_policy::{Draws, JitterMode, Pace, PolicyError, RetryConfig, Seed};

use crate::contestant::{Contestant, Group, Role, Target, repeat};

pub(crate) const FIRST: Duration = Duration::from_millis(100);
pub(crate) const CAP: Duration = Duration::from_secs(30);
/// The delay before retry 5.
const FIFTH: Duration = Duration::from_millis(1600);
const RETRY: NonZeroU32 = NonZeroU32::new(5).unwrap();

const FAR: NonZeroU32 = NonZeroU32::new(50).unwrap();

/// At retry 5.
pub(crate) fn group() -> Result<Group, PolicyError> {
    let mut contestants = Vec::from(ours()?);
    contestants.extend(variants()?);
    contestants.extend([backon(), tokio_retry(), exponential_backoff()]);
    contestants.extend(failsafe());
    Ok(Group {
        name: "delay",
        about: "one delay with jitter: exponential with base 2 from 100 ms, capped at 30 s, at retry 5",
        target: Some(Target::OfCheapestPeer(0.5)),
        left_out: "tower's backoff returns a timer instead of a delay",
        contestants,
    })
}

/// At retry 50, past the cap.
pub(crate) fn capped() -> Result<Group, PolicyError> {
    let mut contestants = vec![
        Contestant::new(
            Role::Variant,
            "undaunted, full jitter",
            "`Pace::delay` at retry 50",
            asked(pace(2.0, JitterMode::Full)?, FAR),
        ),
        Contestant::new(
            Role::Variant,
            "undaunted, plus-minus jitter",
            "the same with jitter of ±30 %",
            asked(pace(2.0, JitterMode::PlusMinus)?, FAR),
        ),
    ];
    contestants.extend(capped_peers());
    Ok(Group {
        name: "delay, at the cap",
        about: "the same at retry 50, past the cap of 30 s, where most iterators save a multiplication; it has no target",
        target: None,
        left_out: "tower's backoff returns a timer instead of a delay",
        contestants,
    })
}

pub(crate) fn draws() -> Draws {
    Seed(7).draws(41, 2, 1)
}

fn pace(base: f64, mode: JitterMode) -> Result<Pace, PolicyError> {
    let config = RetryConfig::exponential(base).initial_delay(FIRST).max_delay(CAP).jitter(mode);
    Ok(config.build()?.terms().pace().clone())
}

/// The arguments of `Pace::delay`, behind one opaque reference like the peers' iterators, so that the
/// compiler knows nothing of them.
struct Question {
    pace: Pace,
    retry: NonZeroU32,
    draws: Draws,
}

impl Question {
    fn answer(&self) -> Duration {
        self.pace.delay(self.retry, None, self.draws).drawn
    }
}

fn asked(pace: Pace, retry: NonZeroU32) -> impl FnMut(u64) -> Duration {
    let draws = draws();
    let question = Question { pace, retry, draws };
    move |n| repeat(n, || black_box(&question).answer())
}

fn ours() -> Result<[Contestant; 2], PolicyError> {
    Ok([
        Contestant::new(
            Role::Ours,
            "undaunted, full jitter",
            "`Pace::delay` at retry 5",
            asked(pace(2.0, JitterMode::Full)?, RETRY),
        ),
        Contestant::new(
            Role::Ours,
            "undaunted, plus-minus jitter",
            "the same with jitter of ±30 %",
            asked(pace(2.0, JitterMode::PlusMinus)?, RETRY),
        ),
    ])
}

fn variants() -> Result<[Contestant; 3], PolicyError> {
    let hashed = pace(2.0, JitterMode::Full)?;
    let chained = hashed.clone();
    Ok([
        Contestant::new(
            Role::Variant,
            "undaunted, from the seed",
            "full jitter, including the hash of seed, item, command and round, which is otherwise computed once per round",
            move |n| {
                let places = (Seed(7), 41, 2, 1);
                repeat(n, || {
                    let (seed, item, command, round) = *black_box(&places);
                    let draws = seed.draws(item, command, round);
                    black_box(&hashed).delay(RETRY, None, draws).drawn
                })
            },
        ),
        Contestant::new(
            Role::Variant,
            "undaunted, dependent calls",
            "full jitter, where each call depends on the result of the one before, as with a stateful generator",
            move |n| {
                // Opaque, so that the compiler does not know that the previous result changes nothing.
                let (nothing, draws) = (black_box(0), black_box(draws()));
                let mut before = 0;
                repeat(n, || {
                    let retry = RETRY | (before & nothing);
                    let delay = black_box(&chained).delay(retry, None, draws).drawn;
                    before = delay.subsec_nanos();
                    delay
                })
            },
        ),
        Contestant::new(
            Role::Variant,
            "undaunted, base 1.5",
            "full jitter with a base that needs a power function, where the peers multiply their previous value",
            asked(pace(1.5, JitterMode::Full)?, RETRY),
        ),
    ])
}

fn running<I: Iterator>(iterations: u64, mut delays: I) -> Duration {
    repeat(iterations, || black_box(&mut delays).next())
}

const BACKON: ExponentialBuilder =
    ExponentialBuilder::new().with_jitter().with_max_delay(CAP).without_max_times();

fn backon() -> Contestant {
    Contestant::new(
        Role::Peer,
        "backon",
        "`ExponentialBackoff::next`; a factor of 1 keeps it at 1.6 s, including the multiplication",
        |n| running(n, BACKON.with_factor(1.0).with_min_delay(FIFTH).build()),
    )
}

fn tokio_retry() -> Contestant {
    Contestant::new(
        Role::Peer,
        "tokio-retry",
        "`ExponentialBackoff::next` and `jitter`; a base of 1 keeps it at 1.6 s, including the multiplications",
        |n| {
            let delays = strategy::ExponentialBackoff::from_millis(1).factor(1600);
            running(n, delays.max_delay(CAP).map(strategy::jitter))
        },
    )
}

fn exponential_backoff() -> Contestant {
    let backoff = exponential_backoff::Backoff::new(u32::MAX, FIRST, CAP);
    Contestant::new(
        Role::Peer,
        "exponential-backoff",
        "`IntoIter::next` on a copy positioned before retry 5; copying repeats its draw, which makes it look faster",
        move |n| {
            let mut delays = backoff.iter();
            let _ = delays.nth(3);
            repeat(n, || black_box(&delays).clone().next())
        },
    )
}

/// failsafe's minimum initial delay is 1 s, so retry 5 has a delay of 16 s.
fn failsafe() -> [Contestant; 2] {
    const FIFTH: Duration = Duration::from_secs(16);
    [
        Contestant::new(
            Role::Peer,
            "failsafe, full jitter",
            "`FullJittered::next` at 16 s, which is retry 5 from 1 s (its minimum), in whole seconds",
            |n| running(n, full_jittered(FIFTH, FIFTH)),
        ),
        Contestant::new(Role::Peer, "failsafe, equal jitter", "the same for `EqualJittered`", |n| {
            running(n, equal_jittered(FIFTH, FIFTH))
        }),
    ]
}

fn capped_peers() -> [Contestant; 5] {
    let backoff = exponential_backoff::Backoff::new(u32::MAX, FIRST, CAP);
    [
        Contestant::new(Role::Peer, "backon", "`ExponentialBackoff::next`", |n| {
            running(n, BACKON.with_factor(2.0).with_min_delay(FIRST).build())
        }),
        Contestant::new(Role::Peer, "tokio-retry", "`ExponentialBackoff::next` and `jitter`", |n| {
            let delays = strategy::ExponentialBackoff::from_millis(2).factor(50);
            running(n, delays.max_delay(CAP).map(strategy::jitter))
        }),
        Contestant::new(Role::Peer, "exponential-backoff", "`IntoIter::next`", move |n| {
            running(n, backoff.iter())
        }),
        Contestant::new(
            Role::Peer,
            "failsafe, full jitter",
            "`FullJittered::next`, in whole seconds; it rejects 3 % of its random numbers here, and nearly half at 16 s",
            |n| running(n, full_jittered(CAP, CAP)),
        ),
        Contestant::new(Role::Peer, "failsafe, equal jitter", "the same for `EqualJittered`", |n| {
            running(n, equal_jittered(CAP, CAP))
        }),
    ]
}
