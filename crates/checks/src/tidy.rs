//! Conventions of this repository that neither rustfmt nor clippy checks.
//!
//! Every file of the repository is read once (`tree`) and handed to each rule (`rules`). A rule is a pure
//! function from files to violations.

use std::fmt;

mod markdown;
mod rules;
mod rust_source;
mod text_file;
mod tree;

pub use text_file::TextFile;
pub use tree::{SourceTree, TreeError};

/// A broken rule at a place, ordered by path and line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TidyViolation {
    /// From the root of the repository, with `/` between its parts.
    pub path: String,
    pub line: usize,
    /// What is wrong and what would be right.
    pub what: String,
}

impl fmt::Display for TidyViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// The violations of all rules, sorted.
pub fn violations(tree: &SourceTree) -> Vec<TidyViolation> {
    let mut violations: Vec<TidyViolation> = rules::ALL.iter().flat_map(|rule| rule(tree)).collect();
    violations.sort();
    violations
}
