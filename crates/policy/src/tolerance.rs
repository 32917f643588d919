//! How many items of a step may fail before the remaining ones are not started.
//!
//! The caller counts the items and decides what happens to those that wait.

/// When a step stops starting items.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Tolerance {
    /// Stop at this many failed items.
    pub max_failures: Option<u64>,
    /// Stop when the share of failed items among the settled ones is greater than this.
    pub failure_threshold: Option<f64>,
}

impl Tolerance {
    /// The share is ignored until this many items are settled.
    pub const ENOUGH: u64 = 10;

    /// Whether the step must stop: `settled` items are settled, `failed` of them failed.
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
    fn a_maximum_of_failures_stops_at_that_number() {
        let tolerance = Tolerance { max_failures: Some(3), ..Tolerance::default() };
        assert!(!tolerance.exceeded(1000, 2));
        assert!(tolerance.exceeded(3, 3));
    }

    #[test]
    fn a_failed_share_counts_from_ten_items_on_and_must_exceed_the_threshold() {
        let tolerance = Tolerance { failure_threshold: Some(0.2), ..Tolerance::default() };
        assert!(!tolerance.exceeded(9, 9));
        assert!(!tolerance.exceeded(10, 2));
        assert!(tolerance.exceeded(10, 3));
    }

    #[test]
    fn by_default_all_items_may_fail() {
        assert!(!Tolerance::default().exceeded(u64::MAX, u64::MAX));
    }
}
