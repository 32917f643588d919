//! A list of commands: where a command begins, and the role of a parenthesis.
//!
//! It knows as much of the shell's grammar as quoting depends on: keywords count only where a command
//! begins, a `)` behind a pattern of `case` closes nothing, `[[` and `let` compute. It sees words and
//! operators, never quotes; those are the lexer's.

use std::ops::Range;

use super::arguments::Arguments;
use super::obstacle::Obstacle;
use super::word::{LiteralPrefix, Word};
use crate::workflow::cursor::Cursor;

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
enum WordRole {
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
enum ShellCommandKind {
    Other,
    /// `let`, or `declare -i`: it computes.
    Let,
    /// `declare` and similar builtins: the arguments are assignments.
    Declare,
    /// `[[ … ]]`: it compares.
    Condition,
    /// `[[ … ]]`, behind an operator that compares numbers.
    Operand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CaseStage {
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
    role: WordRole,
    cases: Vec<CaseStage>,
    /// Whether the next word belongs to a redirection.
    pub(super) redirected: bool,
    command: ShellCommandKind,
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
            role: WordRole::Command,
            cases: vec![],
            redirected: false,
            command: ShellCommandKind::Other,
            arguments: Arguments::any(),
            previous: 0..0,
        }
    }

    pub(super) fn inner(&self, closer: Closer) -> Self {
        let mut inner = Self::new(closer, self.waiting_from);
        if self.in_condition() && closer == Closer::Parenthesis {
            inner.command = ShellCommandKind::Condition;
        }
        inner
    }

    /// Whether some shell evaluates what comes next as arithmetic.
    pub(super) fn computes(&self) -> bool {
        let subscript = self.word.as_ref().is_some_and(Word::in_subscript);
        let assigns = self.closer == Closer::Words
            || self.command == ShellCommandKind::Declare
            || matches!(self.role, WordRole::Command | WordRole::Prefix);
        matches!(self.command, ShellCommandKind::Let | ShellCommandKind::Operand)
            || (subscript && assigns && !self.redirected)
    }

    /// `placed` counts the references so far.
    pub(super) fn word(&mut self, placed: usize, start: Cursor<'t>) -> &mut Word<'t> {
        self.word.get_or_insert_with(|| Word::new(placed, start))
    }

    /// Returns the number of the first reference that turns out not to be allowed, and why; the same
    /// holds for all after it.
    pub(super) fn end_word(
        &mut self,
        word: &Word<'t>,
        literal: &LiteralPrefix,
        placed: usize,
    ) -> Option<(usize, Obstacle)> {
        if std::mem::take(&mut self.redirected) {
            if self.role == WordRole::Command {
                self.role = WordRole::Prefix;
            }
        } else if self.closer == Closer::Words {
            self.role = WordRole::Argument;
        } else if self.in_condition() {
            let compared = self.end_operand(word, placed);
            return Some((compared.start, Obstacle::Arithmetic)).filter(|_| !compared.is_empty());
        } else if !self.end_case_word(word) {
            let argument = self.role == WordRole::Argument;
            self.role = self.role_after(word, literal);
            if argument {
                let referenced = placed > word.first_reference;
                let obstacle = self.arguments.next(literal, referenced)?;
                return Some((word.first_reference, obstacle));
            }
        }
        None
    }

    fn end_operand(&mut self, word: &Word<'t>, placed: usize) -> Range<usize> {
        self.command = ShellCommandKind::Condition;
        match word.keyword() {
            "]]" => {
                self.command = ShellCommandKind::Other;
                self.role = WordRole::Argument;
            }
            "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                self.command = ShellCommandKind::Operand;
                return std::mem::replace(&mut self.previous, 0..0);
            }
            "-v" | "-R" => self.command = ShellCommandKind::Operand,
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
            CaseStage::Body => return false,
            CaseStage::Subject => *case = CaseStage::In,
            CaseStage::In if word.keyword() == "in" => *case = CaseStage::Pattern { begun: false },
            CaseStage::In => {}
            CaseStage::Pattern { begun: false } if word.keyword() == "esac" => {
                self.cases.pop();
                self.role = WordRole::Command;
            }
            CaseStage::Pattern { begun } => *begun = true,
        }
        true
    }

