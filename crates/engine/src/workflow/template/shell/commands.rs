//! A list of commands: where a command begins, and what a parenthesis means.
//!
//! It knows as much of the shell's grammar as quoting depends on: keywords count only where a command
//! begins, a `)` behind a pattern of `case` closes nothing, `[[` and `let` compute. It sees words and
//! operators, never quotes; those are the lexer's.

use std::ops::Range;

use super::arguments::Arguments;
use super::literal::Literal;
use super::obstacle::Obstacle;
use super::word::Word;
use crate::workflow::template::cursor::Cursor;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closer {
    End,
    /// The `)` of `(`: a subshell, a function, a condition.
    Parenthesis,
    /// The `)` of a list of words: an array, or a pattern of bash.
    Words,
    /// The `)` of `$(`, `<(` or `>(`.
    Substitution,
    /// Of this layer.
    Backquote(usize),
}

/// The role of the next word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The first of a command: keywords count.
    Command,
    /// Behind an assignment or a redirection: more of them, or the name of the command.
    Prefix,
    Argument,
    ForName,
    /// `in` or `do`.
    ForIn,
    FunctionName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    Other,
    /// `let`, or `declare -i`: it computes.
    Let,
    /// `declare` and its kin: its arguments are assignments.
    Declare,
    /// `[[ … ]]`: it compares.
    Condition,
    /// `[[ … ]]`, behind an operator that compares numbers.
    Operand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Subject,
    In,
    Pattern { begun: bool },
    Body,
}

#[derive(Debug)]
pub(super) struct Commands<'t> {
    pub(super) closer: Closer,
    /// Earlier here-documents wait for a line break outside of this list.
    pub(super) waiting_from: usize,
    pub(super) word: Option<Word<'t>>,
    place: Place,
    cases: Vec<Case>,
    /// Whether the next word belongs to a redirection.
    redirected: bool,
    command: Command,
    arguments: Arguments,
    /// Numbers of the references in the word before.
    previous: Range<usize>,
}

impl<'t> Commands<'t> {
    pub(super) fn new(closer: Closer, waiting_from: usize) -> Self {
        Self {
            closer,
            waiting_from,
            word: None,
            place: Place::Command,
            cases: vec![],
            redirected: false,
            command: Command::Other,
            arguments: Arguments::any(),
            previous: 0..0,
        }
    }

    pub(super) fn inner(&self, closer: Closer) -> Self {
        let mut inner = Self::new(closer, self.waiting_from);
        if self.in_condition() && closer == Closer::Parenthesis {
            inner.command = Command::Condition;
        }
        inner
    }

    /// Whether some shell evaluates what comes next as arithmetic.
    pub(super) fn computes(&self) -> bool {
        let subscript = self.word.as_ref().is_some_and(Word::in_subscript);
        let assigns = self.closer == Closer::Words
            || self.command == Command::Declare
            || matches!(self.place, Place::Command | Place::Prefix);
        matches!(self.command, Command::Let | Command::Operand) || (subscript && assigns && !self.redirected)
    }

    /// `placed` counts the references so far.
    pub(super) fn word(&mut self, placed: usize, start: Cursor<'t>) -> &mut Word<'t> {
        self.word.get_or_insert_with(|| Word::new(placed, start))
    }

    /// Returns the number of the first reference that turns out to stand where it may not, and why; the
    /// same holds for all after it.
    pub(super) fn end_word(
        &mut self,
        word: &Word<'t>,
        literal: &Literal,
        placed: usize,
    ) -> Option<(usize, Obstacle)> {
        if std::mem::take(&mut self.redirected) {
            if self.place == Place::Command {
                self.place = Place::Prefix;
            }
        } else if self.closer == Closer::Words {
            self.place = Place::Argument;
        } else if self.in_condition() {
            let compared = self.end_operand(word, placed);
            return Some((compared.start, Obstacle::Arithmetic)).filter(|_| !compared.is_empty());
        } else if !self.end_case_word(word) {
            let argument = self.place == Place::Argument;
            self.place = self.place_after(word, literal);
            if argument {
                let referenced = placed > word.first_reference;
                let obstacle = self.arguments.next(literal, referenced)?;
                return Some((word.first_reference, obstacle));
            }
        }
        None
    }

    fn end_operand(&mut self, word: &Word<'t>, placed: usize) -> Range<usize> {
        self.command = Command::Condition;
        match word.keyword() {
            "]]" => {
                self.command = Command::Other;
                self.place = Place::Argument;
            }
            "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                self.command = Command::Operand;
                return std::mem::replace(&mut self.previous, 0..0);
            }
            "-v" | "-R" => self.command = Command::Operand,
            _ => self.previous = word.first_reference..placed,
        }
        0..0
    }

