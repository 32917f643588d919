//! Which failures are retried: the ordered table, `retry_on` and `retry_statuses`.
//!
//! The first rule whose conditions all hold decides; if none does, the class of the failure and
//! `retry_on` decide. Whether a retry is then still *allowed* is not asked here: that is the
//! verdict's business.

use core::ops::RangeInclusive;

use crate::failure::{Failure, FailureCause, FailureClass};
use crate::kind::FailureKind;
use crate::pattern::Pattern;
use crate::reason::Reason;

/// What selects a failure for retrying. `T` is what a rule may change about the retry.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules<T> {
    pub(crate) table: Vec<Rule<T>>,
    pub(crate) retry_on: Option<Vec<RetryOn>>,
    pub(crate) retry_statuses: Vec<RangeInclusive<u16>>,
}

/// One row of the table.
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
    /// Try no further; the failure handler runs.
    Stop,
    /// The item is skipped.
    Skip,
    /// The item becomes a dead letter at once; no handler runs.
    DeadLetter,
    /// Open the command's breaker and wait for it.
    Hold,
}

/// What must hold for a rule to match; what is empty is not asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// One of these exit codes.
    pub exit_codes: Vec<i32>,
    /// One of these signals.
    pub signals: Vec<i32>,
    /// An HTTP status in one of these ranges.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// One of these classes or kinds.
    pub classes: Vec<ClassName>,
    /// This in what it wrote to standard error.
    pub stderr: Option<Pattern>,
    /// This in what it wrote to standard output.
    pub output: Option<Pattern>,
}

/// What a rule's `class` may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassName {
    /// A failure class.
    Class(FailureClass),
    /// A kind of failure.
    Kind(FailureKind),
    /// An attempt that vanished with its process.
    Interrupted,
}

/// One entry of `retry_on`.
#[derive(Clone, Debug, PartialEq)]
pub enum RetryOn {
    /// A kind of failure.
    Kind(FailureKind),
    /// Text that holds this pattern.
    Pattern(Pattern),
}

/// What the rules make of a failure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Judgement<'r, T> {
    pub(crate) class: FailureClass,
    pub(crate) then: RuleAction,
    /// Why it is not retried, if it is not.
    pub(crate) reason: Option<Reason>,
    /// The row of the table that decided, counted from 0.
    pub(crate) rule: Option<usize>,
    pub(crate) terms: Option<&'r T>,
}

impl<T> Rules<T> {
    /// No table, everything transient is retried.
    pub const NONE: Self = Self { table: Vec::new(), retry_on: None, retry_statuses: Vec::new() };

    /// The rows, in order.
    #[must_use]
    pub fn table(&self) -> &[Rule<T>] {
        &self.table
    }

    #[inline]
    pub(crate) fn judge(&self, failure: &Failure<'_>) -> Judgement<'_, T> {
        let class = self.class(failure);
        for (index, rule) in self.table.iter().enumerate() {
            if rule.when.hold(failure, class) {
                return Judgement {
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
        Judgement {
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
        let entries = self.retry_on.iter().flatten();
        entries.into_iter().any(|entry| *entry == RetryOn::Kind(FailureKind::RateLimit))
    }

    fn selects(&self, failure: &Failure<'_>) -> bool {
        let Some(entries) = &self.retry_on else {
            return true;
        };
        // A status somebody listed by number needs no second permission.
        let listed = matches!(failure.cause, FailureCause::Status(status)
            if self.retry_statuses.iter().any(|range| range.contains(&status)));
        listed
            || entries.iter().any(|entry| match entry {
                RetryOn::Kind(kind) => kind.matches(failure),
                RetryOn::Pattern(pattern) => {
                    pattern.found_in(failure.stderr) || pattern.found_in(failure.output)
                }
            })
    }
}

/// A retried failure whose other side said when to come back is throttled.
const fn throttled_if_asked(failure: &Failure<'_>, class: FailureClass, retried: bool) -> FailureClass {
    if retried && failure.retry_after.is_some() { FailureClass::Throttled } else { class }
}

impl<T> Rule<T> {
    /// A row without terms of its own.
    #[must_use]
    pub const fn new(when: Conditions, then: RuleAction) -> Self {
        Self { when, then, terms: None }
    }

    /// A row that retries on its own terms.
    #[must_use]
    pub fn retry(when: Conditions, terms: T) -> Self {
        Self { when, then: RuleAction::Retry, terms: Some(Box::new(terms)) }
    }

    /// The conditions.
    #[must_use]
    pub const fn when(&self) -> &Conditions {
        &self.when
    }

    /// The terms of the retry, where they differ from the command's.
    #[must_use]
    pub fn terms(&self) -> Option<&T> {
        self.terms.as_deref()
    }

    /// What it does.
    #[must_use]
    pub const fn then(&self) -> RuleAction {
        self.then
    }
}

impl Conditions {
    /// Whether the rule matches everything, so that no later rule is ever asked.
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
