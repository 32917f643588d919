//! What the text is inside of, one frame for each: the lexer's stack.
//!
//! The stack is data, not calls, so that a text of a million `$(` needs memory and not luck.

use super::commands::Commands;
use super::here_document::Bodies;
use super::obstacle::Obstacle;
use super::spot::Spot;

/// What the text is inside of.
#[derive(Debug)]
pub(super) enum Frame<'t> {
    /// A list of commands.
    Commands(Commands<'t>),
    /// Double quotes; whether they stand in a `${…}` that is quoted already.
    Double {
        again: bool,
    },
    /// `${…}` of the shell.
    Parameter(Parameter),
    Arithmetic(Arithmetic),
    /// The bodies of here-documents.
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

/// What happens after a character.
#[derive(Debug)]
pub(super) enum Next<'t> {
    /// The frame goes on.
    Stay,
    Close,
    /// A frame begins inside of it.
    Open(Frame<'t>),
}

/// `${…}` of the shell.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) outer: Spot,
    pub(super) stage: Stage,
    /// Whether an odd number of `'` has passed where they mean nothing to most shells.
    pub(super) apostrophe: bool,
}

impl Parameter {
    /// A `${…}` that begins.
    pub(super) fn new(outer: Spot) -> Self {
        Self {
            outer,
            stage: Stage::Name { begun: false },
            apostrophe: false,
        }
    }

    /// Where its word stands: a pattern is outside of the double quotes around it.
    pub(super) fn spot(&self) -> Spot {
        match (self.outer, self.stage) {
            (Spot::Double, Stage::Pattern { .. }) => Spot::Bare,
            (outer, _) => outer,
        }
    }

    /// Whether `'` quotes in its word.
    pub(super) fn quotes_singly(&self) -> bool {
        self.spot() == Spot::Bare
    }

    fn obstacle(&self) -> Option<Obstacle> {
        match (self.outer, self.stage) {
            (_, Stage::Name { .. }) => Some(Obstacle::ParameterName),
            (_, Stage::Subscript(_) | Stage::Offset) => Some(Obstacle::Arithmetic),
            (Spot::Bare, Stage::Word { assigns: true } | Stage::Pattern { replaces: true }) => {
                Some(Obstacle::SplitResult)
            }
            (Spot::Body, Stage::Pattern { .. }) => Some(Obstacle::BodyPattern),
            _ => None,
        }
    }
}

/// How far a `${…}` was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
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
pub(super) struct Arithmetic {
    /// How many parentheses or brackets are open inside of it.
    pub(super) depth: usize,
    /// Whether it is `$[…]` and not `((…))`.
    pub(super) bracket: bool,
}
