//! What a command does with its arguments, where it does more than take them.
//!
//! Some builtins take a name and evaluate it (`read`, `printf -v`, `declare`): what looks like the
//! subscript of an array is run. Others take code (`eval`, `trap`, `sh -c`). A table lists these
//! arguments; any other command takes its arguments as data. `ssh` and interpreters that are no shells
//! are left alone: what they do with a text is unknown here.

use super::literal::{Literal, Rest};
use super::obstacle::Obstacle;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Data,
    /// A variable's name, which may be evaluated.
    Name,
    DiagnosticCode,
}

#[derive(Debug)]
struct Grammar {
    /// Options that have a value, and its use.
    values: &'static [(&'static str, Use)],
    /// The use of the operands, in order; further ones are used like the last.
    operands: &'static [Use],
    /// Whether it is a shell, whose `-c` changes what its operands are.
    is_shell: bool,
}

static READ: Grammar = Grammar::new(&[("dinNptu", Use::Data), ("a", Use::Name)], &[Use::Name]);
static MAPFILE: Grammar = Grammar::new(&[("dnOsuc", Use::Data), ("C", Use::DiagnosticCode)], &[Use::Name]);
static PRINTF: Grammar = Grammar::new(&[("v", Use::Name)], &[Use::Data]);
static WAIT: Grammar = Grammar::new(&[("p", Use::Name)], &[Use::Data]);
static GETOPTS: Grammar = Grammar::new(&[], &[Use::Data, Use::Name, Use::Data]);
static UNSET: Grammar = Grammar::new(&[], &[Use::Name]);
static EVAL: Grammar = Grammar::new(&[], &[Use::DiagnosticCode]);
static TRAP: Grammar = Grammar::new(&[], &[Use::DiagnosticCode, Use::Data]);
static SHELL: Grammar = Grammar { is_shell: true, ..Grammar::new(&[("oO", Use::Data)], &[Use::Data]) };
/// A shell behind its `-c`.
static SHELL_CODE: Grammar =
    Grammar { is_shell: true, ..Grammar::new(&[("oO", Use::Data)], &[Use::DiagnosticCode, Use::Data]) };

#[derive(Debug, Clone, Copy)]
enum Whose {
    /// A command that takes them as data, unless one of them is a shell: `timeout 9 sh -c …`.
    Any,
    /// `ssh`, which is left alone.
    Remote,
    /// `test` or `[`; whether the next argument is the name that `-v` asks for.
    Test {
        name: bool,
    },
    /// `declare` and its kin.
    Declare(Attributes),
    Builtin(&'static Grammar),
}

#[derive(Debug, Clone, Copy, Default)]
struct Attributes {
    /// `-n`: the value is a name.
    reference: bool,
    /// `-a` or `-A`: the value is a list, even if it comes out of quotes.
    list: bool,
}

#[derive(Debug)]
pub(super) struct Arguments {
    whose: Whose,
    options: bool,
    /// The use of the next argument, if it is the value of an option.
    value: Option<Use>,
    /// Operands so far.
    operands: usize,
}

impl Arguments {
    pub(super) fn any() -> Self {
        Self::of(Whose::Any)
    }

    pub(super) fn new(command: &Literal) -> Self {
        let name = command.whole().unwrap_or_default();
        Self::of(match name {
            "read" => Whose::Builtin(&READ),
            "mapfile" | "readarray" => Whose::Builtin(&MAPFILE),
            "printf" => Whose::Builtin(&PRINTF),
            "wait" => Whose::Builtin(&WAIT),
            "getopts" => Whose::Builtin(&GETOPTS),
            "unset" => Whose::Builtin(&UNSET),
            // An alias is code when it is used, and `compgen -W` expands its words.
            "eval" | "alias" | "compgen" | "complete" => Whose::Builtin(&EVAL),
            "trap" => Whose::Builtin(&TRAP),
            "declare" | "typeset" | "local" | "readonly" | "export" => Whose::Declare(Attributes::default()),
            "test" | "[" => Whose::Test { name: false },
            "ssh" => Whose::Remote,
            _ if is_shell(name) => Whose::Builtin(&SHELL),
            _ => Whose::Any,
        })
    }

    fn of(whose: Whose) -> Self {
        Self { whose, options: true, value: None, operands: 0 }
    }

