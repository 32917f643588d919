//! A filter: a yes-or-no question about one item.
//!
//! Reading it is where everything that can be wrong is found; asking it cannot fail. It changes
//! nothing and keeps no state, so it may be asked about items in any order.

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
    /// Reads a filter.
    ///
    /// # Errors
    /// Where the text stops being a filter, why, and what to write instead.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let root = parser::parse(text)?;
        Ok(Self {
            text: text.to_owned(),
            root,
        })
    }

    /// Whether the filter holds for the item.
    pub fn matches(&self, item: &Value) -> bool {
        self.root.holds_for(item)
    }

    /// The filter as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests;
