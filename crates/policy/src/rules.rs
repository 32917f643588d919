//! Which failures are retried: the ordered table, `retry_on` and `retry_statuses`.
//!
//! The first rule whose conditions all hold decides. If there is none, the class of the failure and
//! `retry_on` decide. Limits are not checked here but by the verdict.

use core::ops::RangeInclusive;

use crate::failure::{Failure, FailureCause, FailureClass};
use crate::kind::FailureKind;
use crate::pattern::Pattern;
use crate::reason::Reason;

/// The rules that select failures for retrying. `T` is what a rule may change about the retry.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules<T> {
    pub(crate) table: Vec<Rule<T>>,
    /// Empty: every transient failure is retried.
    pub(crate) retry_on: Vec<RetryOn>,
    pub(crate) retry_statuses: Vec<RangeInclusive<u16>>,
}

/// One row of the table of rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule<T> {
    pub(crate) when: Conditions,
    pub(crate) then: RuleAction,
    /// For [`RuleAction::Retry`]: the terms of the retry, where they differ from the command's.
    pub(crate) terms: Option<Box<T>>,
}

/// What a rule does with a failure it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum RuleAction {
    /// Try again, even if the failure is permanent by default.
    Retry,
    /// Stop retrying; the failure handler runs.
    Stop,
    /// Skip the item.
    Skip,
    /// Make the item a dead letter at once; no handler runs.
    DeadLetter,
    /// Open the command's breaker and hold the command until the breaker releases it.
    Hold,
}

/// The conditions of a rule, all of which must hold. An empty condition always holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// The exit code is one of these.
    pub exit_codes: Vec<i32>,
    /// The signal is one of these.
    pub signals: Vec<i32>,
    /// The HTTP status is in one of these ranges.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// The failure is of one of these classes or kinds.
    pub classes: Vec<ClassName>,
    /// Standard error contains a match of this pattern.
    pub stderr: Option<Pattern>,
    /// Standard output contains a match of this pattern.
    pub output: Option<Pattern>,
}

/// A value of a rule's `class`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassName {
    /// Failures of this class.
    Class(FailureClass),
    /// Failures of this kind.
    Kind(FailureKind),
    /// Attempts that were lost with their process.
    Interrupted,
}

/// One entry of `retry_on`.
#[derive(Clone, Debug, PartialEq)]
pub enum RetryOn {
    /// Failures of this kind.
    Kind(FailureKind),
    /// Failures whose text contains a match of this pattern.
    Pattern(Pattern),
}

/// The decision of the rules about a failure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RuleDecision<'r, T> {
    pub(crate) class: FailureClass,
    pub(crate) then: RuleAction,
    /// Why the failure is not retried, if it is not.
    pub(crate) reason: Option<Reason>,
    /// The row of the table that decided, counted from 0.
    pub(crate) rule: Option<usize>,
    pub(crate) terms: Option<&'r T>,
}

impl<T> Rules<T> {
    /// No rules: every transient failure is retried.
    pub const NONE: Self = Self { table: Vec::new(), retry_on: Vec::new(), retry_statuses: Vec::new() };

    /// The rows of the table, in order.
    #[must_use]
    pub fn table(&self) -> &[Rule<T>] {
        &self.table
    }

