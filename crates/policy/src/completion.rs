//! When a step is complete although some of its items have not reported.
//!
//! Four rules are applied to counts, in a fixed order. The caller does not count unknown and repeated
//! results.

use core::fmt;
use core::time::Duration;

use crate::timestamp::Timestamp;

/// The completion rule of a step: what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct CompletionRule {
    /// Whether the step can complete before all items have reported.
    pub best_effort: bool,
    /// How many items have to succeed, at least 1 and at most all of them.
    pub min: u64,
    /// How long the step waits for them.
    pub deadline: Duration,
}

impl CompletionRule {
    /// The default of `deadline`.
    pub const DEFAULT_DEADLINE: Duration = Duration::from_mins(5);
}

impl Default for CompletionRule {
    fn default() -> Self {
        Self { best_effort: false, min: 1, deadline: Self::DEFAULT_DEADLINE }
    }
}

/// The items of a step that have reported so far, as counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompletionTally {
    /// All items of the step.
    pub target: u64,
    /// Items that have succeeded.
    pub completed: u64,
    /// Items that have failed for good.
    pub failed: u64,
}

/// The result of a complete step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Why the step is complete.
    pub reason: CompletionReason,
    /// Whether the step has succeeded.
    pub success: bool,
}

/// Why a step is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionReason {
    /// All items have reported.
    AllReported,
    /// The required number of items has succeeded.
    MinReached {
        /// How many items have succeeded.
        completed: u64,
        /// How many had to succeed.
        min: u64,
    },
    /// The deadline has passed.
    DeadlineExpired {
        /// How many items had succeeded by then.
        completed: u64,
    },
}

impl CompletionRule {
    /// Decides whether the step is complete. `deadline` is the start of the step plus the rule's deadline.
    #[must_use]
    pub fn decide(&self, tally: CompletionTally, deadline: Timestamp, now: Timestamp) -> Option<Completion> {
        let CompletionTally { target, completed, failed } = tally;
        let min = self.min_of(target);
        let complete = |reason, success| Some(Completion { reason, success });
        if completed.saturating_add(failed) >= target {
            // A step without items succeeds.
            let enough = completed >= min || target == 0;
            let success = if self.best_effort { enough } else { failed == 0 };
            return complete(CompletionReason::AllReported, success);
        }
        if !self.best_effort {
            return None;
        }
        if completed >= min {
            return complete(CompletionReason::MinReached { completed, min }, true);
        }
        (now >= deadline)
            .then_some(Completion { reason: CompletionReason::DeadlineExpired { completed }, success: false })
    }

    /// How many of `target` items have to succeed.
    #[must_use]
    pub fn min_of(&self, target: u64) -> u64 {
        self.min.clamp(1, target.max(1))
    }
}

impl CompletionReason {
    /// The word for this reason, as the label of a metric has it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::AllReported => "all_dcs_reported",
            Self::MinReached { .. } => "min_dcs_reached",
            Self::DeadlineExpired { .. } => "deadline_expired",
        }
    }
}

impl fmt::Display for CompletionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word();
        match self {
            Self::AllReported => f.write_str(word),
            Self::MinReached { completed, min } => write!(f, "{word} ({completed}/{min})"),
            Self::DeadlineExpired { completed } => write!(f, "{word} (completed: {completed})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DEADLINE: Timestamp = Timestamp::from_millis(1000);

    fn decided(rule: CompletionRule, completed: u64, failed: u64, now: u64) -> Option<String> {
        let tally = CompletionTally { target: 5, completed, failed };
        let completion = rule.decide(tally, DEADLINE, Timestamp::from_millis(now))?;
        let result = if completion.success { "success" } else { "failure" };
        Some(format!("{} {result}", completion.reason))
    }

    #[test]
    fn best_effort_completes_at_the_minimum_or_the_deadline() {
        let rule = CompletionRule { best_effort: true, min: 3, ..CompletionRule::default() };
        let decided = |completed, failed, now| decided(rule, completed, failed, now);
        assert_eq!(decided(2, 0, 999), None);
        assert_eq!(decided(3, 0, 0).unwrap(), "min_dcs_reached (3/3) success");
        assert_eq!(decided(4, 1, 0).unwrap(), "all_dcs_reported success");
        assert_eq!(decided(2, 3, 0).unwrap(), "all_dcs_reported failure");
        assert_eq!(decided(2, 1, 1000).unwrap(), "deadline_expired (completed: 2) failure");
    }

    #[test]
    fn without_best_effort_every_item_has_to_report_and_none_may_fail() {
        let decided = |completed, failed, now| decided(CompletionRule::default(), completed, failed, now);
        assert_eq!(decided(4, 0, 9999), None);
        assert_eq!(decided(5, 0, 0).unwrap(), "all_dcs_reported success");
        assert_eq!(decided(4, 1, 0).unwrap(), "all_dcs_reported failure");
    }

    #[test]
    fn a_minimum_is_at_least_one_and_at_most_all() {
        let with = |min| CompletionRule { best_effort: true, min, ..CompletionRule::default() };
        assert_eq!(decided(with(0), 0, 0, 0), None);
        assert_eq!(decided(with(0), 1, 0, 0).unwrap(), "min_dcs_reached (1/1) success");
        assert_eq!(decided(with(99), 5, 0, 0).unwrap(), "all_dcs_reported success");
    }

    proptest! {
        #[test]
        fn a_complete_step_stays_complete_as_time_passes(
            best_effort: bool, min in 0_u64..8, target in 0_u64..8,
            completed in 0_u64..8, failed in 0_u64..8, now in 0_u64..2000,
        ) {
            let rule = CompletionRule { best_effort, min, ..CompletionRule::default() };
            let tally = CompletionTally { target, completed, failed };
            let at = |now| rule.decide(tally, DEADLINE, Timestamp::from_millis(now));
            if let Some(completion) = at(now) {
                prop_assert_eq!(at(now + 1), Some(completion));
            }
        }
    }
}
