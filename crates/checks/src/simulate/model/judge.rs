//! What becomes of a failure: the checks, in their order.

use std::time::Duration;

use crate::simulate::case::{CaseAction, CaseAttempts, CaseCondition, CaseFailureKind};

use super::prediction::DelayRange;
use super::state::ModelProgress;
use super::terms::{ModelTerms, delay_range};

/// The decision of rules and failure class, before any limit.
#[derive(Clone, Debug)]
pub(super) enum ModelDecision {
    Retry { terms: Box<ModelTerms>, asked: Option<Duration> },
    Hold,
    Stop(&'static str),
    Skip,
    DeadLetter,
}

/// A decision, and what the semantics leave unspecified in it.
pub(super) struct ModelJudgement {
    pub(super) judged: ModelDecision,
    pub(super) open: Option<&'static str>,
}

pub(super) fn judge(outcome: &ModelOutcome, terms: &ModelTerms) -> ModelJudgement {
    let asked = match outcome {
        ModelOutcome::Status(_, Some(seconds)) => Some(Duration::from_secs(*seconds)),
        _ => None,
    };
    let rule = terms.rules.iter().find(|rule| outcome.matches(rule.when));
    let judged = match rule.map(|rule| &rule.then) {
        Some(CaseAction::Stop) => ModelDecision::Stop("rule"),
        Some(CaseAction::Skip) => ModelDecision::Skip,
        Some(CaseAction::DeadLetter) => ModelDecision::DeadLetter,
        Some(CaseAction::Hold) => ModelDecision::Hold,
        Some(CaseAction::Retry(own)) => {
            ModelDecision::Retry { terms: Box::new(terms.of_rule(own.as_deref())), asked }
        }
        None if is_retried(outcome, terms) => ModelDecision::Retry { terms: Box::new(terms.clone()), asked },
        None => ModelDecision::Stop("permanent"),
    };
    let is_listed = matches!(outcome, ModelOutcome::Status(status, _) if terms.statuses.contains(status));
    let narrowed = !terms.retry_on.is_empty() && !is_named(outcome, terms);
    let open = (rule.is_none() && is_listed && narrowed)
        .then_some("a status that is retried, and left out of what is");
    ModelJudgement { judged, open }
}

fn is_named(outcome: &ModelOutcome, terms: &ModelTerms) -> bool {
    let kind = outcome.kind();
    kind.is_some_and(|kind| terms.retry_on.contains(&kind))
}

/// Whether the target has sent a `Retry-After` that is respected.
pub(super) fn is_throttled(outcome: &ModelOutcome, terms: &ModelTerms) -> bool {
    let asked = matches!(outcome, ModelOutcome::Status(_, Some(_)));
    asked && is_transient(outcome, terms)
}

fn is_retried(outcome: &ModelOutcome, terms: &ModelTerms) -> bool {
    let narrowed = !terms.retry_on.is_empty() && !is_named(outcome, terms);
    is_transient(outcome, terms) && !narrowed
}

/// Whether a retry may help, with the configured statuses.
fn is_transient(outcome: &ModelOutcome, terms: &ModelTerms) -> bool {
    let listed = match outcome {
        ModelOutcome::Status(429, _) if terms.retry_on.contains(&CaseFailureKind::RateLimit) => true,
        ModelOutcome::Status(status, _) => terms.statuses.contains(status),
        _ => false,
    };
    outcome.is_transient() || listed
}

/// Whether another retry is within the number of attempts.
pub(super) fn has_attempts(terms: &ModelTerms, progress: &ModelProgress) -> bool {
    match terms.attempts {
        CaseAttempts::Times(times) => progress.retries < times,
        CaseAttempts::Unlimited => true,
    }
}

/// The range of the next delay.
pub(super) fn next_delay(
    terms: &ModelTerms,
    progress: &ModelProgress,
    asked: Option<Duration>,
) -> DelayRange {
    let n = progress.retries.saturating_add(1);
    let range = delay_range(terms, n, progress.previous);
    asked.map_or(range, |asked| range.at_least(asked))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ModelOutcome {
    Success(String),
    Exit(i32),
    Signal(i32),
    Timeout,
    Status(u16, Option<u64>),
    Network,
    /// The response says that it was no success.
    Denied,
    /// The output does not have the format to be captured.
    Unreadable,
}

/// What a result says about the target of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelSignal {
    Up,
    Down,
    Nothing,
}

impl ModelOutcome {
    /// Whether a retry may help, before any setting.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Exit(status) => !matches!(status, 126 | 127),
            Self::Signal(_) | Self::Timeout | Self::Network => true,
            Self::Status(status, _) => *status >= 500,
            Self::Denied | Self::Unreadable | Self::Success(_) => false,
        }
    }

    pub(super) fn kind(&self) -> Option<CaseFailureKind> {
        match self {
            Self::Timeout => Some(CaseFailureKind::Timeout),
            Self::Network => Some(CaseFailureKind::Network),
            Self::Status(429, _) => Some(CaseFailureKind::RateLimit),
            Self::Status(500.., _) => Some(CaseFailureKind::ServerError),
            _ => None,
        }
    }

    pub(super) fn matches(&self, when: CaseCondition) -> bool {
        match (when, self) {
            (CaseCondition::Always, _) => true,
            (CaseCondition::Exit(wanted), Self::Exit(status)) => wanted == *status,
            (CaseCondition::Signal(wanted), Self::Signal(signal)) => wanted == *signal,
            (CaseCondition::Status(wanted), Self::Status(status, _)) => wanted == *status,
            (CaseCondition::Kind(wanted), _) => self.kind() == Some(wanted),
            _ => false,
        }
    }

    /// What it says about the target; `throttled` if it is retried after a `Retry-After`.
    pub(super) fn signal(&self, throttled: bool, is_call: bool) -> ModelSignal {
        match self {
            // The target has answered.
            Self::Unreadable if is_call => ModelSignal::Up,
            Self::Success(_) | Self::Denied => ModelSignal::Up,
            Self::Status(_, _) if throttled => ModelSignal::Down,
            Self::Status(status, _) if *status < 500 => ModelSignal::Up,
            _ if self.is_transient() => ModelSignal::Down,
            _ => ModelSignal::Nothing,
        }
    }
}
