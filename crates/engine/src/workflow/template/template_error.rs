//! Why a template was refused, and where.
//!
//! The message says what is wrong, the help what to write instead; drawing the mark below the
//! line is for whoever prints it.

use std::ops::Range;

/// How many errors of one template are told; after them it is not read any further.
pub(super) const MOST_ERRORS: usize = 1000;

/// Why a template was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// The bytes of the template's text that are refused.
    pub range: Range<usize>,
    /// What is wrong: a lower-case clause.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}
