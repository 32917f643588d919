//! Reads a list of commands: blanks, operators, comments and the characters of words.
//!
//! Which characters form words and operators is decided here, what they mean in `commands.rs`.

use super::commands::{Closer, Commands};
use super::frame::{ArithmeticExpansion, Bodies, Frame, FrameChange};
use super::lexer::ShellLexer;
use super::obstacle::Obstacle;
use super::word::Word;
use crate::workflow::cursor::QuoteContext;

impl<'t> ShellLexer<'t, '_> {
    pub(super) fn in_commands(&mut self, commands: &mut Commands<'t>, c: char) -> FrameChange<'t> {
        match c {
            '\n' => self.line_break(commands),
            ' ' | '\t' => {
                self.end_word(commands);
                self.take(1)
            }
            ';' | '&' | '|' => self.operator(commands, c),
            '<' | '>' => self.redirection(commands, c),
            '(' => self.open_parenthesis(commands),
            ')' => self.close_parenthesis(commands),
            '#' if commands.word.is_none() => {
                self.comment();
                FrameChange::Stay
            }
            '\'' | '"' | '\\' | '`' | '$' => {
                // A line break behind a backslash never comes here: the cursor joins the lines.
                commands.word(self.placed(), self.cursor).push_quoted();
                self.in_word(QuoteContext::Bare, c)
            }
            _ => {
                let in_array = commands.closer == Closer::Words;
                commands.word(self.placed(), self.cursor).push(c, in_array);
                self.take(1)
            }
        }
    }

    pub(super) fn in_word(&mut self, context: QuoteContext, c: char) -> FrameChange<'t> {
        match c {
            '\'' => {
                self.single_quotes();
                FrameChange::Stay
            }
            '"' => {
                self.cursor.bump();
                FrameChange::Open(Frame::Double { again: false })
            }
            '\\' => self.escape(),
            '`' => self.open_backquotes(context),
            '$' => self.dollar(context),
            _ => self.take(1),
        }
    }

    fn line_break(&mut self, commands: &mut Commands<'t>) -> FrameChange<'t> {
        self.end_word(commands);
        commands.separate();
        self.cursor.bump();
        let from = commands.waiting_from.min(self.waiting.len());
        match Bodies::of(self.waiting.drain(from..)) {
            Some(bodies) => FrameChange::Open(Frame::Bodies(bodies)),
            None => FrameChange::Stay,
        }
    }

    fn operator(&mut self, commands: &mut Commands<'t>, c: char) -> FrameChange<'t> {
        self.end_word(commands);
        self.cursor.bump();
        let follows = |lexer: &Self, c| lexer.cursor.peek() == Some(c);
        if c == '&' && follows(self, '>') {
            // Where this is not a redirection, a command of its own begins with one.
            commands.redirected = true;
            return self.take(1);
        }
        if c == ';' {
            commands.end_condition();
            let double = follows(self, ';') || follows(self, '&');
            if double && commands.next_pattern() {
                self.cursor.bump();
                if follows(self, '&') {
                    self.cursor.bump();
                }
            }
        }
        commands.separate();
        FrameChange::Stay
    }

    fn redirection(&mut self, commands: &mut Commands<'t>, c: char) -> FrameChange<'t> {
        if commands.word.take_if(|word| word.is_number()).is_none() {
            self.end_word(commands);
        }
        if commands.in_condition() {
            return self.take(1);
        }
        let second = self.cursor.peek_second();
        if second == Some('(') {
            commands.word(self.placed(), self.cursor).push_quoted();
            self.cursor.skip(2);
            return self.substitution();
        }
        if self.cursor.starts_with("<<") && !self.cursor.starts_with("<<<") {
            self.cursor.skip(2);
            self.delimiter();
            return FrameChange::Stay;
        }
        let length = match (c, second) {
            ('<', Some('<')) => 3,
            ('<', Some('&' | '>')) | ('>', Some('>' | '&' | '|')) => 2,
            _ => 1,
        };
        commands.redirected = true;
        self.take(length)
    }

    fn open_parenthesis(&mut self, commands: &mut Commands<'t>) -> FrameChange<'t> {
        if commands.word.as_ref().is_some_and(Word::opens_words) {
            self.cursor.bump();
            return FrameChange::Open(Frame::Commands(commands.inner(Closer::Words)));
        }
        let begins = commands.word.is_none();
        self.end_word(commands);
        if begins && commands.open_pattern() {
            return self.take(1);
        }
        if begins && commands.computes_in_parentheses() && self.cursor.starts_with("((") {
            self.cursor.skip(2);
            let arithmetic = ArithmeticExpansion { depth: 0, bracket: false };
            return FrameChange::Open(Frame::Arithmetic(arithmetic));
        }
        self.cursor.bump();
        FrameChange::Open(Frame::Commands(commands.inner(Closer::Parenthesis)))
    }

    fn close_parenthesis(&mut self, commands: &mut Commands<'t>) -> FrameChange<'t> {
        self.end_word(commands);
        self.cursor.bump();
        if commands.end_pattern() {
            return FrameChange::Stay;
        }
        match commands.closer {
            Closer::Parenthesis | Closer::Words | Closer::Substitution => FrameChange::Close,
            Closer::End | Closer::Backquote(_) => {
                self.doubt(Obstacle::Parentheses);
                FrameChange::Stay
            }
        }
    }

    /// A comment is copied unchanged, references included: it never runs.
    fn comment(&mut self) {
        self.cursor.set_joins(false);
        while self.cursor.peek().is_some_and(|c| c != '\n') {
            self.cursor.bump();
        }
        self.cursor.set_joins(true);
    }

    pub(super) fn take(&mut self, count: usize) -> FrameChange<'t> {
        self.cursor.skip(count);
        FrameChange::Stay
    }
}