    #[inline]
    pub(crate) fn judge(&self, failure: &Failure<'_>) -> RuleDecision<'_, T> {
        let class = self.class(failure);
        for (index, rule) in self.table.iter().enumerate() {
            if rule.when.hold(failure, class) {
                return RuleDecision {
                    class: throttled_if_asked(failure, class, rule.then == RuleAction::Retry),
                    then: rule.then,
                    reason: match rule.then {
                        RuleAction::Retry | RuleAction::Hold => None,
                        RuleAction::Stop | RuleAction::Skip | RuleAction::DeadLetter => Some(Reason::Rule),
                    },
                    rule: Some(index),
                    terms: rule.terms.as_deref(),
                };
            }
        }
        let selected = class != FailureClass::Permanent && self.selects(failure);
        RuleDecision {
            class: if selected { class } else { FailureClass::Permanent },
            then: if selected { RuleAction::Retry } else { RuleAction::Stop },
            reason: (!selected).then_some(Reason::Permanent),
            rule: None,
            terms: None,
        }
    }

    fn class(&self, failure: &Failure<'_>) -> FailureClass {
        let retried = match failure.cause {
            FailureCause::Status(status) => {
                self.retry_statuses.iter().any(|range| range.contains(&status))
                    || (status == 429 && self.retries_rate_limits())
            }
            _ => false,
        };
        let class = if retried { FailureClass::Transient } else { failure.cause.class() };
        throttled_if_asked(failure, class, class == FailureClass::Transient)
    }

    fn retries_rate_limits(&self) -> bool {
        self.retry_on.contains(&RetryOn::Kind(FailureKind::RateLimit))
    }

    fn selects(&self, failure: &Failure<'_>) -> bool {
        // A status in `retry_statuses` needs no entry in `retry_on`.
        let listed = matches!(failure.cause, FailureCause::Status(status)
            if self.retry_statuses.iter().any(|range| range.contains(&status)));
        self.retry_on.is_empty()
            || listed
            || self.retry_on.iter().any(|entry| match entry {
                RetryOn::Kind(kind) => kind.matches(failure),
                RetryOn::Pattern(pattern) => {
                    pattern.found_in(failure.stderr) || pattern.found_in(failure.output)
                }
            })
    }
}

/// A retried failure with a `Retry-After` is throttled.
const fn throttled_if_asked(failure: &Failure<'_>, class: FailureClass, retried: bool) -> FailureClass {
    if retried && failure.retry_after.is_some() { FailureClass::Throttled } else { class }
}

impl<T> Rule<T> {
    /// Creates a rule without terms of its own.
    #[must_use]
    pub const fn new(when: Conditions, then: RuleAction) -> Self {
        Self { when, then, terms: None }
    }

    /// Creates a rule that retries on its own terms.
    #[must_use]
    pub fn retry(when: Conditions, terms: T) -> Self {
        Self { when, then: RuleAction::Retry, terms: Some(Box::new(terms)) }
    }

    /// The conditions under which the rule matches.
    #[must_use]
    pub const fn when(&self) -> &Conditions {
        &self.when
    }

    /// The terms of the retry, where they differ from the command's.
    #[must_use]
    pub fn terms(&self) -> Option<&T> {
        self.terms.as_deref()
    }

    /// What the rule does with a failure it matches.
    #[must_use]
    pub const fn then(&self) -> RuleAction {
        self.then
    }
}

impl Conditions {
    /// Whether the rule matches every failure, so that no later rule is ever used.
    #[must_use]
    pub fn always(&self) -> bool {
        *self == Self::default()
    }

    fn hold(&self, failure: &Failure<'_>, class: FailureClass) -> bool {
        let exit = match failure.cause {
            FailureCause::Exit(code) => self.exit_codes.contains(&code),
            _ => false,
        };
        let signal = match failure.cause {
            FailureCause::Signal(signal) => self.signals.contains(&signal),
            _ => false,
        };
        let status = match failure.cause {
            FailureCause::Status(status) => self.statuses.iter().any(|range| range.contains(&status)),
            _ => false,
        };
        let named = |name: &ClassName| match name {
            ClassName::Class(wanted) => *wanted == class,
            ClassName::Kind(kind) => kind.matches(failure),
            ClassName::Interrupted => failure.cause == FailureCause::Interrupted,
        };
        (self.exit_codes.is_empty() || exit)
            && (self.signals.is_empty() || signal)
            && (self.statuses.is_empty() || status)
            && (self.classes.is_empty() || self.classes.iter().any(named))
            && found(self.stderr.as_ref(), failure.stderr)
            && found(self.output.as_ref(), failure.output)
    }
}

fn found(pattern: Option<&Pattern>, text: &str) -> bool {
    pattern.is_none_or(|pattern| pattern.found_in(text))
}

#[cfg(test)]
mod tests;
