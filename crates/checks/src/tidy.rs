//! Whether the files keep the habits of the house.
//!
//! Reads every file of the repository once (`tree`) and asks each rule about it (`rules`). A
//! rule is a pure function from files to violations and decides nothing about taste that a
//! tool already decides: formatting is rustfmt's, idiom is clippy's.

mod markdown;
mod rules;
mod rust_code;
mod text_file;
mod tree;
mod violation;

pub use text_file::TextFile;
pub use tree::{Tree, TreeError};
pub use violation::Violation;

/// Every violation of every rule, sorted by path and line.
#[must_use]
pub fn violations(tree: &Tree) -> Vec<Violation> {
    let mut found: Vec<Violation> = rules::ALL.iter().flat_map(|rule| rule(tree)).collect();
    found.sort();
    found
}
