//! A breaker that many calls ask at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::breaker::{Admission, Breaker, BreakerSettings, CircuitState, Health, Ticket};
use crate::timestamp::Timestamp;

/// One target's breaker. A clone is the same breaker.
#[derive(Clone, Debug)]
pub struct SharedBreaker(Arc<Guarded>);

#[derive(Debug)]
struct Guarded {
    settings: BreakerSettings,
    breaker: Mutex<Breaker>,
}

impl SharedBreaker {
    /// A closed breaker.
    #[must_use]
    pub fn new(settings: BreakerSettings) -> Self {
        Self::restored(settings, Breaker::default())
    }

    /// A breaker that stands where another one stood. Calls that were under way then are unknown
    /// here, so a probe among them is given up.
    #[must_use]
    pub fn restored(settings: BreakerSettings, mut breaker: Breaker) -> Self {
        breaker.abandon_probe();
        let breaker = Mutex::new(breaker);
        Self(Arc::new(Guarded { settings, breaker }))
    }

    /// Where it stands.
    #[must_use]
    pub fn circuit(&self) -> CircuitState {
        self.lock().circuit()
    }

    /// All of its state, to be saved.
    #[must_use]
    pub fn saved(&self) -> Breaker {
        *self.lock()
    }

    /// Closes it now; calls that are under way no longer count.
    pub fn reset(&self) {
        self.lock().reset();
    }

    pub(super) fn settings(&self) -> &BreakerSettings {
        &self.0.settings
    }

    pub(super) fn admit(&self, now: impl FnOnce() -> Timestamp) -> Admission {
        let mut breaker = self.lock();
        // A closed breaker lets everything pass at any time, and reading a clock costs more than
        // everything else a call that succeeds pays for.
        let now = match breaker.circuit() {
            CircuitState::Closed { .. } => Timestamp::ZERO,
            CircuitState::Open { .. } | CircuitState::HalfOpen { .. } => now(),
        };
        breaker.admit(&self.0.settings, now).0
    }

    pub(super) fn report(&self, ticket: Ticket, health: Health, now: Timestamp) {
        self.lock().report(&self.0.settings, ticket, health, now);
    }

    pub(super) fn trip(&self, now: Timestamp) {
        self.lock().trip(&self.0.settings, now);
    }

    /// A breaker is whole after every statement, so a panic elsewhere leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, Breaker> {
        let breaker = self.0.breaker.lock();
        breaker.unwrap_or_else(PoisonError::into_inner)
    }
}

/// A start that was let through. Dropped without a result, as when its future is dropped, it says
/// that nothing was learnt, so that a probe never blocks the ones after it.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    breaker: &'a SharedBreaker,
    ticket: Ticket,
    result: Option<(Health, Timestamp)>,
}

impl<'a> Pass<'a> {
    pub(super) const fn new(breaker: &'a SharedBreaker, ticket: Ticket) -> Self {
        Self { breaker, ticket, result: None }
    }

    pub(super) fn ends(mut self, health: Health, now: Timestamp) {
        self.result = Some((health, now));
    }

    /// Ends with a success, which opens nothing, so that no time is needed for it.
    pub(super) fn succeeds(self) {
        self.ends(Health::Up, Timestamp::ZERO);
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        // Learning nothing changes no time, so none is needed for it.
        let (health, now) = self.result.unwrap_or((Health::Unknown, Timestamp::ZERO));
        self.breaker.report(self.ticket, health, now);
    }
}
