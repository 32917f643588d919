//! Wrapping a call that succeeds: the cost of retrying for calls that need no retry.
//!
//! The call is the same for all contestants: a function that is not inlined and whose result the compiler cannot
//! predict. What a library creates once is created once; what it needs for every call, such as backon's and
//! tokio-retry's iterators, is created for every call. failsafe is a breaker and does not retry; compare it with
//! Undaunted with a breaker. exponential-backoff wraps nothing, and tokio-retry and tower wrap only async calls.

use std::future::{Ready, poll_fn, ready};
use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use backon::{BlockingRetryable, ExponentialBuilder, Retryable};
use failsafe::backoff::Exponential;
use failsafe::failure_policy::ConsecutiveFailures;
use tokio_retry::strategy;
use tower::Service;
use tower::retry::budget::{Budget, TpsBudget};
use undaunted_policy::retry::{Retry, SharedBreaker, SharedPool};
use undaunted_policy::{BreakerSettings, JitterMode, PolicyError, RetryConfig};

use crate::contestant::{Contestant, Group, Role, Target, repeat, repeat_awaiting};
use crate::delay::{CAP, FIRST};

const WITHIN_FIVE_PERCENT: Target = Target::OfCheapestPeer(1.05);
const RETRIES: u32 = 3;
const BACKON: ExponentialBuilder = ExponentialBuilder::new()
    .with_jitter()
    .with_min_delay(FIRST)
    .with_max_delay(CAP)
    .with_max_times(RETRIES as usize);

/// The blocking call.
#[inline(never)]
fn answer_now(question: u64) -> io::Result<u64> {
    match black_box(question) {
        u64::MAX => Err(io::ErrorKind::ConnectionRefused.into()),
        question => Ok(question),
    }
}

/// The async call. It never has to wait, but the compiler does not know that: otherwise it would optimise the
/// futures around the call away, as it cannot for a real call.
async fn answer(question: u64) -> io::Result<u64> {
    poll_fn(|_| match black_box(question) {
        u64::MAX => Poll::Pending,
        question => Poll::Ready(answer_now(question)),
    })
    .await
}

fn config() -> RetryConfig {
    RetryConfig::exponential(2.0)
        .attempts(RETRIES)
        .initial_delay(FIRST)
        .max_delay(CAP)
        .jitter(JitterMode::Full)
}

/// Undaunted in the compared forms: plain, and with each check before a start.
struct Ours {
    plain: Retry,
    pool: Retry,
    deadline: Retry,
    breaker: Retry,
}

impl Ours {
    fn new() -> Result<Self, PolicyError> {
        let plain = Retry::new(config().build()?);
        let hour = Duration::from_hours(1);
        Ok(Self {
            pool: plain.clone().pool(&SharedPool::new(20, 3)),
            deadline: Retry::new(config().deadline(hour).build()?),
            breaker: plain.clone().breaker(&SharedBreaker::new(BreakerSettings::DEFAULT)),
            plain,
        })
    }

    fn awaiting(self) -> [Contestant; 4] {
        self.contestants("`Retry::run`", |retry| {
            Box::new(move |n| {
                repeat_awaiting(n, || {
                    let question = black_box(7);
                    black_box(&retry).run(move || answer(question))
                })
            })
        })
    }

    fn blocking(self) -> [Contestant; 4] {
        self.contestants("`Retry::call`", |retry| {
            Box::new(move |n| {
                repeat(n, || {
                    let question = black_box(7);
                    black_box(&retry).call(|| answer_now(question))
                })
            })
        })
    }

    fn contestants(
        self,
        plain: &'static str,
        time: fn(Retry) -> Box<dyn FnMut(u64) -> Duration>,
    ) -> [Contestant; 4] {
        let deadline = "the same with a deadline, which reads the clock";
        [
            Contestant::new(Role::Ours, "undaunted", plain, time(self.plain)),
            Contestant::new(Role::Variant, "undaunted, pool", "the same with a shared pool", time(self.pool)),
            Contestant::new(Role::Variant, "undaunted, deadline", deadline, time(self.deadline)),
            Contestant::new(
                Role::Variant,
                "undaunted, breaker",
                "the same with a shared breaker",
                time(self.breaker),
            ),
        ]
    }
}

/// Async calls.
pub(crate) fn waiting() -> Result<Group, PolicyError> {
    let mut contestants = vec![Contestant::new(Role::Bare, "the call alone", "without a wrapper", |n| {
        repeat_awaiting(n, || answer(black_box(7)))
    })];
    contestants.extend(Ours::new()?.awaiting());
    contestants.extend(peers_awaiting());
    Ok(Group {
        name: "success, async",
        about: "one async call that succeeds, wrapped",
        target: Some(WITHIN_FIVE_PERCENT),
        left_out: "exponential-backoff wraps no calls",
        contestants,
    })
}

