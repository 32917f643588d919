//! The closed list of reasons why no further attempt is made.
//!
//! Each reason has a word for machines and a sentence for people. The numbers behind it are part of the
//! verdict's arithmetic.

use core::fmt;
use core::str::FromStr;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $sentence:literal;)*) => {
        /// Why a command is not tried again, or an item not run.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// All reasons, in the order of their definition.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word for this reason in events and in JSON.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The sentence for people.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$name => $sentence,)* }
            }
        }
    };
}

reasons! {
    /// A rule says `stop`, `skip` or `dead_letter`.
    Rule = "rule", "A rule stopped it";
    /// The failure is permanent: trying again would not help.
    Permanent = "permanent", "The failure is permanent";
    /// All retries were used.
    Attempts = "attempts", "All attempts used";
    /// The next delay would exceed the delay budget.
    RetryBudget = "retry_budget", "Retry budget exhausted";
    /// The deadline passed, or the next attempt would start after it.
    Deadline = "deadline", "The deadline passed";
    /// The job's pool is used up.
    JobBudgetExhausted = "job_budget_exhausted", "The job's retry pool is used up";
    /// The item's share of the pool is used up.
    WorkflowBudgetExhausted = "workflow_budget_exhausted", "The item's share of the retry pool is used up";
    /// The breaker is open and set to `fail`.
    CircuitOpen = "circuit_open", "The circuit breaker is open";
    /// Downtime used up the delay budget of a pending retry.
    RetryBudgetExpired = "retry_budget_expired", "Retry budget expired during downtime";
    /// The `Retry-After` of the target is longer than `max_retry_after`.
    RetryAfterExceedsLimit = "retry_after_exceeds_limit", "Retry-After asks for a longer wait than max_retry_after";
    /// The attempt was lost with its process, and the command must not run again without a user's consent.
    Interrupted = "interrupted", "The attempt was interrupted";
    /// A user cancelled the job, or the caller its token.
    Cancelled = "cancelled", "Cancelled";
    /// Too many other items failed.
    Tolerance = "tolerance", "Too many items failed";
    /// A user dropped the dead letter.
    NotSelected = "not_selected", "The dead letter was dropped";
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that is not a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownReason;

impl fmt::Display for UnknownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a reason; expected one of")?;
        for (index, reason) in Reason::ALL.iter().enumerate() {
            write!(f, "{}{reason}", if index == 0 { " " } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownReason {}

impl FromStr for Reason {
    type Err = UnknownReason;

    fn from_str(word: &str) -> Result<Self, UnknownReason> {
        Self::ALL.iter().copied().find(|reason| reason.word() == word).ok_or(UnknownReason)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Reason {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        word.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_names_its_reason_and_no_other() {
        for reason in Reason::ALL {
            assert_eq!(reason.word().parse(), Ok(*reason));
        }
        assert_eq!("retries".parse::<Reason>(), Err(UnknownReason));
        assert!(UnknownReason.to_string().ends_with("tolerance, not_selected"));
    }
}
