//! Failures in words, for people.

use undaunted_policy::{Decision, FailureCause, Reason, Verdict};

pub fn of_cause(cause: FailureCause) -> String {
    match cause {
        FailureCause::Exit(127) => "exit status 127 (not found)".to_owned(),
        FailureCause::Exit(126) => "exit status 126 (cannot be executed)".to_owned(),
        FailureCause::Exit(code) => format!("exit status {code}"),
        FailureCause::Signal(signal) => match signal_name(signal) {
            Some(name) => format!("ended by signal {signal} ({name})"),
            None => format!("ended by signal {signal}"),
        },
        FailureCause::Timeout => "timed out".to_owned(),
        FailureCause::Network => "the connection failed".to_owned(),
        FailureCause::Status(status) => format!("HTTP {status}"),
        FailureCause::Refused => "refused by the other side".to_owned(),
        FailureCause::Unreadable => "the output cannot be used".to_owned(),
        FailureCause::Interrupted => "interrupted".to_owned(),
        _ => "failed".to_owned(),
    }
}

const fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        6 => "ABRT",
        7 => "BUS",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        24 => "XCPU",
        25 => "XFSZ",
        _ => return None,
    })
}

pub(super) fn of_failure(cause: FailureCause, lines: &str) -> String {
    match lines {
        "" => of_cause(cause),
        lines => format!("{}: {lines}", of_cause(cause)),
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
