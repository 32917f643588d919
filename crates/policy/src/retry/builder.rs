//! The builder [`Retry`]: a policy, a classifier, and the pool, breaker, clock and seed that calls share.

use core::hash::BuildHasher;
use core::sync::atomic::AtomicU64;
use std::sync::Arc;

use super::cancel::CancelToken;
use super::clock::SystemClock;
use super::shared_breaker::SharedBreaker;
use super::shared_pool::SharedPool;
use crate::draw::Seed;
use crate::failure::Failure;
use crate::policy::Policy;
use crate::verdict::Verdict;

/// Retries calls by a policy. Made once and used for many calls, from many threads.
#[derive(Clone, Debug)]
pub struct Retry<C = AlwaysTransient, H = NoObserver, K = SystemClock> {
    pub(super) policy: Policy,
    pub(super) classify: C,
    pub(super) observe: H,
    pub(super) clock: K,
    pub(super) pool: Option<SharedPool>,
    pub(super) breaker: Option<SharedBreaker>,
    pub(super) cancel: Option<CancelToken>,
    pub(super) seed: Seed,
    /// Numbers the calls that fail, so that each has draws of its own.
    pub(super) failed_calls: Arc<AtomicU64>,
    /// Whether the first attempt can start without checking deadline, breaker and cancellation.
    pub(super) starts_unchecked: bool,
}

/// Turns an error into a [`Failure`] that the policy can classify. Implemented for `Fn(&E) -> Failure`.
pub trait Classify<E> {
    /// Returns the facts of this error: its cause, its text, its `Retry-After`.
    fn classify<'e>(&self, error: &'e E) -> Failure<'e>;
}

/// The default classifier: every error is transient.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysTransient;

impl<E> Classify<E> for AlwaysTransient {
    fn classify<'e>(&self, _error: &'e E) -> Failure<'e> {
        Failure::transient()
    }
}

impl<E, F: for<'e> Fn(&'e E) -> Failure<'e>> Classify<E> for F {
    fn classify<'e>(&self, error: &'e E) -> Failure<'e> {
        self(error)
    }
}

/// Observes every verdict, for logs and metrics. Implemented for `Fn(&Verdict, &E)`.
pub trait Observe<E> {
    /// Called with the verdict for each failed attempt, and its error.
    fn observe(&self, verdict: &Verdict, error: &E);
}

/// The default observer, which does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl<E> Observe<E> for NoObserver {
    fn observe(&self, _verdict: &Verdict, _error: &E) {}
}

impl<E, F: Fn(&Verdict, &E)> Observe<E> for F {
    fn observe(&self, verdict: &Verdict, error: &E) {
        self(verdict, error);
    }
}

impl Retry {
    /// Retries every error by this policy, on the system clock, with jitter that differs between
    /// processes.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            starts_unchecked: policy.terms.limits.deadline.is_none(),
            policy,
            classify: AlwaysTransient,
            observe: NoObserver,
            clock: SystemClock,
            pool: None,
            breaker: None,
            cancel: None,
            seed: random_seed(),
            failed_calls: Arc::default(),
        }
    }
}

/// The standard library seeds its hash maps from the operating system. That is random enough to keep
/// processes from retrying in step, and needs no random number crate.
fn random_seed() -> Seed {
    #[expect(clippy::disallowed_methods, reason = "a caller who wants a fixed seed sets one")]
    let random = std::hash::RandomState::new();
    Seed(random.hash_one(0))
}

impl<C, H, K> Retry<C, H, K> {
    /// Classifies errors with this closure.
    #[must_use]
    pub fn classify<E, F>(self, classify: F) -> Retry<F, H, K>
    where
        F: for<'e> Fn(&'e E) -> Failure<'e>,
    {
        self.parts(|_, observe, clock| (classify, observe, clock))
    }

    /// Calls this closure with every verdict and the error it is about.
    #[must_use]
    pub fn on_verdict<E, F: Fn(&Verdict, &E)>(self, observe: F) -> Retry<C, F, K> {
        self.parts(|classify, _, clock| (classify, observe, clock))
    }

    /// Uses this clock instead of [`SystemClock`].
    #[must_use]
    pub fn clock<L>(self, clock: L) -> Retry<C, H, L> {
        self.parts(|classify, observe, _| (classify, observe, clock))
    }

    fn parts<D, I, L>(self, change: impl FnOnce(C, H, K) -> (D, I, L)) -> Retry<D, I, L> {
        let (classify, observe, clock) = change(self.classify, self.observe, self.clock);
        Retry {
            policy: self.policy,
            classify,
            observe,
            clock,
            pool: self.pool,
            breaker: self.breaker,
            cancel: self.cancel,
            seed: self.seed,
            failed_calls: self.failed_calls,
            starts_unchecked: self.starts_unchecked,
        }
    }

    /// Charges every retry to this pool.
    #[must_use]
    pub fn pool(mut self, pool: &SharedPool) -> Self {
        self.pool = Some(pool.clone());
        self
    }

    /// Asks this breaker before every attempt.
    #[must_use]
    pub fn breaker(mut self, breaker: &SharedBreaker) -> Self {
        self.breaker = Some(breaker.clone());
        self.starts_unchecked = false;
        self
    }

    /// Stops all calls when this token is cancelled.
    #[must_use]
    pub fn cancel(mut self, cancel: &CancelToken) -> Self {
        self.cancel = Some(cancel.clone());
        self.starts_unchecked = false;
        self
    }

    /// Draws jitter from this seed: the same seed gives the n-th failing call the same waits.
    #[must_use]
    pub fn seed(mut self, seed: Seed) -> Self {
        self.seed = seed;
        self.failed_calls = Arc::default();
        self
    }
}
