//! Reads quotes: single quotes, `$'…'`, double quotes, backslashes.
//!
//! In single quotes only our references count, so these are read to their end at once. A reference
//! there closes the quotes, stands in double quotes, and opens them again.

use super::commands::{Closer, Commands};
use super::frame::{Frame, Next};
use super::lexer::Lexer;
use super::obstacle::Obstacle;
use super::spot::Spot;
use crate::workflow::template::dollar::Dollar;
use crate::workflow::template::reader::Found;

impl<'t> Lexer<'t, '_> {
    pub(super) fn in_double(&mut self, again: bool, c: char) -> Next<'t> {
        match c {
            // Shells remove different backslashes from a command there.
            '`' if again => {
                self.doubt(Obstacle::Backquotes);
                self.open_backquotes(Spot::Double)
            }
            '"' => {
                self.cursor.bump();
                Next::Close
            }
            '\\' | '`' | '$' => self.in_word(Spot::Double, c),
            _ => self.take(1),
        }
    }

    pub(super) fn escape(&mut self) -> Next<'t> {
        if self.cursor.second_char() == Some('"') && self.cursor.in_body_backquotes() {
            self.doubt(Obstacle::Backquotes);
        }
        self.cursor.bump();
        // A backslash cannot escape the end of the backquotes at this layer.
        if self.cursor.peek_char().is_some() {
            self.cursor.set_joins(false);
            self.cursor.bump();
            self.cursor.set_joins(true);
        }
        Next::Stay
    }

    pub(super) fn open_backquotes(&mut self, spot: Spot) -> Next<'t> {
        self.cursor.bump();
        let Some(layer) = self.cursor.open_layer(spot.layer()) else {
            self.doubt(Obstacle::Backquotes);
            return Next::Stay;
        };
        let commands = Commands::new(Closer::Backquote(layer), self.waiting.len());
        Next::Open(Frame::Commands(commands))
    }

    pub(super) fn single_quotes(&mut self) {
        self.cursor.bump();
        self.cursor.set_joins(false);
        let mut closed = false;
        while !closed && let Some(c) = self.cursor.peek_char() {
            closed = c == '\'';
            match c {
                '$' => self.literal_dollar(),
                _ => self.cursor.skip(1),
            }
        }
        self.end_quotes(closed);
    }

    fn end_quotes(&mut self, closed: bool) {
        if !closed {
            // Shells differ in how they treat the end of the text, or of the backquotes around.
            self.doubt(Obstacle::Backquotes);
        }
        self.cursor.set_joins(true);
    }

    /// A `$` where only our references count.
    fn literal_dollar(&mut self) {
        let start = self.cursor.at();
        let dollar = Dollar::at(&self.cursor);
        if dollar == Dollar::Brace && !self.brace(Spot::Single) {
            return;
        }
        self.cursor.skip(dollar.length());
        if dollar == Dollar::Literal {
            self.literal(start..self.cursor.at(), Spot::Single);
        }
    }

    /// `$'…'`, from behind its first quote. A shell that does not know it reads a `$` and single
    /// quotes; quotes that are opened again get their `$` only if backslashes follow, so that both
    /// kinds of shell read what they would have read.
    pub(super) fn dollar_quotes(&mut self) {
        self.cursor.set_joins(false);
        let mut reopened = None;
        let mut escapes = false;
        let mut closed = false;
        while !closed && let Some(c) = self.cursor.peek_char() {
            closed = c == '\'';
            match c {
                '\\' => {
                    escapes = true;
                    self.cursor.skip(2);
                }
                '$' => {
                    if let Some(edit) = self.dollar_in_quotes() {
                        self.reopen(reopened.replace(edit), escapes);
                        escapes = false;
                    }
                }
                _ => self.cursor.skip(1),
            }
        }
        self.reopen(reopened, escapes);
        self.end_quotes(closed);
    }

    fn reopen(&mut self, edit: Option<usize>, escapes: bool) {
        if let Some(edit) = edit {
            self.edits.append(edit, if escapes { "$'" } else { "'" });
        }
    }

    /// Returns the edit that must open the quotes again, if the `$` closed them.
    fn dollar_in_quotes(&mut self) -> Option<usize> {
        if Dollar::at(&self.cursor) != Dollar::Brace {
            self.literal_dollar();
            return None;
        }
        match self.reader.read(&mut self.cursor) {
            Found::Foreign => self.cursor.skip(2),
            Found::Refused(error) => self.report_error(error),
            Found::Ours(reference, range) => {
                let raw = reference.is_raw();
                let slot = self.admit(reference, &range)?;
                if raw {
                    self.edits.insert_raw(range, slot, false);
                } else {
                    let variable = self.edits.variable(slot);
                    let written = format!("'\"${{{variable}}}\"");
                    return Some(self.edits.replace(range, written));
                }
            }
        }
        None
    }
}
