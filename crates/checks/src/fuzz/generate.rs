//! Policies, failures and states generated from bytes.
//!
//! Everything is what a program could pass to the crate. Conditions and failures come from the same few
//! values, so that rules match; some settings are invalid, so that they are refused.

use undaunted_policy::{
    Backoff, ClassName, Conditions, Failure, FailureCause, FailureClass, FailureKind, Jitter, JitterMode,
    PoolBalance, RetryConfig, RetryOn, RetryProgress, RetryState, Rule, RuleAction, Seed,
};

use super::byte_source::ByteSource;
use super::expected::{ExpectedPolicy, ExpectedTerms};

const EXIT_CODES: [i32; 4] = [2, 75, 127, 255];
const STATUSES: [u16; 4] = [404, 429, 500, 599];
const TEXTS: [&str; 4] = ["timed out", "HTTP 503", "1500 rows", "接続"];
const CLASSES: [FailureClass; 2] = [FailureClass::Throttled, FailureClass::Permanent];

/// Settings and the policy expected of them.
pub(super) fn settings(bytes: &mut ByteSource<'_>) -> (RetryConfig, ExpectedPolicy) {
    let base = terms(bytes);
    let rules: Vec<_> = bytes.few(3, |bytes| rule(bytes, &base));
    let own = rules.iter().map(|(_, own)| own.clone()).collect();
    let mut config = config(&base).rules(rules.into_iter().map(|(rule, _)| rule));
    if let Some(kinds) = bytes.maybe(|bytes| bytes.few(3, kind)) {
        config = config.retry_on(kinds.into_iter().map(RetryOn::Kind));
    }
    if let Some(status) = bytes.maybe(|bytes| bytes.one_of(503, &STATUSES)) {
        config = config.retry_statuses([status..=599]);
    }
    if let Some(deadline) = bytes.maybe(ByteSource::setting) {
        config = config.deadline(deadline);
    }
    (config, ExpectedPolicy { base, own })
}

pub(super) fn is_valid(terms: &ExpectedTerms) -> bool {
    let base = match terms.backoff {
        Backoff::Exponential { base } => base,
        _ => 1.0,
    };
    let factor = match terms.jitter {
        Jitter::PlusMinus { factor } => factor,
        _ => 0.0,
    };
    (1.0..=f64::MAX).contains(&base) && (0.0..=1.0).contains(&factor)
}

fn terms(bytes: &mut ByteSource<'_>) -> ExpectedTerms {
    ExpectedTerms {
        retries: bytes.maybe(ByteSource::count),
        backoff: backoff(bytes),
        initial_delay: bytes.setting(),
        max_delay: bytes.setting(),
        jitter: jitter(bytes),
        retry_budget: bytes.maybe(ByteSource::setting),
        max_retry_after: bytes.setting(),
    }
}

fn backoff(bytes: &mut ByteSource<'_>) -> Backoff {
    match bytes.byte() % 6 {
        0 => Backoff::Fixed,
        1 => Backoff::Fibonacci,
        2 => Backoff::Linear { increment: bytes.setting() },
        3 => Backoff::Custom { delays: bytes.few(4, ByteSource::setting).into() },
        4 => Backoff::Exponential { base: bytes.one_of(2.0, &[1.0, 1.5, 10.0, f64::MAX, 0.99]) },
        _ => Backoff::Exponential { base: f64::from_bits(bytes.u64()) },
    }
}

fn jitter(bytes: &mut ByteSource<'_>) -> Jitter {
    match bytes.byte() % 5 {
        0 => Jitter::None,
        1 => Jitter::Full,
        2 => Jitter::Equal,
        3 => Jitter::Decorrelated,
        _ => Jitter::PlusMinus { factor: bytes.one_of(0.3, &[0.0, 1.0, 0.123_456_789, f64::NAN, 1.01]) },
    }
}

