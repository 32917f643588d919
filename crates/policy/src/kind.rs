//! The kinds of failure that `retry_on` and rules name: network, timeout, server error, rate limit.
//!
//! Facts decide first: an HTTP status or a timeout determines the kind, whatever the text says. Only if the
//! facts leave the kind open, as an exit code 1 does, the text is searched for whole words: `500` in
//! "1500 rows" is not a server error.

use crate::failure::{Failure, FailureCause};

/// A kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The other side could not be reached (`network`).
    Network,
    /// The attempt took too long (`timeout`).
    Timeout,
    /// The other side failed (`server_error`).
    ServerError,
    /// The other side asks for fewer calls (`rate_limit`).
    RateLimit,
}

impl FailureKind {
    /// All kinds of failure.
    pub const ALL: [Self; 4] = [Self::Network, Self::Timeout, Self::ServerError, Self::RateLimit];

    /// The word for this kind in a `retry_config`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Timeout => "timeout",
            Self::ServerError => "server_error",
            Self::RateLimit => "rate_limit",
        }
    }

    /// Whether a failure is of this kind, by its facts or else by its text.
    #[must_use]
    pub fn matches(self, failure: &Failure<'_>) -> bool {
        self.by_facts(failure.cause).unwrap_or_else(|| {
            let contains = |phrase| has_words(failure.stderr, phrase) || has_words(failure.output, phrase);
            self.phrases().iter().any(|phrase| contains(phrase))
        })
    }

    /// `None` if the facts alone do not decide.
    const fn by_facts(self, cause: FailureCause) -> Option<bool> {
        const SIGALRM: i32 = 14;
        match (self, cause) {
            (Self::Network, FailureCause::Network)
            // `timeout(1)` exits with 124, and SIGALRM ends a program that has set itself a time limit.
            | (Self::Timeout, FailureCause::Timeout | FailureCause::Exit(124) | FailureCause::Signal(SIGALRM) | FailureCause::Status(408 | 504))
            | (Self::ServerError, FailureCause::Status(500..=599))
            | (Self::RateLimit, FailureCause::Status(429)) => Some(true),
            (_, FailureCause::Network | FailureCause::Timeout | FailureCause::Status(_)) => Some(false),
            _ => None,
        }
    }

    const fn phrases(self) -> &'static [&'static str] {
        match self {
            Self::Network => &[
                "network",
                "connection",
                "unreachable",
                "could not resolve host",
                "couldn't resolve host",
                "name or service not known",
                "name resolution",
                "no route to host",
                "broken pipe",
                "dns",
                "econnrefused",
                "econnreset",
                "enetunreach",
                "ehostunreach",
                "enotfound",
                "eai again",
                "epipe",
            ],
            Self::Timeout => &["timeout", "time out", "timed out", "etimedout", "deadline exceeded"],
            Self::ServerError => &[
                "500",
                "502",
                "503",
                "504",
                "server error",
                "bad gateway",
                "service unavailable",
                "gateway timeout",
            ],
            Self::RateLimit => &[
                "429",
                "rate limit",
                "rate limited",
                "rate limiting",
                "ratelimit",
                "too many requests",
                "throttled",
                "throttling",
            ],
        }
    }
}

/// Whether `text` contains `phrase` as whole words, in any case. A space in the phrase matches a space, `-`
/// or `_`.
fn has_words(text: &str, phrase: &str) -> bool {
    let (text, phrase) = (text.as_bytes(), phrase.as_bytes());
    text.windows(phrase.len().max(1)).enumerate().any(|(at, window)| {
        let alike = window.iter().zip(phrase).all(|(&byte, &expected)| {
            byte.eq_ignore_ascii_case(&expected) || (expected == b' ' && matches!(byte, b'-' | b'_'))
        });
        let end = at.saturating_add(phrase.len());
        alike
            && !continues(text.get(..at).unwrap_or_default().iter().rev())
            && !continues(text.get(end..).unwrap_or_default().iter())
    })
}

/// Whether the word continues with these bytes: with a letter, a digit, or, as in `0.500` and `1,500`, with
/// the next part of a number.
fn continues<'a>(mut onward: impl Iterator<Item = &'a u8>) -> bool {
    match onward.next() {
        Some(b'.' | b',') => onward.next().is_some_and(u8::is_ascii_digit),
        Some(byte) => byte.is_ascii_alphanumeric() || *byte == b'_',
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(failure: Failure<'_>) -> Vec<&'static str> {
        let all = FailureKind::ALL.into_iter();
        all.filter(|kind| kind.matches(&failure)).map(FailureKind::word).collect()
    }

    #[test]
    fn facts_decide_whatever_the_text_says() {
        let text = "503 Service Unavailable: rate limit, connection timed out";
        let kinds_of = |cause| kinds(Failure::new(cause).text(text));
        assert_eq!(kinds_of(FailureCause::Status(404)), Vec::<&str>::new());
        assert_eq!(kinds_of(FailureCause::Status(429)), ["rate_limit"]);
        assert_eq!(kinds_of(FailureCause::Status(502)), ["server_error"]);
        assert_eq!(kinds_of(FailureCause::Status(504)), ["timeout", "server_error"]);
        assert_eq!(kinds_of(FailureCause::Timeout), ["timeout"]);
        assert_eq!(kinds_of(FailureCause::Network), ["network"]);
        assert!(kinds(Failure::new(FailureCause::Exit(124))).contains(&"timeout"));
        assert!(kinds(Failure::new(FailureCause::Signal(14))).contains(&"timeout"));
    }

    #[test]
    fn a_plain_exit_code_is_read_for_whole_words() {
        for (text, expected) in [
            ("curl: (7) Failed: Connection refused", vec!["network"]),
            ("getaddrinfo EAI_AGAIN registry", vec!["network"]),
            ("Operation timed out", vec!["timeout"]),
            ("HTTP/1.1 500", vec!["server_error"]),
            ("status=503.", vec!["server_error"]),
            ("error 502, giving up", vec!["server_error"]),
            ("Too Many Requests", vec!["rate_limit"]),
            ("rate-limited", vec!["rate_limit"]),
            ("1500 rows", vec![]),
            ("500ms, 0.500 s, 1,500 and 500.25", vec![]),
            ("port 5003 of networking", vec![]),
            ("no such file", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(kinds(Failure::new(FailureCause::Exit(1)).text(text)), expected, "{text}");
        }
    }

    #[test]
    fn text_in_any_alphabet_is_searched() {
        let text = "Zeitüberschreitung — 接続 503 ошибка";
        let failure = Failure { output: text, ..Failure::new(FailureCause::Exit(1)) };
        assert_eq!(kinds(failure), ["server_error"]);
    }
}
