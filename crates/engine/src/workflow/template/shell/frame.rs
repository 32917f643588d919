//! The lexer's stack: one frame for each construct that the text is inside, and how a variable is
//! written there.
//!
//! The stack is data, not calls, so that a text of a million `$(` cannot overflow the call stack.
//!
//! | where | a variable | `$${` |
//! |---|---|---|
//! | bare | `"${v}"` | `'${'` |
//! | in double quotes | `${v}` | `\${` |
//! | in a here-document | `${v}` | `\${` |
//! | in single quotes | `'"${v}"'` | `${` |
//!
//! In all of them the value is one piece of one word. A quoted here-document with a reference is made an
//! unquoted one, so the third line applies; without one the last line applies to its `$${`. The last
//! line applies to `$'…'` too; the text after the variable is opened as `'` or, if it has backslashes,
//! as `$'`. In a comment nothing is changed, and in backquotes a `$${` that would need a backslash is
//! refused.

use std::collections::VecDeque;
use std::ops::Range;

use super::commands::Commands;
use super::obstacle::Obstacle;
use crate::workflow::cursor::QuoteContext;

#[derive(Debug)]
pub(super) enum Frame<'t> {
    Commands(Commands<'t>),
    /// `again`: the quotes are in a `${…}` that is quoted already.
    Double {
        again: bool,
    },
    Parameter(ParameterExpansion),
    Arithmetic(ArithmeticExpansion),
    Bodies(Bodies),
}

impl Frame<'_> {
    /// Why no reference may come next in it, or in anything that begins there.
    pub(super) fn obstacle(&self) -> Option<Obstacle> {
        match self {
            Self::Commands(commands) => commands.computes().then_some(Obstacle::Arithmetic),
            Self::Parameter(parameter) => parameter.obstacle(),
            Self::Arithmetic(_) => Some(Obstacle::Arithmetic),
            Self::Double { .. } | Self::Bodies(_) => None,
        }
    }
}

#[derive(Debug)]
pub(super) enum FrameChange<'t> {
    Stay,
    Close,
    Open(Frame<'t>),
}

/// `${…}` of the shell.
#[derive(Debug)]
pub(super) struct ParameterExpansion {
    pub(super) outer: QuoteContext,
    pub(super) stage: ParameterStage,
    /// Whether an odd number of `'` has passed where they mean nothing to most shells.
    pub(super) apostrophe: bool,
}

impl ParameterExpansion {
    pub(super) fn new(outer: QuoteContext) -> Self {
        Self { outer, stage: ParameterStage::Name { begun: false }, apostrophe: false }
    }

    /// Where its word stands: a pattern is outside of the double quotes around it.
    pub(super) fn context(&self) -> QuoteContext {
        match (self.outer, self.stage) {
            (QuoteContext::Double, ParameterStage::Pattern { .. }) => QuoteContext::Bare,
            (outer, _) => outer,
        }
    }

    pub(super) fn quotes_singly(&self) -> bool {
        self.context() == QuoteContext::Bare
    }

    fn obstacle(&self) -> Option<Obstacle> {
        match (self.outer, self.stage) {
            (_, ParameterStage::Name { .. }) => Some(Obstacle::ParameterName),
            (_, ParameterStage::Subscript(_) | ParameterStage::Offset) => Some(Obstacle::Arithmetic),
            (
                QuoteContext::Bare,
                ParameterStage::Word { assigns: true } | ParameterStage::Pattern { replaces: true },
            ) => Some(Obstacle::SplitResult),
            (QuoteContext::HereDocument, ParameterStage::Pattern { .. }) => Some(Obstacle::BodyPattern),
            (_, ParameterStage::Colon | ParameterStage::Word { .. } | ParameterStage::Pattern { .. }) => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterStage {
    /// In the name; whether its first character has passed.
    Name { begun: bool },
    /// In the brackets behind the name, so many deep.
    Subscript(usize),
    /// Behind a `:`.
    Colon,
    /// In the word of `-`, `=`, `?` or `+`; whether it is `=`.
    Word { assigns: bool },
    /// In a pattern, as of `%`; whether a replacement is part of it, as of `/`.
    Pattern { replaces: bool },
    /// In `:offset:length`, which is arithmetic.
    Offset,
}

#[derive(Debug)]
pub(super) struct ArithmeticExpansion {
    /// Parentheses or brackets that are open inside it.
    pub(super) depth: usize,
    /// Whether it is `$[…]` and not `((…))`.
    pub(super) bracket: bool,
}

impl QuoteContext {
    pub(super) fn variable(self, name: &str) -> String {
        match self {
            Self::Bare => format!("\"${{{name}}}\""),
            Self::Single => format!("'\"${{{name}}}\"'"),
            Self::Double | Self::HereDocument => format!("${{{name}}}"),
        }
    }

    /// A `${` that reaches the command as these two characters.
    pub(super) fn literal(self) -> &'static str {
        match self {
            // Quoted to the last character, because bash would read `$${a,b}` as alternatives.
            Self::Bare => "'${'",
            Self::Single => "${",
            Self::Double | Self::HereDocument => "\\${",
        }
    }
}

#[derive(Debug)]
pub(super) struct HereDocument {
    /// The line that ends it, quotes removed.
    pub(super) delimiter: String,
    /// Whether the delimiter is quoted, so that the body is literal.
    pub(super) quoted: bool,
    /// Whether it is `<<-`: tabs before the delimiter do not count.
    pub(super) strips_tabs: bool,
    pub(super) word: Range<usize>,
}

impl HereDocument {
    /// Whether the delimiter needs no quotes: nothing in it means anything to the shell.
    pub(super) fn is_plain(&self) -> bool {
        let plain = |c: char| c.is_alphanumeric() || "_-.!%+,:@/".contains(c);
        // `<<-x` would take the `-` for its own.
        !self.delimiter.is_empty() && !self.delimiter.starts_with('-') && self.delimiter.chars().all(plain)
    }
}

/// The bodies that begin on one line, in their order.
#[derive(Debug)]
pub(super) struct Bodies {
    pub(super) current: HereDocument,
    pub(super) rest: VecDeque<HereDocument>,
    /// Whether the next character begins a line, which may be the delimiter.
    pub(super) at_line: bool,
}

impl Bodies {
    /// `None` without documents.
    pub(super) fn of(documents: impl Iterator<Item = HereDocument>) -> Option<Self> {
        let mut rest: VecDeque<_> = documents.collect();
        Some(Self { current: rest.pop_front()?, rest, at_line: true })
    }
}

/// Escapes a text for a here-document that is expanded.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '$' | '`') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