    /// Why the next argument takes no reference, if so; `referenced` says whether it holds one.
    pub(super) fn next(&mut self, word: &Literal, referenced: bool) -> Option<Obstacle> {
        if let Some(value) = self.value.take() {
            return value.obstacle();
        }
        match &mut self.whose {
            Whose::Remote => None,
            Whose::Any => {
                if word.whole().is_some_and(is_shell) {
                    *self = Self::of(Whose::Builtin(&SHELL));
                }
                None
            }
            Whose::Test { name } => {
                // A value may be `-v` itself, with another one behind it.
                let asks = matches!(word.whole(), Some("-v" | "-R")) || (referenced && word.text.is_empty());
                std::mem::replace(name, asks).then_some(Obstacle::Name)
            }
            Whose::Declare(attributes) => attributes.next(word),
            Whose::Builtin(grammar) => {
                let grammar = *grammar;
                self.of_builtin(grammar, word, referenced)
            }
        }
    }

    fn of_builtin(
        &mut self,
        grammar: &'static Grammar,
        word: &Literal,
        referenced: bool,
    ) -> Option<Obstacle> {
        if self.options {
            if let Some(letters) = word.text.strip_prefix(['-', '+'])
                && word.whole() != Some("-")
            {
                return self.option(grammar, letters, word, referenced);
            }
            // `sh $options -c …`: the variable most likely holds no operand.
            if grammar.is_shell && !referenced && word.whole().is_none() {
                return None;
            }
            self.options = false;
            let taken_for_option = referenced && word.text.is_empty() && grammar.has_dangerous_option();
            if taken_for_option && grammar.operand(0) == Use::Data {
                return Some(Obstacle::Option);
            }
        }
        let operand = grammar.operand(self.operands);
        self.operands = self.operands.saturating_add(1);
        operand.obstacle()
    }

    fn option(
        &mut self,
        grammar: &'static Grammar,
        letters: &str,
        word: &Literal,
        referenced: bool,
    ) -> Option<Obstacle> {
        if let Some(long) = letters.strip_prefix('-') {
            self.options = !long.is_empty() || referenced;
            let valued = grammar.is_shell && matches!(long, "rcfile" | "init-file");
            self.value = valued.then_some(Use::Data);
            return None;
        }
        let mut left = letters.chars();
        while let Some(letter) = left.next() {
            if letter == 'c' && grammar.is_shell {
                self.whose = Whose::Builtin(&SHELL_CODE);
            }
            if let Some(value) = grammar.value(letter) {
                if left.as_str().is_empty() && word.rest == Rest::Nothing {
                    self.value = Some(value);
                    return None;
                }
                return value.obstacle();
            }
        }
        Some(Obstacle::Option)
    }
}

impl Use {
    fn obstacle(self) -> Option<Obstacle> {
        match self {
            Self::Data => None,
            Self::Name => Some(Obstacle::Name),
            Self::DiagnosticCode => Some(Obstacle::DiagnosticCode),
        }
    }
}

impl Grammar {
    const fn new(values: &'static [(&'static str, Use)], operands: &'static [Use]) -> Self {
        Self { values, operands, is_shell: false }
    }

    fn value(&self, letter: char) -> Option<Use> {
        let mut values = self.values.iter();
        let found = values.find(|(letters, _)| letters.contains(letter));
        found.map(|(_, value)| *value)
    }

    fn operand(&self, index: usize) -> Use {
        let operand = self.operands.get(index).or(self.operands.last());
        operand.copied().unwrap_or(Use::Data)
    }

    fn has_dangerous_option(&self) -> bool {
        self.values.iter().any(|(_, value)| *value != Use::Data)
    }
}

impl Attributes {
    fn next(&mut self, word: &Literal) -> Option<Obstacle> {
        if let Some(letters) = word.text.strip_prefix('-') {
            self.reference |= letters.contains('n');
            self.list |= letters.contains(['a', 'A']);
            return Some(Obstacle::Option);
        }
        if self.reference || !word.is_assignment() {
            return Some(Obstacle::Name);
        }
        (self.list && word.rest != Rest::Parenthesis).then_some(Obstacle::List)
    }
}

fn is_shell(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or_default();
    matches!(file, "sh" | "bash" | "dash" | "ksh" | "zsh" | "ash" | "mksh")
}
