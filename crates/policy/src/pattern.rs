//! The regular expressions of rules and `retry_on`.
//!
//! Without the feature `regex` no [`Pattern`] can be made: code that handles patterns still compiles, and
//! the compiler removes it.

use core::fmt;

use self::engine::Expression;

/// A compiled regular expression, equal to another if their texts are equal.
#[derive(Clone)]
pub struct Pattern(Expression);

impl Pattern {
    /// Compiles a regular expression (the syntax of the `regex` crate; linear in time).
    ///
    /// # Errors
    /// What is wrong with the expression, in one sentence; without the feature `regex`, always.
    pub fn new(text: &str) -> Result<Self, String> {
        engine::compile(text).map(Self)
    }

    /// Whether the text contains a match of the expression.
    #[must_use]
    pub fn found_in(&self, text: &str) -> bool {
        engine::is_match(&self.0, text)
    }

    /// The text of the expression.
    #[must_use]
    pub fn as_str(&self) -> &str {
        engine::text(&self.0)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.as_str())
    }
}

#[cfg(feature = "regex")]
mod engine {
    pub(super) use regex::Regex as Expression;

    /// The memory of one compiled expression, in bytes: a hundred of them must not fill a machine.
    const MAX_MEMORY: usize = 1 << 20;

    pub(super) fn compile(text: &str) -> Result<Expression, String> {
        match regex::RegexBuilder::new(text).size_limit(MAX_MEMORY).build() {
            Ok(expression) => Ok(expression),
            Err(regex::Error::CompiledTooBig(_)) => Err("it is too large".to_owned()),
            // The full message draws the expression over several lines; its last line is the sentence.
            Err(error) => {
                let message = error.to_string();
                let sentence = message.lines().last().unwrap_or_default();
                Err(sentence.trim_start_matches("error: ").to_owned())
            }
        }
    }

    pub(super) fn is_match(expression: &Expression, text: &str) -> bool {
        expression.is_match(text)
    }

    pub(super) fn text(expression: &Expression) -> &str {
        expression.as_str()
    }
}

#[cfg(not(feature = "regex"))]
mod engine {
    pub(super) use core::convert::Infallible as Expression;

    pub(super) fn compile(_text: &str) -> Result<Expression, String> {
        Err("this build cannot match patterns (feature `regex` is off)".to_owned())
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is the same as with the feature")]
    pub(super) const fn is_match(expression: &Expression, _text: &str) -> bool {
        match *expression {}
    }

    pub(super) const fn text(expression: &Expression) -> &str {
        match *expression {}
    }
}

#[cfg(all(test, feature = "regex"))]
mod tests {
    use super::*;

    #[test]
    fn a_broken_expression_is_explained_in_one_line() {
        assert_eq!(Pattern::new("(a").unwrap_err(), "unclosed group");
        assert_eq!(Pattern::new(r"\w{500}").unwrap_err(), "it is too large");
    }
}
