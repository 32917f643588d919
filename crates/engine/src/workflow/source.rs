//! The text of a file, and places in it.

use std::ops::Range;

/// A part of the text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Where it begins.
    pub start: u32,
    /// Where it ends, exclusively.
    pub end: u32,
}

impl Span {
    pub(crate) fn new(range: Range<usize>) -> Self {
        let clamp = |offset| u32::try_from(offset).unwrap_or(u32::MAX);
        Self {
            start: clamp(range.start),
            end: clamp(range.end),
        }
    }

    /// The same as a range of bytes.
    #[must_use]
    pub fn range(self) -> Range<usize> {
        let widen = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
        widen(self.start)..widen(self.end)
    }
}

/// Where a part of the text begins, as people count: from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

/// The text of one file.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: String,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl Source {
    /// The largest file that is read.
    pub const MOST_BYTES: usize = 64 << 20;

    /// A text and what to call it in messages. A byte order mark is dropped.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        let breaks = text.match_indices('\n').map(|(at, _)| at.saturating_add(1));
        Self {
            name: name.into(),
            lines: std::iter::once(0).chain(breaks).collect(),
            text,
        }
    }

    /// What the file is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it says.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where this part of the text begins.
    #[must_use]
    pub fn position(&self, span: Span) -> Position {
        let at = span.range().start.min(self.text.len());
        let line = self.lines.partition_point(|start| *start <= at);
        let start = self
            .lines
            .get(line.saturating_sub(1))
            .copied()
            .unwrap_or_default();
        let before = self.text.get(start..at).unwrap_or_default();
        Position {
            line,
            column: before.chars().count().saturating_add(1),
        }
    }

    /// The whole lines in which these parts of the text stand, and the number of the first.
    #[must_use]
    pub fn lines(&self, first: Span, last: Span) -> (usize, Range<usize>) {
        let number = self.position(first).line;
        let start = self
            .lines
            .get(number.saturating_sub(1))
            .copied()
            .unwrap_or_default();
        let end = self.lines.get(self.end(last).line).copied();
        (number, start..end.unwrap_or(self.text.len()))
    }

    /// Where it ends.
    #[must_use]
    pub fn end(&self, span: Span) -> Position {
        let start = span.end;
        self.position(Span { start, ..span })
    }

    /// Where `needle` stands inside of `span`, or all of `span` if it does not stand there to the
    /// letter, as in a quoted text with escapes.
    pub(crate) fn find(&self, span: Span, needle: &str) -> Span {
        let within = self.text.get(span.range()).unwrap_or_default();
        match within.find(needle) {
            Some(at) if !needle.is_empty() => {
                let start = span.range().start.saturating_add(at);
                Span::new(start..start.saturating_add(needle.len()))
            }
            _ => span,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_counts_characters_not_bytes() {
        let source = Source::new("x", "\u{feff}aé: 1\r\nö: zwei\n");
        let at = source.text().find("zwei").unwrap();
        let position = source.position(Span::new(at..at + 4));
        assert_eq!((position.line, position.column), (2, 4));
    }
}
