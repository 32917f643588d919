//! Reads quotes (single quotes, `$'…'`, double quotes, backslashes) and what a `$` begins: `${…}`,
//! `$(…)`, `$((…))` and the rest.
//!
//! In single quotes only our references count, so these are read to their end at once. A reference
//! there closes the quotes, stands in double quotes, and opens them again. A command inside an expansion
//! starts afresh, quotes around it or not. Arithmetic takes no reference, however deep inside: some
//! shells execute a value there.

use super::commands::{Closer, Commands};
use super::frame::{ArithmeticExpansion, Frame, FrameChange, ParameterExpansion, ParameterStage};
use super::lexer::{ForeignBrace, ShellLexer};
use super::obstacle::Obstacle;
use crate::workflow::cursor::QuoteContext;
use crate::workflow::template::reader::Dollar;

impl<'t> ShellLexer<'t, '_> {
    pub(super) fn in_double(&mut self, again: bool, c: char) -> FrameChange<'t> {
        match c {
            // Shells remove different backslashes from a command there.
            '`' if again => {
                self.doubt(Obstacle::Backquotes);
                self.open_backquotes(QuoteContext::Double)
            }
            '"' => {
                self.cursor.bump();
                FrameChange::Close
            }
            '\\' | '`' | '$' => self.in_word(QuoteContext::Double, c),
            _ => self.take(1),
        }
    }

    pub(super) fn escape(&mut self) -> FrameChange<'t> {
        if self.cursor.peek_second() == Some('"') && self.cursor.in_here_document_backquotes() {
            self.doubt(Obstacle::Backquotes);
        }
        self.cursor.bump();
        // A backslash cannot escape the end of the backquotes at this layer.
        if self.cursor.peek().is_some() {
            self.cursor.set_joins(false);
            self.cursor.bump();
            self.cursor.set_joins(true);
        }
        FrameChange::Stay
    }

    pub(super) fn open_backquotes(&mut self, context: QuoteContext) -> FrameChange<'t> {
        self.cursor.bump();
        let Some(layer) = self.cursor.open_layer(context) else {
            self.doubt(Obstacle::Backquotes);
            return FrameChange::Stay;
        };
        let commands = Commands::new(Closer::Backquote(layer), self.waiting.len());
        FrameChange::Open(Frame::Commands(commands))
    }

    pub(super) fn single_quotes(&mut self) {
        self.cursor.bump();
        self.cursor.set_joins(false);
        let mut closed = false;
        while !closed && let Some(c) = self.cursor.peek() {
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
        if dollar == Dollar::Brace && self.brace(QuoteContext::Single).is_ok() {
            return;
        }
        self.cursor.skip(dollar.length());
        if dollar == Dollar::Literal {
            self.literal(start..self.cursor.at(), QuoteContext::Single);
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
        while !closed && let Some(c) = self.cursor.peek() {
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
        match self.reference() {
            Err(ForeignBrace) => {
                self.cursor.skip(2);
                None
            }
            Ok(read) => self.place(read?, false, |variable| format!("'\"${{{variable}}}\"")),
        }
    }

    pub(super) fn dollar(&mut self, context: QuoteContext) -> FrameChange<'t> {
        let start = self.cursor.at();
        if self.cursor.is_at("$${") {
            self.cursor.skip(3);
            self.literal(start..self.cursor.at(), context);
            return FrameChange::Stay;
        }
        match self.cursor.peek_second() {
            Some('{') => {
                if self.brace(context).is_ok() {
                    return FrameChange::Stay;
                }
                self.cursor.skip(2);
                FrameChange::Open(Frame::Parameter(ParameterExpansion::new(context)))
            }
            Some('(') if self.cursor.starts_with("$((") => self.arithmetic(3, false),
            Some('(') => {
                self.cursor.skip(2);
                self.substitution()
            }
            Some('[') => self.arithmetic(2, true),
            Some('\'') if context == QuoteContext::Bare => {
                self.cursor.skip(2);
                self.dollar_quotes();
                FrameChange::Stay
            }
            Some('$' | '#' | '?' | '*' | '@' | '!' | '-' | '0'..='9') => self.take(2),
            _ => self.take(1),
        }
    }

    pub(super) fn substitution(&mut self) -> FrameChange<'t> {
        let commands = Commands::new(Closer::Substitution, self.waiting.len());
        FrameChange::Open(Frame::Commands(commands))
    }

    fn arithmetic(&mut self, length: usize, bracket: bool) -> FrameChange<'t> {
        self.cursor.skip(length);
        FrameChange::Open(Frame::Arithmetic(ArithmeticExpansion { depth: 0, bracket }))
    }

    pub(super) fn in_arithmetic(&mut self, arithmetic: &mut ArithmeticExpansion, c: char) -> FrameChange<'t> {
        let (open, close) = if arithmetic.bracket { ('[', ']') } else { ('(', ')') };
        match c {
            '\\' | '`' | '$' => return self.in_word(QuoteContext::Double, c),
            '"' | '\'' | '\n' if arithmetic.bracket => {
                // Where `$[` means nothing this is the end of a word, or the beginning of a quote.
                self.doubt(Obstacle::Bracket);
                return FrameChange::Close;
            }
            _ => {}
        }
        self.cursor.bump();
        if c == open {
            arithmetic.depth = arithmetic.depth.saturating_add(1);
        } else if c == close {
            if arithmetic.depth == 0 {
                return self.end_arithmetic(arithmetic.bracket);
            }
            arithmetic.depth = arithmetic.depth.saturating_sub(1);
        }
        FrameChange::Stay
    }

    fn end_arithmetic(&mut self, bracket: bool) -> FrameChange<'t> {
        if !bracket {
            if self.cursor.peek() == Some(')') {
                self.cursor.bump();
            } else {
                self.doubt(Obstacle::Parentheses);
            }
        }
        FrameChange::Close
    }

    pub(super) fn in_parameter(&mut self, parameter: &mut ParameterExpansion, c: char) -> FrameChange<'t> {
        match parameter.stage {
            ParameterStage::Name { begun } => self.in_name(parameter, begun, c),
            ParameterStage::Colon => {
                parameter.stage = match c {
                    '-' | '=' | '?' | '+' => {
                        self.cursor.bump();
                        let assigns = c == '=';
                        ParameterStage::Word { assigns }
                    }
                    _ => ParameterStage::Offset,
                };
                FrameChange::Stay
            }
            ParameterStage::Subscript(depth) => {
                match c {
                    '[' => parameter.stage = ParameterStage::Subscript(depth.saturating_add(1)),
                    ']' if depth <= 1 => parameter.stage = ParameterStage::Name { begun: true },
                    ']' => parameter.stage = ParameterStage::Subscript(depth.saturating_sub(1)),
                    _ => return self.in_operand(parameter, c),
                }
                self.take(1)
            }
            ParameterStage::Word { .. } | ParameterStage::Pattern { .. } | ParameterStage::Offset => {
                self.in_operand(parameter, c)
            }
        }
    }

    fn in_name(&mut self, parameter: &mut ParameterExpansion, begun: bool, c: char) -> FrameChange<'t> {
        let special = !begun && "!#?*@$-".contains(c);
        parameter.stage = match c {
            '$' if self.cursor.starts_with("${") && self.brace(QuoteContext::Bare).is_ok() => {
                return FrameChange::Stay;
            }
            '}' => {
                self.cursor.bump();
                return FrameChange::Close;
            }
            _ if special || c.is_ascii_alphanumeric() || c == '_' => ParameterStage::Name { begun: true },
            '[' if begun => ParameterStage::Subscript(1),
            ':' if begun => ParameterStage::Colon,
            '-' | '=' | '?' | '+' if begun => ParameterStage::Word { assigns: c == '=' },
            '%' | '#' | '/' | '^' | ',' | '@' | '~' | '*' if begun => {
                let replaces = c == '/';
                ParameterStage::Pattern { replaces }
            }
            _ => {
                self.doubt(Obstacle::Substitution);
                parameter.stage = ParameterStage::Word { assigns: false };
                return FrameChange::Stay;
            }
        };
        self.take(1)
    }

    fn in_operand(&mut self, parameter: &mut ParameterExpansion, c: char) -> FrameChange<'t> {
        let context = parameter.context();
        match c {
            '}' => {
                if parameter.apostrophe {
                    self.doubt(Obstacle::Apostrophe);
                }
                self.cursor.bump();
                FrameChange::Close
            }
            '\'' if parameter.quotes_singly() => self.in_word(context, c),
            '\'' => {
                if matches!(parameter.stage, ParameterStage::Pattern { .. }) {
                    self.doubt(Obstacle::Apostrophe);
                }
                parameter.apostrophe = !parameter.apostrophe;
                self.take(1)
            }
            '"' => {
                if parameter.apostrophe {
                    self.doubt(Obstacle::Apostrophe);
                }
                self.cursor.bump();
                let again = parameter.outer != QuoteContext::Bare;
                FrameChange::Open(Frame::Double { again })
            }
            '\\' | '`' | '$' => self.in_word(context, c),
            _ => self.take(1),
        }
    }
}
