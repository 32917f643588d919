//! When a step is complete although not everything has reported.
//!
//! Four rules in a fixed order, over counts. Whose results count (an unknown or repeated one does
//! not) is settled before the counts are made.

use core::fmt;
use core::time::Duration;

use crate::timestamp::Timestamp;

/// What a step waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct CompletionRule {
    /// Whether fewer than all will do.
    pub best_effort: bool,
    /// How many have to succeed; taken as at least 1 and at most all there are.
    pub min: u64,
    /// How long to wait for them.
    pub deadline: Duration,
}

impl CompletionRule {
    /// How long to wait when nothing is said.
    pub const DEFAULT_DEADLINE: Duration = Duration::from_mins(5);
}

impl Default for CompletionRule {
    fn default() -> Self {
        Self { best_effort: false, min: 1, deadline: Self::DEFAULT_DEADLINE }
    }
}

/// Who has reported so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompletionTally {
    /// How many there are.
    pub target: u64,
    /// How many have succeeded.
    pub completed: u64,
    /// How many have failed for good.
    pub failed: u64,
}

/// That a step is complete, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Why.
    pub reason: CompletionReason,
    /// Whether that is a success.
    pub success: bool,
}

/// Why a step is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionReason {
    /// Nothing is missing.
    AllReported,
    /// Enough have succeeded.
    MinReached {
        /// How many have.
        completed: u64,
        /// How many it takes.
        min: u64,
    },
    /// Time is up.
    DeadlineExpired {
        /// How many have succeeded by then.
        completed: u64,
    },
}

impl CompletionRule {
    /// Whether the step is complete; `deadline` is the instant its start and the rule's own deadline
    /// add up to.
    #[must_use]
    pub fn decide(&self, tally: CompletionTally, deadline: Timestamp, now: Timestamp) -> Option<Completion> {
        let CompletionTally { target, completed, failed } = tally;
        let min = self.min_of(target);
        let complete = |reason, success| Some(Completion { reason, success });
        if completed.saturating_add(failed) >= target {
            // A step with nothing in it has nothing to miss.
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
}

impl CompletionRule {
    /// How many of so many have to succeed.
    #[must_use]
    pub fn min_of(&self, target: u64) -> u64 {
        self.min.clamp(1, target.max(1))
    }
}

impl CompletionReason {
    /// The word alone, for the label of a metric.
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
    fn otherwise_every_one_has_to_report_and_none_to_fail() {
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
