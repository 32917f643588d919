//! The lexer's stack: one frame for each construct that the text is inside of.
//!
//! The stack is data, not calls, so that a text of a million `$(` cannot overflow the call stack.

use super::commands::Commands;
use super::here_document::Bodies;
use super::obstacle::Obstacle;
use super::spot::Spot;

#[derive(Debug)]
pub(super) enum Frame<'t> {
    Commands(Commands<'t>),
    /// `again`: the quotes stand in a `${…}` that is quoted already.
    Double {
        again: bool,
    },
    Parameter(Parameter),
    Arithmetic(Arithmetic),
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
pub(super) enum Next<'t> {
    Stay,
    Close,
    Open(Frame<'t>),
}

/// `${…}` of the shell.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) outer: Spot,
    pub(super) stage: ParameterStage,
    /// Whether an odd number of `'` has passed where they mean nothing to most shells.
    pub(super) apostrophe: bool,
}

impl Parameter {
    pub(super) fn new(outer: Spot) -> Self {
        Self { outer, stage: ParameterStage::Name { begun: false }, apostrophe: false }
    }

    /// Where its word stands: a pattern is outside of the double quotes around it.
    pub(super) fn spot(&self) -> Spot {
        match (self.outer, self.stage) {
            (Spot::Double, ParameterStage::Pattern { .. }) => Spot::Bare,
            (outer, _) => outer,
        }
    }

    pub(super) fn quotes_singly(&self) -> bool {
        self.spot() == Spot::Bare
    }

    fn obstacle(&self) -> Option<Obstacle> {
        match (self.outer, self.stage) {
            (_, ParameterStage::Name { .. }) => Some(Obstacle::ParameterName),
            (_, ParameterStage::Subscript(_) | ParameterStage::Offset) => Some(Obstacle::Arithmetic),
            (
                Spot::Bare,
                ParameterStage::Word { assigns: true } | ParameterStage::Pattern { replaces: true },
            ) => Some(Obstacle::SplitResult),
            (Spot::Body, ParameterStage::Pattern { .. }) => Some(Obstacle::BodyPattern),
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
pub(super) struct Arithmetic {
    /// Parentheses or brackets that are open inside of it.
    pub(super) depth: usize,
    /// Whether it is `$[…]` and not `((…))`.
    pub(super) bracket: bool,
}