fn peers_awaiting() -> [Contestant; 5] {
    [
        Contestant::new(Role::Peer, "backon", "`Retryable::retry` with a copied `ExponentialBuilder`", |n| {
            repeat_awaiting(n, || {
                let question = black_box(7);
                (move || answer(question)).retry(black_box(&BACKON))
            })
        }),
        Contestant::new(
            Role::Peer,
            "tokio-retry",
            "`Retry::start` with `ExponentialBackoff`, `jitter` and `take`",
            |n| {
                repeat_awaiting(n, || {
                    let question = black_box(7);
                    let delays = strategy::ExponentialBackoff::from_millis(black_box(2));
                    let delays = delays.factor(50).max_delay(CAP).map(strategy::jitter);
                    tokio_retry::Retry::start(delays.take(RETRIES as usize), move || answer(question))
                })
            },
        ),
        Contestant::new(
            Role::Peer,
            "failsafe",
            "`futures::CircuitBreaker::call`, which opens after 5 failures",
            |n| {
                use failsafe::futures::CircuitBreaker;
                let breaker = failsafe_breaker();
                repeat_awaiting(n, || black_box(&breaker).call(answer(black_box(7))))
            },
        ),
        Contestant::new(
            Role::Peer,
            "tower, budget",
            "`Service::call` of `retry::Retry`, the policy of tower's documentation with its budget",
            |n| {
                let policy = Budgeted(Arc::new(TpsBudget::default()));
                let mut service = tower::retry::Retry::new(policy, tower::service_fn(answer));
                repeat_awaiting(n, || black_box(&mut service).call(black_box(7)))
            },
        ),
        Contestant::new(
            Role::Peer,
            "tower, attempts",
            "the same with a policy that only counts attempts",
            |n| {
                let mut service = tower::retry::Retry::new(Counted(RETRIES), tower::service_fn(answer));
                repeat_awaiting(n, || black_box(&mut service).call(black_box(7)))
            },
        ),
    ]
}

/// Blocking calls.
pub(crate) fn blocking() -> Result<Group, PolicyError> {
    let mut contestants = vec![Contestant::new(Role::Bare, "the call alone", "without a wrapper", |n| {
        repeat(n, || answer_now(black_box(7)))
    })];
    contestants.extend(Ours::new()?.blocking());
    contestants.extend([
        Contestant::new(
            Role::Peer,
            "backon",
            "`BlockingRetryable::retry` with a copied `ExponentialBuilder`",
            |n| {
                repeat(n, || {
                    let question = black_box(7);
                    BlockingRetryable::retry(|| answer_now(question), black_box(&BACKON)).call()
                })
            },
        ),
        Contestant::new(
            Role::Peer,
            "failsafe",
            "`CircuitBreaker::call`, which opens after 5 failures",
            |n| {
                use failsafe::CircuitBreaker;
                let breaker = failsafe_breaker();
                repeat(n, || {
                    let question = black_box(7);
                    black_box(&breaker).call(|| answer_now(question))
                })
            },
        ),
    ]);
    Ok(Group {
        name: "success, blocking",
        about: "one blocking call that succeeds, wrapped",
        target: Some(WITHIN_FIVE_PERCENT),
        left_out: "exponential-backoff wraps no calls; tokio-retry and tower wrap async calls only",
        contestants,
    })
}

/// failsafe's cheapest breaker: its default one also tracks a success rate.
fn failsafe_breaker() -> failsafe::StateMachine<ConsecutiveFailures<Exponential>, ()> {
    let delays = failsafe::backoff::exponential(Duration::from_secs(1), CAP);
    let failures = failsafe::failure_policy::consecutive_failures(5, delays);
    failsafe::Config::new().failure_policy(failures).build()
}

#[derive(Clone)]
struct Budgeted(Arc<TpsBudget>);

impl tower::retry::Policy<u64, u64, io::Error> for Budgeted {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut u64, result: &mut io::Result<u64>) -> Option<Self::Future> {
        if result.is_ok() {
            self.0.deposit();
            return None;
        }
        self.0.withdraw().then(|| ready(()))
    }

    fn clone_request(&mut self, question: &u64) -> Option<u64> {
        Some(*question)
    }
}

#[derive(Clone)]
struct Counted(u32);

impl tower::retry::Policy<u64, u64, io::Error> for Counted {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut u64, result: &mut io::Result<u64>) -> Option<Self::Future> {
        if result.is_ok() {
            return None;
        }
        self.0 = self.0.checked_sub(1)?;
        Some(ready(()))
    }

    fn clone_request(&mut self, question: &u64) -> Option<u64> {
        Some(*question)
    }
}
