//! The text of a file, and positions in it.

use std::ops::Range;

/// In bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub start: u32,
    /// Exclusive.
    pub end: u32,
}

impl Span {
    pub(crate) fn new(range: Range<usize>) -> Self {
        let clamp = |offset| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: clamp(range.start), end: clamp(range.end) }
    }

    pub fn range(self) -> Range<usize> {
        let widen = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
        widen(self.start)..widen(self.end)
    }
}

/// Counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    /// In characters.
    pub column: usize,
}

#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: String,
    /// The byte at which each line begins.
    lines: Vec<usize>,
}

impl Source {
    pub const MOST_BYTES: usize = 64 << 20;

    /// `name` is for messages. A byte order mark is dropped.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        let breaks = text.match_indices('\n').map(|(at, _)| at.saturating_add(1));
        Self { name: name.into(), lines: std::iter::once(0).chain(breaks).collect(), text }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The position at which the span begins.
    pub fn position(&self, span: Span) -> Position {
        let at = span.range().start.min(self.text.len());
        let line = self.lines.partition_point(|start| *start <= at);
        let start = self.line_start(line);
        let before = self.text.get(start..at).unwrap_or_default();
        Position { line, column: before.chars().count().saturating_add(1) }
    }

    fn line_start(&self, number: usize) -> usize {
        self.lines.get(number.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// The number of the first line, and the bytes of all lines from the first span to the last.
    pub fn lines(&self, first: Span, last: Span) -> (usize, Range<usize>) {
        let number = self.position(first).line;
        let start = self.line_start(number);
        let end = self.lines.get(self.end(last).line).copied();
        (number, start..end.unwrap_or(self.text.len()))
    }

    pub fn end(&self, span: Span) -> Position {
        let start = span.end;
        self.position(Span { start, ..span })
    }

    /// The span of `needle` within `span`; all of `span` if it is not found.
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

    /// The span of a part of a text value. The value was read from `span`, where it may be indented,
    /// quoted or folded: both are compared character by character, skipping what only the file has.
    pub(crate) fn locate(&self, span: Span, value: &str, part: Range<usize>) -> Span {
        let written = self.text.get(span.range()).unwrap_or_default();
        // The header of a block (`|`, `>-`) is not part of its value.
        let header = if written.starts_with(['|', '>']) { written.find('\n').unwrap_or(0) } else { 0 };
        let mut places = written.char_indices().skip_while(|(at, _)| *at < header);
        let (mut start, mut end) = (None, None);
        for (at, expected) in value.char_indices() {
            if at >= part.end {
                break;
            }
            // A line break of the value may be folded from a space, and the other way round.
            let same = |c: char| c == expected || (c.is_whitespace() && expected.is_whitespace());
            let Some((place, c)) = places.find(|(_, c)| same(*c)) else {
                return span;
            };
            if at >= part.start {
                start = start.or(Some(place));
                end = Some(place.saturating_add(c.len_utf8()));
            }
        }
        let base = span.range().start;
        match (start, end) {
            (Some(start), Some(end)) => Span::new(base.saturating_add(start)..base.saturating_add(end)),
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

    #[test]
    fn a_part_of_a_value_is_found_where_it_stands_in_the_file() {
        for (text, value, part, line, column) in [
            ("a: x ${y} ${y}", "x ${y} ${y}", "${y}", 1, 11),
            ("a: 'it''s ${y}'", "it's ${y}", "${y}", 1, 11),
            ("a: |\n  one\n  two ${y}\n", "one\ntwo ${y}\n", "${y}", 3, 7),
            ("a: >-\n  one\n  two ${y}\n", "one two ${y}", "${y}", 3, 7),
        ] {
            let source = Source::new("x", text);
            let at = value.rfind(part).unwrap();
            let span = source.locate(Span::new(3..text.len()), value, at..at + part.len());
            let position = source.position(span);
            assert_eq!((position.line, position.column), (line, column), "{text}");
            assert_eq!(&text[span.range()], part);
        }
    }
}