    fn role_after(&mut self, word: &Word<'t>, literal: &LiteralPrefix) -> WordRole {
        match (self.role, word.keyword()) {
            (WordRole::ForName, _) => WordRole::ForIn,
            (WordRole::Command, "esac") => {
                self.cases.pop();
                WordRole::Command
            }
            (WordRole::ForIn, "do")
            | (WordRole::FunctionName, _)
            | (
                WordRole::Command,
                "if" | "then" | "else" | "elif" | "fi" | "while" | "until" | "do" | "done" | "{" | "}" | "!"
                | "time" | "coproc",
            ) => WordRole::Command,
            (WordRole::Command, "for" | "select") => WordRole::ForName,
            (WordRole::Command, "function") => WordRole::FunctionName,
            (WordRole::Command, "case") => {
                self.cases.push(CaseStage::Subject);
                WordRole::Argument
            }
            (WordRole::Command, "[[") => {
                self.command = ShellCommandKind::Condition;
                WordRole::Argument
            }
            (WordRole::Argument, _)
                if self.command == ShellCommandKind::Declare
                    && literal.text.starts_with('-')
                    && literal.text.contains('i') =>
            {
                self.command = ShellCommandKind::Let;
                WordRole::Argument
            }
            (WordRole::Command | WordRole::Prefix, _) if word.is_assignment() => WordRole::Prefix,
            (WordRole::Command | WordRole::Prefix, _) => self.begin_command(literal),
            (WordRole::ForIn | WordRole::Argument, _) => WordRole::Argument,
        }
    }

    /// The name of a command; its quotes do not matter.
    fn begin_command(&mut self, name: &LiteralPrefix) -> WordRole {
        match name.whole().unwrap_or_default() {
            "command" | "builtin" | "exec" => return WordRole::Prefix,
            // An option of those, or of `time`.
            option if option.starts_with('-') => return WordRole::Prefix,
            "let" => self.command = ShellCommandKind::Let,
            "declare" | "typeset" | "local" | "readonly" | "export" => {
                self.command = ShellCommandKind::Declare;
            }
            _ => {}
        }
        self.arguments = Arguments::new(name);
        WordRole::Argument
    }

    /// A line break, `;`, `&` or `|` begins a command, except inside a list of words.
    pub(super) fn separate(&mut self) {
        if self.in_condition() {
            return;
        }
        self.command = ShellCommandKind::Other;
        self.arguments = Arguments::any();
        self.redirected = false;
        self.role = if self.closer == Closer::Words || !self.in_commands() {
            WordRole::Argument
        } else {
            WordRole::Command
        };
    }

    /// A `;` ends a condition that is not closed.
    pub(super) fn end_condition(&mut self) {
        self.command = ShellCommandKind::Other;
    }

    /// A `;;`, `;&` or `;;&`; whether there is a `case` that it belongs to.
    pub(super) fn next_pattern(&mut self) -> bool {
        let body = self.cases.last_mut().filter(|case| **case == CaseStage::Body);
        let found = body.is_some();
        if let Some(case) = body {
            *case = CaseStage::Pattern { begun: false };
        }
        found
    }

    /// A `(` where a pattern may begin; whether it belongs to the pattern.
    pub(super) fn open_pattern(&mut self) -> bool {
        match self.cases.last_mut() {
            Some(CaseStage::Pattern { begun }) => !std::mem::replace(begun, true),
            Some(CaseStage::Subject | CaseStage::In | CaseStage::Body) | None => false,
        }
    }

    /// A `)`; whether it ends a pattern rather than the list.
    pub(super) fn end_pattern(&mut self) -> bool {
        match self.cases.last_mut() {
            Some(case) if matches!(case, CaseStage::Pattern { .. }) => *case = CaseStage::Body,
            _ => return false,
        }
        self.role = WordRole::Command;
        true
    }

    pub(super) fn after_parenthesis(&mut self) {
        if !self.in_condition() {
            self.role = WordRole::Command;
        }
    }

    /// Whether `((` here is arithmetic to some shell.
    pub(super) fn computes_in_parentheses(&self) -> bool {
        !self.in_condition()
            && self.closer != Closer::Words
            && matches!(self.role, WordRole::Command | WordRole::Prefix | WordRole::ForName)
    }

    /// Inside `[[ … ]]`.
    pub(super) fn in_condition(&self) -> bool {
        matches!(self.command, ShellCommandKind::Condition | ShellCommandKind::Operand)
    }

    pub(super) fn has_open_case(&self) -> bool {
        !self.cases.is_empty()
    }

    fn in_commands(&self) -> bool {
        matches!(self.cases.last(), None | Some(CaseStage::Body))
    }
}
