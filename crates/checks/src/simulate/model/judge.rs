//! What becomes of a failure: the checks, in their order.

use std::time::Duration;

use crate::simulate::case::{Attempts, FailureKind, Then};

use super::delay;
use super::failure::Outcome;
use super::prediction::Range;
use super::state::Progress;
use super::terms::Terms;

/// What the table and the class say, before any limit is looked at.
#[derive(Clone, Debug)]
pub(super) enum Judged {
    Retry { terms: Box<Terms>, asked: Option<Duration> },
    Hold,
    Stop(&'static str),
    Skip,
    DeadLetter,
}

/// A judgement, and what in it the semantics leave open.
pub(super) struct Judgement {
    pub(super) judged: Judged,
    pub(super) open: Option<&'static str>,
}

/// What becomes of a failure by the table of rules, or by its class.
pub(super) fn judge(outcome: &Outcome, terms: &Terms) -> Judgement {
    let asked = match outcome {
        Outcome::Status(_, Some(seconds)) => Some(Duration::from_secs(*seconds)),
        _ => None,
    };
    let rule = terms.rules.iter().find(|rule| outcome.matches(rule.when));
    let judged = match rule.map(|rule| &rule.then) {
        Some(Then::Stop) => Judged::Stop("rule"),
        Some(Then::Skip) => Judged::Skip,
        Some(Then::DeadLetter) => Judged::DeadLetter,
        Some(Then::Hold) => Judged::Hold,
        Some(Then::Retry(own)) => Judged::Retry { terms: Box::new(terms.of_rule(own.as_deref())), asked },
        None if is_retried(outcome, terms) => Judged::Retry { terms: Box::new(terms.clone()), asked },
        None => Judged::Stop("permanent"),
    };
    let is_listed = matches!(outcome, Outcome::Status(status, _) if terms.statuses.contains(status));
    let narrowed = !terms.retry_on.is_empty() && !is_named(outcome, terms);
    let open = (rule.is_none() && is_listed && narrowed)
        .then_some("a status that is retried, and left out of what is");
    Judgement { judged, open }
}

fn is_named(outcome: &Outcome, terms: &Terms) -> bool {
    let kind = outcome.kind();
    kind.is_some_and(|kind| terms.retry_on.contains(&kind))
}

/// Whether the other side has said when to come back, and that is listened to.
pub(super) fn is_throttled(outcome: &Outcome, terms: &Terms) -> bool {
    let asked = matches!(outcome, Outcome::Status(_, Some(_)));
    asked && is_transient(outcome, terms)
}

fn is_retried(outcome: &Outcome, terms: &Terms) -> bool {
    let narrowed = !terms.retry_on.is_empty() && !is_named(outcome, terms);
    is_transient(outcome, terms) && !narrowed
}

/// Whether trying again may help, with the statuses that are said to.
fn is_transient(outcome: &Outcome, terms: &Terms) -> bool {
    let listed = match outcome {
        Outcome::Status(429, _) if terms.retry_on.contains(&FailureKind::RateLimit) => true,
        Outcome::Status(status, _) => terms.statuses.contains(status),
        _ => false,
    };
    outcome.is_transient() || listed
}

/// Whether one retry more is within the number of attempts.
pub(super) fn has_attempts(terms: &Terms, progress: &Progress) -> bool {
    match terms.attempts {
        Attempts::Times(times) => progress.retries < times,
        Attempts::Unlimited => true,
    }
}

/// Between what the delay of the next retry lies.
pub(super) fn next_delay(terms: &Terms, progress: &Progress, asked: Option<Duration>) -> Range {
    let n = progress.retries.saturating_add(1);
    let range = delay::range(terms, n, progress.previous);
    asked.map_or(range, |asked| range.at_least(asked))
}