    /// Whether the word belongs to the head of a `case`.
    fn end_case_word(&mut self, word: &Word<'t>) -> bool {
        let Some(case) = self.cases.last_mut() else {
            return false;
        };
        match case {
            Case::Body => return false,
            Case::Subject => *case = Case::In,
            Case::In if word.keyword() == "in" => *case = Case::Pattern { begun: false },
            Case::In => {}
            Case::Pattern { begun: false } if word.keyword() == "esac" => {
                self.cases.pop();
                self.place = Place::Command;
            }
            Case::Pattern { begun } => *begun = true,
        }
        true
    }

    fn place_after(&mut self, word: &Word<'t>, literal: &Literal) -> Place {
        match (self.place, word.keyword()) {
            (Place::ForName, _) => Place::ForIn,
            (Place::Command, "esac") => {
                self.cases.pop();
                Place::Command
            }
            (Place::ForIn, "do")
            | (Place::FunctionName, _)
            | (
                Place::Command,
                "if" | "then" | "else" | "elif" | "fi" | "while" | "until" | "do" | "done" | "{" | "}" | "!"
                | "time" | "coproc",
            ) => Place::Command,
            (Place::Command, "for" | "select") => Place::ForName,
            (Place::Command, "function") => Place::FunctionName,
            (Place::Command, "case") => {
                self.cases.push(Case::Subject);
                Place::Argument
            }
            (Place::Command, "[[") => {
                self.command = Command::Condition;
                Place::Argument
            }
            (Place::Argument, _)
                if self.command == Command::Declare
                    && literal.text.starts_with('-')
                    && literal.text.contains('i') =>
            {
                self.command = Command::Let;
                Place::Argument
            }
            (Place::Command | Place::Prefix, _) if word.is_assignment() => Place::Prefix,
            (Place::Command | Place::Prefix, _) => self.begin_command(literal),
            (Place::ForIn | Place::Argument, _) => Place::Argument,
        }
    }

    /// The name of a command; its quotes do not matter.
    fn begin_command(&mut self, name: &Literal) -> Place {
        match name.whole().unwrap_or_default() {
            "command" | "builtin" | "exec" => return Place::Prefix,
            // An option of those, or of `time`.
            option if option.starts_with('-') => return Place::Prefix,
            "let" => self.command = Command::Let,
            "declare" | "typeset" | "local" | "readonly" | "export" => {
                self.command = Command::Declare;
            }
            _ => {}
        }
        self.arguments = Arguments::new(name);
        Place::Argument
    }

    /// A line break, `;`, `&` or `|` begins a command, except inside of a list of words.
    pub(super) fn separate(&mut self) {
        if self.in_condition() {
            return;
        }
        self.command = Command::Other;
        self.arguments = Arguments::any();
        self.redirected = false;
        self.place = if self.closer == Closer::Words || !self.in_commands() {
            Place::Argument
        } else {
            Place::Command
        };
    }

    /// A `;`, which ends a condition that was never closed.
    pub(super) fn end_condition(&mut self) {
        self.command = Command::Other;
    }

    /// A `;;`, `;&` or `;;&`; whether there is a `case` that it belongs to.
    pub(super) fn next_pattern(&mut self) -> bool {
        let body = self.cases.last_mut().filter(|case| **case == Case::Body);
        let found = body.is_some();
        if let Some(case) = body {
            *case = Case::Pattern { begun: false };
        }
        found
    }

    /// A `(` where a pattern may begin; whether it belongs to the pattern.
    pub(super) fn open_pattern(&mut self) -> bool {
        match self.cases.last_mut() {
            Some(Case::Pattern { begun }) if !*begun => {
                *begun = true;
                true
            }
            _ => false,
        }
    }

    /// A `)`; whether it ends a pattern rather than the list.
    pub(super) fn end_pattern(&mut self) -> bool {
        match self.cases.last_mut() {
            Some(case) if matches!(case, Case::Pattern { .. }) => *case = Case::Body,
            _ => return false,
        }
        self.place = Place::Command;
        true
    }

    pub(super) fn after_parenthesis(&mut self) {
        if !self.in_condition() {
            self.place = Place::Command;
        }
    }

    /// The next word is the target of a redirection.
    pub(super) fn redirect(&mut self) {
        self.redirected = true;
    }

    /// Whether `((` here is arithmetic to some shell.
    pub(super) fn computes_in_parentheses(&self) -> bool {
        !self.in_condition()
            && self.closer != Closer::Words
            && matches!(self.place, Place::Command | Place::Prefix | Place::ForName)
    }

    /// Inside of `[[ … ]]`.
    pub(super) fn in_condition(&self) -> bool {
        matches!(self.command, Command::Condition | Command::Operand)
    }

    pub(super) fn has_open_case(&self) -> bool {
        !self.cases.is_empty()
    }

    fn in_commands(&self) -> bool {
        matches!(self.cases.last(), None | Some(Case::Body))
    }
}
