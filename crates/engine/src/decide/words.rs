//! Sentences about failures, for people.

use undaunted_policy::{Decision, FailureCause, Reason, Verdict, signal_name};

use crate::event::TimeLimit;

/// The cause of a failure, and the time limit that was exceeded.
pub fn describe_cause(cause: FailureCause, limit: Option<TimeLimit>) -> String {
    if let Some(limit) = limit {
        return format!("timed out after {limit}");
    }
    match cause {
        FailureCause::Exit(127) => "exit status 127 (not found)".to_owned(),
        FailureCause::Exit(126) => "exit status 126 (cannot be executed)".to_owned(),
        FailureCause::Exit(code) => format!("exit status {code}"),
        FailureCause::Signal(signal) => match signal_name(signal) {
            Some(name) => format!("killed by signal {signal} (SIG{name})"),
            None => format!("killed by signal {signal}"),
        },
        FailureCause::Timeout => "timed out".to_owned(),
        FailureCause::Network => "connection failed".to_owned(),
        FailureCause::Status(status) => format!("HTTP {status}"),
        FailureCause::Refused => "the service reported a failure".to_owned(),
        FailureCause::Unreadable => "invalid output".to_owned(),
        FailureCause::Interrupted => "interrupted".to_owned(),
        _ => "failed".to_owned(),
    }
}

pub(super) fn of_failure(cause: FailureCause, limit: Option<TimeLimit>, lines: &str) -> String {
    let cause = describe_cause(cause, limit);
    match lines {
        "" => cause,
        lines => format!("{cause}: {lines}"),
    }
}

pub(super) fn of_stop(verdict: &Verdict, last: &str) -> String {
    let never_retried =
        matches!(verdict.decision, Decision::Stop { reason: Reason::Attempts | Reason::Permanent, .. })
            && verdict.arithmetic.retry == 1;
    if never_retried {
        // Without retries the reason adds nothing to the error.
        return last.to_owned();
    }
    with_last(&verdict.to_string(), last)
}

pub(super) fn with_last(sentence: &str, last: &str) -> String {
    match last {
        "" => sentence.to_owned(),
        last => format!("{sentence}; last error: {last}"),
    }
}
