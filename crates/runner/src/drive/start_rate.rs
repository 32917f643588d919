//! How fast attempts may start, if the user limits that.

use std::time::Duration;

/// Spaces starts evenly.
#[derive(Debug)]
pub(super) struct StartRate {
    between: Option<Duration>,
    /// When the next attempt may start, as an uptime.
    next: Duration,
}

impl StartRate {
    /// `rate` is in starts per second.
    pub(super) fn new(rate: Option<f64>, now: Duration) -> Self {
        let between = rate.filter(|rate| *rate > 0.0);
        Self { between: between.and_then(|rate| Duration::try_from_secs_f64(rate.recip()).ok()), next: now }
    }

    /// Whether an attempt may start now; if so, it counts as started.
    pub(super) fn allows(&mut self, now: Duration) -> bool {
        let Some(between) = self.between else {
            return true;
        };
        if now < self.next {
            return false;
        }
        // Unused starts are not saved up, so a pause does not lead to a burst.
        self.next = now.saturating_add(between);
        true
    }

    pub(super) fn wait(&self, now: Duration) -> Option<Duration> {
        self.between?;
        Some(self.next.saturating_sub(now))
    }
}
