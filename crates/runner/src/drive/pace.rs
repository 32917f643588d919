//! How fast attempts may start, if somebody limited that.

use std::time::Duration;

/// Lets so many starts through in a second, evenly; all of them without a limit.
#[derive(Debug)]
pub(super) struct Pace {
    between: Option<Duration>,
    /// When the next one may start, by the machine's uptime.
    next: Duration,
}

impl Pace {
    /// The pace of so many starts in a second.
    pub(super) fn new(rate: Option<f64>, now: Duration) -> Self {
        let between = rate.filter(|rate| *rate > 0.0);
        Self {
            between: between.and_then(|rate| Duration::try_from_secs_f64(rate.recip()).ok()),
            next: now,
        }
    }

    /// Whether one may start now; if so it has.
    pub(super) fn allows(&mut self, now: Duration) -> bool {
        let Some(between) = self.between else {
            return true;
        };
        if now < self.next {
            return false;
        }
        // What was not used is not saved up: a pause is no reason for a storm.
        self.next = now.saturating_add(between);
        true
    }

    /// How long until one may start, if there is a limit.
    pub(super) fn wait(&self, now: Duration) -> Option<Duration> {
        self.between?;
        Some(self.next.saturating_sub(now))
    }
}