fn config(terms: &ExpectedTerms) -> RetryConfig {
    let mut config = RetryConfig::new()
        .backoff(terms.backoff.clone())
        .initial_delay(terms.initial_delay)
        .max_delay(terms.max_delay)
        .max_retry_after(terms.max_retry_after);
    config = match terms.retries {
        Some(retries) => config.attempts(retries),
        None => config.unlimited_attempts(),
    };
    config = match terms.jitter {
        Jitter::Full => config.jitter(JitterMode::Full),
        Jitter::Equal => config.jitter(JitterMode::Equal),
        Jitter::Decorrelated => config.jitter(JitterMode::Decorrelated),
        Jitter::PlusMinus { factor } => config.jitter(JitterMode::PlusMinus).jitter_factor(factor),
        _ => config.jitter(JitterMode::Off),
    };
    match terms.retry_budget {
        Some(budget) => config.retry_budget(budget),
        None => config,
    }
}

/// A rule and its own terms, if it has any.
fn rule(bytes: &mut ByteSource<'_>, base: &ExpectedTerms) -> (Rule<RetryConfig>, Option<ExpectedTerms>) {
    let when = conditions(bytes);
    if bytes.flag() {
        let own = terms(bytes);
        let rule = Rule::retry(when, config(&own));
        // A setting that the rule leaves out is the policy's.
        let retry_budget = own.retry_budget.or(base.retry_budget);
        return (rule, Some(ExpectedTerms { retry_budget, ..own }));
    }
    let others = [RuleAction::Stop, RuleAction::Skip, RuleAction::DeadLetter, RuleAction::Hold];
    (Rule::new(when, bytes.one_of(RuleAction::Retry, &others)), None)
}

fn conditions(bytes: &mut ByteSource<'_>) -> Conditions {
    Conditions {
        exit_codes: bytes.few(1, |bytes| bytes.one_of(1, &EXIT_CODES)),
        signals: bytes.few(1, |bytes| bytes.one_of(9, &[14])),
        statuses: bytes.few(1, |bytes| bytes.one_of(503, &STATUSES)..=599),
        classes: bytes.few(2, class_name),
        ..Conditions::default()
    }
}

fn class_name(bytes: &mut ByteSource<'_>) -> ClassName {
    match bytes.byte() % 3 {
        0 => ClassName::Class(bytes.one_of(FailureClass::Transient, &CLASSES)),
        1 => ClassName::Kind(kind(bytes)),
        _ => ClassName::Interrupted,
    }
}

fn kind(bytes: &mut ByteSource<'_>) -> FailureKind {
    bytes.one_of(FailureKind::Network, &FailureKind::ALL)
}

pub(super) fn failure(bytes: &mut ByteSource<'_>) -> Failure<'static> {
    let cause = match bytes.byte() % 8 {
        0 => FailureCause::Other(bytes.one_of(FailureClass::Transient, &CLASSES)),
        1 => FailureCause::Exit(bytes.one_of(1, &EXIT_CODES)),
        2 => FailureCause::Signal(bytes.one_of(9, &[14])),
        3 => FailureCause::Status(bytes.one_of(503, &STATUSES)),
        4 => FailureCause::Status(bytes.u16()),
        5 => FailureCause::Network,
        6 => FailureCause::Interrupted,
        _ => bytes.one_of(FailureCause::Timeout, &[FailureCause::Refused, FailureCause::Unreadable]),
    };
    Failure {
        cause,
        retry_after: bytes.maybe(ByteSource::duration),
        stderr: bytes.one_of("", &TEXTS),
        output: bytes.one_of("", &TEXTS),
    }
}

/// A state that a command can reach, or a forged one.
pub(super) fn state(bytes: &mut ByteSource<'_>) -> RetryState {
    let draws = Seed(bytes.u64()).draws(0, 0, 1);
    if bytes.flag() {
        return RetryState { draws, deadline: bytes.maybe(ByteSource::instant), ..RetryState::default() };
    }
    RetryState {
        draws,
        progress: RetryProgress {
            retries: bytes.count(),
            spent: bytes.duration(),
            previous: bytes.maybe(ByteSource::duration),
        },
        deadline: bytes.maybe(ByteSource::instant),
        pool: bytes.maybe(balance),
    }
}

fn balance(bytes: &mut ByteSource<'_>) -> PoolBalance {
    PoolBalance {
        total: bytes.count(),
        consumed: bytes.count(),
        per_item: bytes.count(),
        item_consumed: bytes.count(),
    }
}
