//! A breaker that concurrent calls share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::breaker::{Admission, Breaker, BreakerSettings, CircuitState, Health, Ticket};
use crate::timestamp::Timestamp;

/// The breaker of one target, for any number of calls. A clone is the same breaker.
#[derive(Clone, Debug)]
pub struct SharedBreaker(Arc<BreakerCell>);

#[derive(Debug)]
struct BreakerCell {
    settings: BreakerSettings,
    breaker: Mutex<Breaker>,
}

impl SharedBreaker {
    /// Creates a closed breaker with these settings.
    #[must_use]
    pub fn new(settings: BreakerSettings) -> Self {
        Self::restored(settings, Breaker::default())
    }

    /// Restores a breaker from [`SharedBreaker::saved`]. The calls that were running then are unknown here,
    /// so a probe among them is abandoned.
    #[must_use]
    pub fn restored(settings: BreakerSettings, mut breaker: Breaker) -> Self {
        breaker.abandon_probe();
        let breaker = Mutex::new(breaker);
        Self(Arc::new(BreakerCell { settings, breaker }))
    }

    /// Whether the breaker is closed, open or half open.
    #[must_use]
    pub fn circuit(&self) -> CircuitState {
        self.lock().circuit()
    }

    /// The whole state, for saving.
    #[must_use]
    pub fn saved(&self) -> Breaker {
        *self.lock()
    }

    /// Closes the breaker now; results of running calls no longer count.
    pub fn reset(&self) {
        self.lock().reset();
    }

    pub(super) fn settings(&self) -> &BreakerSettings {
        &self.0.settings
    }

    pub(super) fn admit(&self, now: impl FnOnce() -> Timestamp) -> Admission {
        let mut breaker = self.lock();
        // A closed breaker does not depend on the time, and reading a clock costs more than everything
        // else that a successful call pays for.
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

    /// A poisoned lock is used: no update of a breaker can panic halfway.
    fn lock(&self) -> MutexGuard<'_, Breaker> {
        let breaker = self.0.breaker.lock();
        breaker.unwrap_or_else(PoisonError::into_inner)
    }
}

/// An admitted start. Dropped without a result, as when its future is dropped, it reports
/// [`Health::Unknown`], so that an abandoned probe does not block the next one.
#[derive(Debug)]
pub(super) struct AdmittedStart<'a> {
    breaker: &'a SharedBreaker,
    ticket: Ticket,
    result: Option<(Health, Timestamp)>,
}

impl<'a> AdmittedStart<'a> {
    pub(super) const fn new(breaker: &'a SharedBreaker, ticket: Ticket) -> Self {
        Self { breaker, ticket, result: None }
    }

    pub(super) fn ends(mut self, health: Health, now: Timestamp) {
        self.result = Some((health, now));
    }

    /// Reports a success. The time does not matter, since a success opens no breaker.
    pub(super) fn succeeds(self) {
        self.ends(Health::Up, Timestamp::ZERO);
    }
}

impl Drop for AdmittedStart<'_> {
    fn drop(&mut self) {
        // For `Unknown` the time does not matter.
        let (health, now) = self.result.unwrap_or((Health::Unknown, Timestamp::ZERO));
        self.breaker.report(self.ticket, health, now);
    }
}
