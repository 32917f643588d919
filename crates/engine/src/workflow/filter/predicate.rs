//! A filter: a yes-or-no question about one item.
//!
//! Parsing finds everything that can be wrong; matching cannot fail and keeps no state.

use serde_json::Value;

use super::expression::Expression;
use super::parser;
use super::syntax_error::SyntaxError;

/// A checked `filter:` or `--where`.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    text: String,
    root: Expression,
}

impl Filter {
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let root = parser::parse(text)?;
        Ok(Self { text: text.to_owned(), root })
    }

    pub fn matches(&self, item: &Value) -> bool {
        self.root.holds_for(item)
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests;
