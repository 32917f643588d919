//! Reads here-documents: the delimiter where it is written, the body where it begins.
//!
//! A body with a quoted delimiter is literal and could hold no variable. If it holds a reference, the
//! delimiter loses its quotes and the rest of the body is escaped, so that the same text comes out and
//! only the variable is expanded.

use std::ops::Range;

use super::frame::{Bodies, FrameChange, HereDocument, escaped};
use super::lexer::ShellLexer;
use super::obstacle::Obstacle;
use crate::workflow::cursor::{Cursor, CursorToken, QuoteContext};
use crate::workflow::template::reader::Dollar;
use crate::workflow::template::reference::Reference;

enum BodyText {
    Literal,
    Reference(Reference),
}

impl<'t> ShellLexer<'t, '_> {
    pub(super) fn delimiter(&mut self) {
        let strips_tabs = self.cursor.peek() == Some('-');
        if strips_tabs {
            self.cursor.bump();
        }
        while let Some(' ' | '\t') = self.cursor.peek() {
            self.cursor.bump();
        }
        let start = self.cursor.at();
        let mut delimiter = String::new();
        let mut quoted = false;
        while let Some(c) = self.cursor.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\'' | '"' => {
                    quoted = true;
                    self.quoted_delimiter(c, &mut delimiter);
                }
                '\\' => {
                    quoted = true;
                    self.cursor.bump();
                    delimiter.extend(self.cursor.bump());
                }
                '$' | '`' => self.dollar_in_delimiter(&mut delimiter, false),
                _ => {
                    delimiter.push(c);
                    self.cursor.bump();
                }
            }
        }
        let word = start..self.cursor.at();
        if delimiter.contains('\n') {
            self.doubt(Obstacle::HereDocument);
        }
        if quoted || !delimiter.is_empty() {
            self.waiting.push(HereDocument { delimiter, quoted, strips_tabs, word });
        }
    }

    fn quoted_delimiter(&mut self, quote: char, delimiter: &mut String) {
        self.cursor.bump();
        self.cursor.set_joins(quote == '"');
        while let Some(c) = self.cursor.peek() {
            let hidden = self.cursor.peek_second();
            match c {
                '$' => self.dollar_in_delimiter(delimiter, quote == '\''),
                '\\' if quote == '"' && matches!(hidden, Some('"' | '\\' | '$' | '`')) => {
                    delimiter.extend(hidden);
                    self.cursor.skip(2);
                }
                _ => {
                    self.cursor.bump();
                    if c == quote {
                        break;
                    }
                    delimiter.push(c);
                }
            }
        }
        self.cursor.set_joins(true);
    }

    /// Nothing is expanded in a delimiter, and outside of single quotes not every shell accepts what
    /// looks like an expansion.
    fn dollar_in_delimiter(&mut self, delimiter: &mut String, literal: bool) {
        if self.cursor.starts_with("${")
            && let Ok(read) = self.reference()
        {
            if let Some((reference, range)) = read {
                self.refuse(range, reference.text(), Obstacle::Delimiter);
            }
            return;
        }
        if !literal {
            self.doubt(Obstacle::HereDocument);
        }
        delimiter.extend(self.cursor.bump());
    }

    /// The place behind the delimiter, if this line is the delimiter.
    pub(super) fn behind_delimiter(mut cursor: Cursor<'t>, document: &HereDocument) -> Option<Cursor<'t>> {
        cursor.set_joins(false);
        while document.strips_tabs && cursor.peek() == Some('\t') {
            cursor.bump();
        }
        for expected in document.delimiter.chars() {
            // A delimiter of several lines ends nothing: the comparison stays within this line.
            if expected == '\n' || cursor.bump() != Some(expected) {
                return None;
            }
        }
        match cursor.peek_token() {
            None | Some(CursorToken::Backquote(_)) => {}
            Some(CursorToken::Char('\n')) => {
                cursor.bump();
            }
            Some(CursorToken::Char(_)) => return None,
        }
        cursor.set_joins(true);
        Some(cursor)
    }

    pub(super) fn in_bodies(&mut self, bodies: &mut Bodies, c: char) -> FrameChange<'t> {
        if std::mem::take(&mut bodies.at_line) {
            if let Some(behind) = Self::behind_delimiter(self.cursor, &bodies.current) {
                self.cursor = behind;
                bodies.at_line = true;
                return match bodies.rest.pop_front() {
                    Some(document) => {
                        bodies.current = document;
                        FrameChange::Stay
                    }
                    None => FrameChange::Close,
                };
            }
            if bodies.current.quoted {
                self.literal_body(&bodies.current);
                bodies.at_line = true;
                return FrameChange::Stay;
            }
            self.watch_joined_lines(&bodies.current);
        }
        self.cursor.settle();
        match c {
            '\\' | '`' | '$' => self.in_word(QuoteContext::HereDocument, c),
            _ => {
                bodies.at_line = c == '\n';
                self.take(1)
            }
        }
    }

    /// After joined lines, only some shells accept the delimiter.
    fn watch_joined_lines(&mut self, document: &HereDocument) {
        let mut joined = self.cursor;
        joined.settle();
        if joined.at() > self.cursor.at() && Self::behind_delimiter(joined, document).is_some() {
            self.doubt(Obstacle::HereDocument);
        }
    }

    /// Reads a literal body up to its delimiter, or to the end of the text.
    fn literal_body(&mut self, document: &HereDocument) {
        let start = self.cursor.at();
        let mut ours = vec![];
        self.cursor.set_joins(false);
        while let Some(c) = self.cursor.peek() {
            match c {
                '$' => ours.extend(self.ours_in_body()),
                _ => {
                    self.cursor.bump();
                }
            }
            if c == '\n' && Self::behind_delimiter(self.cursor, document).is_some() {
                break;
            }
        }
        self.cursor.set_joins(true);
        let end = self.cursor.at();
        let expands = |ours: &BodyText| matches!(ours, BodyText::Reference(it) if !it.is_raw());
        if ours.iter().any(|(_, ours)| expands(ours)) {
            self.expanded_body(document, start..end, ours);
        } else {
            // Without a variable in it, the body stays literal.
            for (range, ours) in ours {
                match ours {
                    BodyText::Literal => self.literal(range, QuoteContext::Single),
                    BodyText::Reference(reference) => {
                        self.place((reference, range), false, str::to_owned);
                    }
                }
            }
        }
    }

    fn ours_in_body(&mut self) -> Option<(Range<usize>, BodyText)> {
        let start = self.cursor.at();
        let dollar = Dollar::at(&self.cursor);
        if dollar == Dollar::Brace
            && let Ok(read) = self.reference()
        {
            return read.map(|(reference, range)| (range, BodyText::Reference(reference)));
        }
        self.cursor.skip(dollar.length());
        (dollar == Dollar::Literal).then(|| (start..self.cursor.at(), BodyText::Literal))
    }

    /// The body becomes one that is expanded, and everything but our variables is escaped.
    fn expanded_body(
        &mut self,
        document: &HereDocument,
        body: Range<usize>,
        ours: Vec<(Range<usize>, BodyText)>,
    ) {
        let obstacle = if self.cursor.in_backquotes() {
            Some(Obstacle::BackquotedBody)
        } else {
            (!document.is_plain()).then_some(Obstacle::OddDelimiter)
        };
        self.edits.replace(document.word.clone(), document.delimiter.clone());
        let mut hidden_to = body.start;
        for (range, ours) in ours {
            self.hide(hidden_to..range.start);
            hidden_to = range.end;
            match ours {
                BodyText::Literal => self.literal(range, QuoteContext::HereDocument),
                BodyText::Reference(reference) => self.in_expanded_body(range, reference, obstacle),
            }
        }
        self.hide(hidden_to..body.end);
    }

    fn in_expanded_body(&mut self, range: Range<usize>, reference: Reference, obstacle: Option<Obstacle>) {
        if let Some(obstacle) = obstacle {
            self.refuse(range, reference.text(), obstacle);
            return;
        }
        self.place((reference, range), true, |variable| QuoteContext::HereDocument.variable(variable));
    }

    fn hide(&mut self, range: Range<usize>) {
        let text = self.text.get(range.clone()).unwrap_or_default();
        if text.contains(['\\', '$', '`']) {
            self.edits.replace(range, escaped(text));
        }
    }
}
