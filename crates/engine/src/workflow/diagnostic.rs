//! What is wrong with a file, as data.
//!
//! A diagnostic has a stable code with a page of its own, a span, a clause that reads after "error: ",
//! and a separate help text. Rendering is done elsewhere.

use std::fmt;

use super::source::Span;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $word:literal $severity:ident;)*) => {
        /// The kinds of problems a file can have.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum DiagnosticCode { $($(#[$doc])* $name,)* }

        impl DiagnosticCode {
            /// Every code there is.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name; the page about it has the same.
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
    /// The text is not YAML.
    Syntax = "syntax" Error;
    /// There is nothing in the file.
    Empty = "empty" Error;
    /// The file is larger or deeper than anything a person would write.
    TooLarge = "too-large" Error;
    /// A key stands twice in one mapping.
    DuplicateKey = "duplicate-key" Error;
    /// A key that has no meaning here.
    UnknownKey = "unknown-key" Error;
    /// A key that is needed here.
    MissingKey = "missing-key" Error;
    /// A value of the wrong kind, or outside of what is accepted.
    WrongValue = "wrong-value" Error;
    /// Two values for one setting.
    Conflict = "conflict" Error;
    /// An identifier used twice.
    DuplicateId = "duplicate-id" Error;
    /// A `${…}` that names nothing.
    UnknownName = "unknown-name" Error;
    /// A filter, an order or a path that cannot be read.
    BadExpression = "bad-expression" Error;
    /// A rule that holds, for a command without a breaker.
    NoBreaker = "no-breaker" Error;
    /// A flow that cannot reach a goal.
    Unreachable = "unreachable" Error;
    /// Steps that wait for each other.
    Cycle = "cycle" Error;
    /// Part of another system's language that is not part of this one.
    Unsupported = "unsupported" Error;
    /// A delay budget that does not allow even the first retry.
    BudgetBelowFirstDelay = "budget-below-first-delay" Warning;
    /// More attempts than fit before the deadline.
    AttemptsPastDeadline = "attempts-past-deadline" Warning;
    /// A rule that no failure can reach.
    RuleNeverMatches = "rule-never-matches" Warning;
    /// A `work_config` that retries nothing.
    NoMaxRetries = "no-max-retries" Warning;
    /// A pool with fewer retries than there are items.
    PoolBelowItems = "pool-below-items" Warning;
    /// A pool larger than the operator allows.
    PoolAboveCeiling = "pool-above-ceiling" Warning;
    /// Retries that nothing ever ends.
    UnlimitedRetries = "unlimited-retries" Warning;
    /// Many items that come back at the same time.
    NoJitter = "no-jitter" Warning;
    /// A map of HTTP requests that no breaker stands before.
    MapWithoutBreaker = "map-without-breaker" Warning;
    /// A setting that another one makes meaningless.
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
    /// The workflow can run, and may not do what was meant.
    Warning,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub code: DiagnosticCode,
    pub span: Span,
    /// A lower-case clause.
    pub message: String,
    pub help: Option<String>,
    /// A related place, and how it is related.
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
    /// A file of ten megabytes can be wrong a million times over.
    const MOST: usize = 1000;

    pub(crate) fn push(&mut self, problem: Diagnostic) {
        if self.is_full() {
            self.count();
        } else {
            self.found.push(problem);
        }
    }

    /// Whether a further problem would only be counted, so that its message need not be built.
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
    // A third of the letters may differ: `retires` is meant as `retries`, `claude` is not `shell`.
    // Long names are not compared: it takes quadratic time.
    let length = word.chars().count();
    let most = if length > LONGEST { 0 } else { length / 3 };
    let known = known.into_iter();
    let near = known.map(|known| (distance(word, known, most), known));
    near.filter(|(distance, _)| *distance <= most && most > 0)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

const LONGEST: usize = 64;

/// Insertions, deletions, changes and swaps of letters; `most` + 1 if more than `most`.
fn distance(a: &str, b: &str, most: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > most {
        return most.saturating_add(1);
    }
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut next = vec![i.saturating_add(1)];
        for (j, to) in b.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX);
            let changed = at(&row, j).saturating_add(usize::from(from != to));
            let left_out = at(&row, j.saturating_add(1)).saturating_add(1);
            let put_in = at(&next, j).saturating_add(1);
            let mut least = changed.min(left_out).min(put_in);
            let swapped = i > 0
                && j > 0
                && a.get(i.saturating_sub(1)) == Some(to)
                && b.get(j.saturating_sub(1)) == Some(from);
            if swapped {
                least = least.min(at(&before, j.saturating_sub(1)).saturating_add(1));
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_what_was_meant() {
        let known = ["retry_config", "attempts", "shell", "timeout"];
        let near = |word| nearest(word, known);
        assert_eq!(near("retry_cofnig"), Some("retry_config"));
        assert_eq!(near("atempts"), Some("attempts"));
        assert_eq!(near("shel"), Some("shell"));
        assert_eq!(near("claude"), None);
        assert_eq!(near(""), None);
    }
}
