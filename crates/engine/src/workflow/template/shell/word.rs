//! The word being read, as far as it matters for what follows.
//!
//! A word may be a keyword (`case` changes what a `)` means), an assignment, or end in a subscript that
//! some shells evaluate. Only a word without quotes or expansions can be a keyword, and keywords are
//! short, so only a few characters are kept.

use crate::workflow::template::cursor::Cursor;

/// No keyword or operator that matters is longer.
const MOST_KEPT: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Nothing, or a name.
    Name,
    /// A name and `+`, perhaps of `+=`.
    Plus,
    /// In brackets behind a name, so many deep.
    Subscript(usize),
    /// Behind a name and `=`.
    Assignment,
    Other,
}

#[derive(Debug)]
pub(super) struct Word<'t> {
    kept: String,
    whole: bool,
    last: Option<char>,
    shape: Shape,
    /// References placed before it.
    pub(super) first_reference: usize,
    pub(super) start: Cursor<'t>,
}

impl<'t> Word<'t> {
    pub(super) fn new(first_reference: usize, start: Cursor<'t>) -> Self {
        Self { kept: String::new(), whole: true, last: None, shape: Shape::Name, first_reference, start }
    }

    /// `c` is not quoted. In the list of an array a word may begin with a subscript.
    pub(super) fn push(&mut self, c: char, in_array: bool) {
        let empty = self.last.is_none() && self.kept.is_empty();
        self.shape = match (self.shape, c) {
            (Shape::Name, '_' | 'a'..='z' | 'A'..='Z') | (Shape::Subscript(1), ']') => Shape::Name,
            (Shape::Name, '0'..='9') if !empty => Shape::Name,
            (Shape::Name, '[') if !empty || in_array => Shape::Subscript(1),
            (Shape::Name, '+') if !empty => Shape::Plus,
            (Shape::Name | Shape::Plus, '=') if !empty => Shape::Assignment,
            (Shape::Subscript(depth), ']') => Shape::Subscript(depth.saturating_sub(1)),
            (Shape::Subscript(depth), '[') => Shape::Subscript(depth.saturating_add(1)),
            (kept @ (Shape::Subscript(_) | Shape::Assignment), _) => kept,
            _ => Shape::Other,
        };
        if self.kept.len() < MOST_KEPT {
            self.kept.push(c);
        } else {
            self.whole = false;
        }
        self.last = Some(c);
    }

    /// Adds something quoted or expanded.
    pub(super) fn push_quoted(&mut self) {
        self.whole = false;
        self.last = None;
        if !matches!(self.shape, Shape::Subscript(_) | Shape::Assignment) {
            self.shape = Shape::Other;
        }
    }

    /// Empty if it cannot be a keyword.
    pub(super) fn keyword(&self) -> &str {
        if self.whole { &self.kept } else { "" }
    }

    /// Whether it is a file descriptor before a redirection.
    pub(super) fn is_number(&self) -> bool {
        let keyword = self.keyword();
        !keyword.is_empty() && keyword.chars().all(|c| c.is_ascii_digit())
    }

    /// Whether a `(` directly behind it begins a list of words: an array, or a pattern of bash.
    pub(super) fn opens_words(&self) -> bool {
        match self.last {
            Some('=') => self.is_assignment(),
            // `!` alone negates, and a subshell follows.
            Some('?' | '*' | '+' | '@' | '!') => self.keyword() != "!",
            _ => false,
        }
    }

    pub(super) fn is_assignment(&self) -> bool {
        self.shape == Shape::Assignment
    }

    pub(super) fn in_subscript(&self) -> bool {
        matches!(self.shape, Shape::Subscript(_))
    }
}
