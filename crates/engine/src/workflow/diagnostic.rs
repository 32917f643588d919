//! The problems of a file, as data.
//!
//! A diagnostic has a stable code with a page of its own, a span, a clause that reads after "error: ",
//! and a separate help text. Rendering is done elsewhere.

use std::fmt;

use strsim::osa_distance;

use super::source::Span;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $word:literal $severity:ident;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum DiagnosticCode { $($(#[$doc])* $name,)* }

        impl DiagnosticCode {
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Also the name of the page about the code.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// Whether it keeps the workflow from running.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    Syntax = "syntax" Error;
    Empty = "empty" Error;
    /// The file is larger or nested deeper than the limits.
    TooLarge = "too-large" Error;
    DuplicateKey = "duplicate-key" Error;
    UnknownKey = "unknown-key" Error;
    MissingKey = "missing-key" Error;
    /// A value of the wrong kind, or out of range.
    WrongValue = "wrong-value" Error;
    Conflict = "conflict" Error;
    DuplicateId = "duplicate-id" Error;
    /// A `${…}` whose name is not known.
    UnknownName = "unknown-name" Error;
    BadExpression = "bad-expression" Error;
    /// A rule that holds, for a command without a breaker.
    NoBreaker = "no-breaker" Error;
    Unreachable = "unreachable" Error;
    Cycle = "cycle" Error;
    /// A part of another system's language that is not supported.
    Unsupported = "unsupported" Error;
    BudgetBelowFirstDelay = "budget-below-first-delay" Warning;
    AttemptsPastDeadline = "attempts-past-deadline" Warning;
    RuleNeverMatches = "rule-never-matches" Warning;
    NoMaxRetries = "no-max-retries" Warning;
    PoolBelowItems = "pool-below-items" Warning;
    PoolAboveCeiling = "pool-above-ceiling" Warning;
    UnlimitedRetries = "unlimited-retries" Warning;
    /// Many items that are retried at the same time.
    NoJitter = "no-jitter" Warning;
    MapWithoutBreaker = "map-without-breaker" Warning;
    /// A setting that another one disables.
    NoEffect = "no-effect" Warning;
}

impl fmt::Display for DiagnosticCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    Error,
    /// The workflow can run, but probably not as intended.
    Warning,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub code: DiagnosticCode,
    pub span: Span,
    /// A lower-case clause.
    pub message: String,
    pub help: Option<String>,
    /// Another part of the file, and how it is related.
    pub related: Option<(Span, String)>,
}

impl Diagnostic {
    pub(crate) fn new(code: DiagnosticCode, span: Span, message: impl Into<String>) -> Self {
        Self { code, span, message: message.into(), help: None, related: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn related(mut self, span: Span, why: impl Into<String>) -> Self {
        self.related = Some((span, why.into()));
        self
    }
}

/// At most `MOST` diagnostics are kept; the others are counted.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    pub(crate) found: Vec<Diagnostic>,
    pub(crate) omitted: usize,
}

impl Problems {
    /// A file of ten megabytes can have a million problems.
    const MOST: usize = 1000;

    pub(crate) fn push(&mut self, problem: Diagnostic) {
        if self.is_full() {
            self.count();
        } else {
            self.found.push(problem);
        }
    }

    /// Whether another problem would only be counted, so that its message need not be built.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= Self::MOST
    }

    pub(crate) fn count(&mut self) {
        self.omitted = self.omitted.saturating_add(1);
    }

    /// For a problem that several parts of the file share.
    pub(crate) fn push_once(&mut self, problem: Diagnostic) {
        if !self.found.contains(&problem) {
            self.push(problem);
        }
    }
}

/// The known word nearest to an unknown one; `None` if none is near.
pub(crate) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // Comparing takes quadratic time, so long words are not compared.
    const LONGEST: usize = 64;
    let length = word.chars().count();
    // A third of the letters may differ: `retires` suggests `retries`, `claude` does not suggest `shell`.
    let most = if length > LONGEST { 0 } else { length / 3 };
    let known = known.into_iter().filter(|known| known.chars().count().abs_diff(length) <= most);
    let near = known.map(|known| (osa_distance(word, known), known));
    near.filter(|(distance, _)| *distance <= most && most > 0)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_word_suggests_the_nearest_known_one() {
        let known = ["retry_config", "attempts", "shell", "timeout"];
        let near = |word| nearest(word, known);
        assert_eq!(near("retry_cofnig"), Some("retry_config"));
        assert_eq!(near("atempts"), Some("attempts"));
        assert_eq!(near("shel"), Some("shell"));
        assert_eq!(near("claude"), None);
        assert_eq!(near(""), None);
    }
}
