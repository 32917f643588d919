//! Releases held items one after the other, so that a target that has just recovered is not flooded.
//!
//! A job's held items are spread over a tenth of the breaker's recovery timeout, five seconds at most, and
//! different jobs begin at different times.

use std::time::Duration;

use undaunted_policy::Timestamp;

const MAX_DURATION: Duration = Duration::from_secs(5);

/// Releases the held items of one job after a breaker has closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StaggeredRelease {
    since: Timestamp,
    over: Duration,
    held: u32,
    started: u32,
    /// Where within its share of the time each item starts, in 1/65536.
    offset: u16,
}

impl StaggeredRelease {
    pub(super) fn new(since: Timestamp, recovery_timeout: Duration, held: u32, draw: u64) -> Self {
        let [first, second, ..] = draw.to_be_bytes();
        Self {
            since,
            over: recovery_timeout.checked_div(10).unwrap_or_default().min(MAX_DURATION),
            held: held.max(1),
            started: 0,
            offset: u16::from_be_bytes([first, second]),
        }
    }

    /// When the item with this number may start.
    fn at(&self, number: u32) -> Timestamp {
        let share = (u128::from(number) << 16) | u128::from(self.offset);
        let whole = u128::from(self.held) << 16;
        let wait = self.over.as_nanos().saturating_mul(share).checked_div(whole).unwrap_or_default();
        let wait = u64::try_from(wait).unwrap_or(u64::MAX);
        self.since.after(Duration::from_nanos(wait))
    }

    pub(super) fn allowed(&self, now: Timestamp) -> u32 {
        if self.is_over() {
            return u32::MAX;
        }
        // Times rise with the number, so binary search finds the last one that has passed.
        let (mut low, mut high) = (self.started, self.held);
        while low < high {
            let middle = low.midpoint(high);
            if self.at(middle) <= now {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        low.saturating_sub(self.started)
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        (!self.is_over()).then(|| self.at(self.started))
    }

    pub(super) const fn started(&mut self) {
        self.started = self.started.saturating_add(1);
    }

    const fn is_over(&self) -> bool {
        self.started >= self.held
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    proptest! {
        #[test]
        fn held_items_are_released_one_after_the_other_within_five_seconds(
            many in 1_u32..2000, draw: u64,
        ) {
            let since = Timestamp::from_millis(5000);
            let mut release = StaggeredRelease::new(since, MINUTE, many, draw);
            let mut last = since;
            for _ in 0..many {
                let next = release.next().unwrap();
                prop_assert!(last <= next && next < since.after(MAX_DURATION));
                let before = Timestamp::from_nanos(next.as_nanos() - 1);
                prop_assert!(release.allowed(before) == 0 || next == since);
                prop_assert!(release.allowed(next) >= 1);
                release.started();
                last = next;
            }
            prop_assert_eq!((release.next(), release.allowed(since)), (None, u32::MAX));
        }
    }
}
