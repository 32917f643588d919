//! Why a template was refused, and where.

use std::ops::Range;

/// Parsing of a template stops after so many errors.
pub(super) const MOST_ERRORS: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// Bytes of the template's text.
    pub range: Range<usize>,
    /// A lower-case clause.
    pub message: String,
    pub help: Option<String>,
}
