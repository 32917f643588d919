//! One here-document: how it ends, and whether its body is expanded.
//!
//! Plain data, and escaping for a literal body; the lexer finds delimiters and reads bodies
//! (`in_here_documents.rs`).

use std::collections::VecDeque;
use std::ops::Range;

#[derive(Debug)]
pub(super) struct HereDocument {
    /// The line that ends it, quotes removed.
    pub(super) delimiter: String,
    /// Whether the delimiter is quoted, so that the body is literal.
    pub(super) quoted: bool,
    /// Whether it is `<<-`: tabs before the delimiter do not count.
    pub(super) strips_tabs: bool,
    pub(super) word: Range<usize>,
}

impl HereDocument {
    /// Whether the delimiter needs no quotes: nothing in it means anything to the shell.
    pub(super) fn is_plain(&self) -> bool {
        let plain = |c: char| c.is_alphanumeric() || "_-.!%+,:@/".contains(c);
        // `<<-x` would take the `-` for its own.
        !self.delimiter.is_empty() && !self.delimiter.starts_with('-') && self.delimiter.chars().all(plain)
    }
}

/// The bodies that begin on one line, in their order.
#[derive(Debug)]
pub(super) struct Bodies {
    pub(super) current: HereDocument,
    pub(super) rest: VecDeque<HereDocument>,
    /// Whether the next character begins a line, which may be the delimiter.
    pub(super) at_line: bool,
}

impl Bodies {
    /// `None` without documents.
    pub(super) fn of(documents: impl Iterator<Item = HereDocument>) -> Option<Self> {
        let mut rest: VecDeque<_> = documents.collect();
        Some(Self { current: rest.pop_front()?, rest, at_line: true })
    }
}

/// Escapes a text for a here-document that is expanded.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '$' | '`') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
