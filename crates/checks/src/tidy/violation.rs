//! One thing to put right, and where.
//!
//! Only data and its spelling; deciding what is wrong belongs to the rules.

use std::fmt;

/// A broken rule at a place. The order is that of a reader: path, then line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The file, from the root of the repository, with `/` between its parts.
    pub path: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}
