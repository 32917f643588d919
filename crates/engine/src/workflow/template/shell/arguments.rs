//! The commands that do more with their arguments than take them as data.
//!
//! Some builtins take a name and evaluate it (`read`, `printf -v`, `declare`): what looks like the
//! subscript of an array is executed. Others take code (`eval`, `trap`, `sh -c`). A table lists these
//! arguments; any other command takes its arguments as data. `ssh` and interpreters that are no shells
//! are left alone: how they use a text is not known here.

use ArgumentUse::{Code, Data, Name};

use super::obstacle::Obstacle;
use super::word::{AfterLiteral, LiteralPrefix};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArgumentUse {
    Data,
    /// A variable's name, which may be evaluated.
    Name,
    Code,
}

#[derive(Debug)]
struct BuiltinGrammar {
    /// Options that have a value, and its use.
    values: &'static [(&'static str, ArgumentUse)],
    /// The use of the operands, in order; further ones are used like the last.
    operands: &'static [ArgumentUse],
    /// Whether it is a shell, whose `-c` changes what its operands are.
    is_shell: bool,
}

static BUILTINS: [(&[&str], BuiltinGrammar); 8] = [
    (&["read"], BuiltinGrammar::new(&[("dinNptu", Data), ("a", Name)], &[Name])),
    (&["mapfile", "readarray"], BuiltinGrammar::new(&[("dnOsuc", Data), ("C", Code)], &[Name])),
    (&["printf"], BuiltinGrammar::new(&[("v", Name)], &[Data])),
    (&["wait"], BuiltinGrammar::new(&[("p", Name)], &[Data])),
    (&["getopts"], BuiltinGrammar::new(&[], &[Data, Name, Data])),
    (&["unset"], BuiltinGrammar::new(&[], &[Name])),
    // An alias is code when it is used, and `compgen -W` expands its words.
    (&["eval", "alias", "compgen", "complete"], BuiltinGrammar::new(&[], &[Code])),
    (&["trap"], BuiltinGrammar::new(&[], &[Code, Data])),
];
static SHELL: BuiltinGrammar = BuiltinGrammar::shell(&[Data]);
/// A shell behind its `-c`.
static SHELL_CODE: BuiltinGrammar = BuiltinGrammar::shell(&[Code, Data]);

#[derive(Debug, Clone, Copy)]
enum ArgumentGrammar {
    /// A command that takes them as data, unless one of them is a shell: `timeout 9 sh -c …`.
    Any,
    /// `ssh`, which is left alone.
    Remote,
    /// `test` or `[`; whether the next argument is the name that `-v` takes.
    Test {
        name: bool,
    },
    /// `declare` and similar builtins.
    Declare(DeclareOptions),
    Builtin(&'static BuiltinGrammar),
}

#[derive(Debug, Clone, Copy, Default)]
struct DeclareOptions {
    /// `-n`: the value is a name.
    reference: bool,
    /// `-a` or `-A`: the value is a list, even if it comes out of quotes.
    list: bool,
}

#[derive(Debug)]
pub(super) struct Arguments {
    grammar: ArgumentGrammar,
    options: bool,
    /// The use of the next argument, if it is the value of an option.
    value: Option<ArgumentUse>,
    /// Operands so far.
    operands: usize,
}

impl Arguments {
    pub(super) fn any() -> Self {
        Self::of(ArgumentGrammar::Any)
    }

    pub(super) fn new(command: &LiteralPrefix) -> Self {
        let name = command.whole().unwrap_or_default();
        Self::of(match name {
            "declare" | "typeset" | "local" | "readonly" | "export" => {
                ArgumentGrammar::Declare(DeclareOptions::default())
            }
            "test" | "[" => ArgumentGrammar::Test { name: false },
            "ssh" => ArgumentGrammar::Remote,
            _ => BuiltinGrammar::of(name).map_or(ArgumentGrammar::Any, ArgumentGrammar::Builtin),
        })
    }

    fn of(grammar: ArgumentGrammar) -> Self {
        Self { grammar, options: true, value: None, operands: 0 }
    }

