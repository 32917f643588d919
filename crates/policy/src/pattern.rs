//! A regular expression that a rule or `retry_on` looks for in text.
//!
//! Without the feature `regex` a pattern cannot be made, so nothing can be asked to match one: the
//! type is then empty, and code that handles patterns still compiles and costs nothing.

#[cfg(feature = "regex")]
mod with_regex {
    use core::fmt;

    /// What one expression may take up: a hundred of them must not fill a machine.
    const MOST_MEMORY: usize = 1 << 20;

    /// A compiled regular expression, equal to another if their texts are equal.
    #[derive(Clone)]
    pub struct Pattern(regex::Regex);

    impl Pattern {
        /// Compiles a regular expression (the syntax of the `regex` crate; linear in time).
        ///
        /// # Errors
        /// What is wrong with the expression, in one sentence.
        pub fn new(text: &str) -> Result<Self, String> {
            match regex::RegexBuilder::new(text).size_limit(MOST_MEMORY).build() {
                Ok(regex) => Ok(Self(regex)),
                Err(regex::Error::CompiledTooBig(_)) => Err("it is too large".to_owned()),
                // The full message draws the expression over several lines; its last line is the sentence.
                Err(error) => Err(last_line(&error.to_string())),
            }
        }

        /// Whether the text holds what the expression describes.
        #[must_use]
        pub fn found_in(&self, text: &str) -> bool {
            self.0.is_match(text)
        }

        /// The expression.
        #[must_use]
        pub fn as_str(&self) -> &str {
            self.0.as_str()
        }
    }

    fn last_line(message: &str) -> String {
        let line = message.lines().last().unwrap_or_default();
        line.trim_start_matches("error: ").to_owned()
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
}

#[cfg(feature = "regex")]
pub use with_regex::Pattern;

/// There are no patterns without the feature `regex`.
#[cfg(not(feature = "regex"))]
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {}

#[cfg(not(feature = "regex"))]
impl Pattern {
    /// Always refuses: this build has no regular expressions.
    ///
    /// # Errors
    /// Says which feature is missing.
    pub fn new(_text: &str) -> Result<Self, String> {
        Err("this build cannot match patterns (feature `regex` is off)".to_owned())
    }

    /// Never asked: there is no such pattern.
    #[must_use]
    pub fn found_in(&self, _text: &str) -> bool {
        match *self {}
    }

    /// Never asked: there is no such pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match *self {}
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
