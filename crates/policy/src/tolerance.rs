//! How many items may fail before the rest is not started any more.
//!
//! Counts in, an answer out. Who counts, and what becomes of the items that wait, is the caller's
//! business.

/// When a step gives up on its remaining items.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Tolerance {
    /// Stop at this many failed items.
    pub max_failures: Option<u64>,
    /// Stop when the failed share of the settled items is greater than this.
    pub failure_threshold: Option<f64>,
}

impl Tolerance {
    /// The share is not looked at before this many items are settled.
    pub const ENOUGH: u64 = 10;

    /// Whether it is time to stop, with this many items settled and this many of them failed.
    #[must_use]
    pub fn exceeded(&self, settled: u64, failed: u64) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "a share of more than 2^53 items is exact enough")]
        let share = failed as f64 / settled.max(1) as f64;
        self.max_failures.is_some_and(|most| failed >= most.max(1))
            || (settled >= Self::ENOUGH && self.failure_threshold.is_some_and(|threshold| share > threshold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_failures_stops_at_that_number() {
        let tolerance = Tolerance { max_failures: Some(3), ..Tolerance::default() };
        assert!(!tolerance.exceeded(1000, 2));
        assert!(tolerance.exceeded(3, 3));
    }

    #[test]
    fn a_share_is_looked_at_from_ten_items_on_and_must_be_passed() {
        let tolerance = Tolerance { failure_threshold: Some(0.2), ..Tolerance::default() };
        assert!(!tolerance.exceeded(9, 9));
        assert!(!tolerance.exceeded(10, 2));
        assert!(tolerance.exceeded(10, 3));
    }

    #[test]
    fn by_default_everything_may_fail() {
        assert!(!Tolerance::default().exceeded(u64::MAX, u64::MAX));
    }
}