    /// Why the next argument takes no reference, if so; `referenced` says whether it holds one.
    pub(super) fn next(&mut self, word: &LiteralPrefix, referenced: bool) -> Option<Obstacle> {
        if let Some(value) = self.value.take() {
            return value.obstacle();
        }
        match &mut self.grammar {
            ArgumentGrammar::Remote => None,
            ArgumentGrammar::Any => {
                if word.whole().is_some_and(is_shell) {
                    *self = Self::of(ArgumentGrammar::Builtin(&SHELL));
                }
                None
            }
            ArgumentGrammar::Test { name } => {
                // A value may be `-v` itself, with another one behind it.
                let asks = matches!(word.whole(), Some("-v" | "-R")) || (referenced && word.text.is_empty());
                std::mem::replace(name, asks).then_some(Obstacle::Name)
            }
            ArgumentGrammar::Declare(attributes) => attributes.next(word),
            ArgumentGrammar::Builtin(grammar) => {
                let grammar = *grammar;
                self.of_builtin(grammar, word, referenced)
            }
        }
    }

    fn of_builtin(
        &mut self,
        grammar: &'static BuiltinGrammar,
        word: &LiteralPrefix,
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
            if taken_for_option && grammar.operand(0) == Data {
                return Some(Obstacle::Option);
            }
        }
        let operand = grammar.operand(self.operands);
        self.operands = self.operands.saturating_add(1);
        operand.obstacle()
    }

    fn option(
        &mut self,
        grammar: &'static BuiltinGrammar,
        letters: &str,
        word: &LiteralPrefix,
        referenced: bool,
    ) -> Option<Obstacle> {
        if let Some(long) = letters.strip_prefix('-') {
            self.options = !long.is_empty() || referenced;
            let valued = grammar.is_shell && matches!(long, "rcfile" | "init-file");
            self.value = valued.then_some(Data);
            return None;
        }
        let mut left = letters.chars();
        while let Some(letter) = left.next() {
            if letter == 'c' && grammar.is_shell {
                self.grammar = ArgumentGrammar::Builtin(&SHELL_CODE);
            }
            if let Some(value) = grammar.value(letter) {
                if left.as_str().is_empty() && word.rest == AfterLiteral::Nothing {
                    self.value = Some(value);
                    return None;
                }
                return value.obstacle();
            }
        }
        Some(Obstacle::Option)
    }
}

impl ArgumentUse {
    fn obstacle(self) -> Option<Obstacle> {
        match self {
            Self::Data => None,
            Self::Name => Some(Obstacle::Name),
            Self::Code => Some(Obstacle::Code),
        }
    }
}

impl BuiltinGrammar {
    const fn new(values: &'static [(&'static str, ArgumentUse)], operands: &'static [ArgumentUse]) -> Self {
        Self { values, operands, is_shell: false }
    }

    const fn shell(operands: &'static [ArgumentUse]) -> Self {
        Self { values: &[("oO", Data)], operands, is_shell: true }
    }

    fn of(command: &str) -> Option<&'static Self> {
        let found = BUILTINS.iter().find(|(names, _)| names.contains(&command));
        found.map(|(_, grammar)| grammar).or(is_shell(command).then_some(&SHELL))
    }

    fn value(&self, letter: char) -> Option<ArgumentUse> {
        self.values.iter().find(|(letters, _)| letters.contains(letter)).map(|(_, value)| *value)
    }

    fn operand(&self, index: usize) -> ArgumentUse {
        self.operands.get(index).or(self.operands.last()).copied().unwrap_or(Data)
    }

    fn has_dangerous_option(&self) -> bool {
        self.values.iter().any(|(_, value)| *value != Data)
    }
}

impl DeclareOptions {
    fn next(&mut self, word: &LiteralPrefix) -> Option<Obstacle> {
        if let Some(letters) = word.text.strip_prefix('-') {
            self.reference |= letters.contains('n');
            self.list |= letters.contains(['a', 'A']);
            return Some(Obstacle::Option);
        }
        if self.reference || !word.is_assignment() {
            return Some(Obstacle::Name);
        }
        (self.list && word.rest != AfterLiteral::Parenthesis).then_some(Obstacle::List)
    }
}

fn is_shell(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or_default();
    matches!(file, "sh" | "bash" | "dash" | "ksh" | "zsh" | "ash" | "mksh")
}
