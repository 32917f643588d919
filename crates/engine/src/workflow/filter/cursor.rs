//! A cursor over a text that only moves forward.
//!
//! It never goes back, so parsing is linear, and it always stands between two characters, so slicing
//! cannot fail. Of the grammar it knows only what a name is.

use std::ops::Range;

use super::syntax_error::SyntaxError;

#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn peek_second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at = self.at.saturating_add(next.len_utf8());
        Some(next)
    }

    pub(super) fn eat(&mut self, expected: &str) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.at = self.at.saturating_add(expected.len());
        }
        found
    }

    pub(super) fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at = self.at.saturating_add(length);
        rest.get(..length).unwrap_or_default()
    }

    pub(super) fn skip_blank(&mut self) {
        self.take_while(char::is_whitespace);
    }

    /// A name without quotes; empty if none comes next.
    pub(super) fn name(&mut self) -> &'t str {
        match self.peek() {
            Some(first) if begins_name(first) => self.take_while(continues_name),
            _ => "",
        }
    }

    pub(super) fn since(&self, start: usize) -> Range<usize> {
        start..self.at
    }

    /// The next character, or the empty range at the end.
    pub(super) fn next_range(&self) -> Range<usize> {
        let length = self.peek().map_or(0, char::len_utf8);
        self.at..self.at.saturating_add(length)
    }

    /// Says in a message what comes next: a whole word rather than its first letter.
    pub(super) fn next_in_words(&self) -> String {
        let mut ahead = *self;
        let word = ahead.take_while(continues_name);
        match (word, self.peek()) {
            (_, None) => "the end".to_owned(),
            ("", Some(next)) => shown(next.encode_utf8(&mut [0; 4])),
            (word, Some(_)) => shown(word),
        }
    }

    pub(super) fn expected(&self, what: &str) -> SyntaxError {
        let message = format!("expected {what}, found {}", self.next_in_words());
        SyntaxError::new(self.next_range(), message)
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }
}

pub(super) fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// There is no arithmetic, so a hyphen is part of a name: `item.content-type`.
pub(super) fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// A piece of the text inside a message: marked, on one line and not too long.
pub(super) fn shown(piece: &str) -> String {
    const MOST: usize = 30;
    let piece = piece.escape_debug().to_string().replace("\\'", "'");
    let piece = piece.replace("\\\"", "\"");
    match piece.char_indices().nth(MOST) {
        None => format!("`{piece}`"),
        Some((most, _)) => format!("`{}…`", piece.get(..most).unwrap_or_default()),
    }
}
