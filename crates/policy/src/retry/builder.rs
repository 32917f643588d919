//! What to do about a failing call: a policy, and what it is shared with.

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
    /// Whether the first attempt can be made without asking anybody.
    pub(super) at_once: bool,
}

/// Tells what an error means for retrying. Any `Fn(&E) -> Failure` does.
pub trait Classify<E> {
    /// The facts of this error.
    fn classify<'e>(&self, error: &'e E) -> Failure<'e>;
}

/// Takes every error as transient.
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

/// Sees every verdict. Any `Fn(&Verdict, &E)` does.
pub trait Observe<E> {
    /// This error was met with this verdict.
    fn observe(&self, verdict: &Verdict, error: &E);
}

/// Looks away.
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
    /// Retries every error by this policy, on the machine's clock, with jitter that differs from
    /// process to process.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            at_once: policy.terms.limits.deadline.is_none(),
            policy,
            classify: AlwaysTransient,
            observe: NoObserver,
            clock: SystemClock,
            pool: None,
            breaker: None,
            cancel: None,
            seed: any_seed(),
            failed_calls: Arc::default(),
        }
    }
}

/// The standard library seeds its hash maps from the operating system; that is chance enough to
/// keep processes from retrying in step, without a random number crate.
fn any_seed() -> Seed {
    #[expect(clippy::disallowed_methods, reason = "a caller who wants a fixed seed sets one")]
    let chance = std::hash::RandomState::new();
    Seed(chance.hash_one(0))
}

impl<C, H, K> Retry<C, H, K> {
    /// Asks this closure what an error means.
    #[must_use]
    pub fn classify<E, F>(self, classify: F) -> Retry<F, H, K>
    where
        F: for<'e> Fn(&'e E) -> Failure<'e>,
    {
        self.parts(|_, observe, clock| (classify, observe, clock))
    }

    /// Shows every verdict to this closure, together with the error it is about.
    #[must_use]
    pub fn on_verdict<E, F: Fn(&Verdict, &E)>(self, observe: F) -> Retry<C, F, K> {
        self.parts(|classify, _, clock| (classify, observe, clock))
    }

    /// Uses this clock.
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
            at_once: self.at_once,
        }
    }

    /// Takes every retry from this pool.
    #[must_use]
    pub fn pool(mut self, pool: &SharedPool) -> Self {
        self.pool = Some(pool.clone());
        self
    }

    /// Asks this breaker before every attempt.
    #[must_use]
    pub fn breaker(mut self, breaker: &SharedBreaker) -> Self {
        self.breaker = Some(breaker.clone());
        self.at_once = false;
        self
    }

    /// Stops when this is switched on.
    #[must_use]
    pub fn cancel(mut self, cancel: &CancelToken) -> Self {
        self.cancel = Some(cancel.clone());
        self.at_once = false;
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
