//! A shell text with references in it.
//!
//! The shell runs the author's text with variables in it, the same for every item; values go into the
//! environment. A text where a reference cannot be replaced safely is refused.

use super::edits::{Piece, Slot};
use super::here_document::escaped;
use super::lexer::Lexer;
use super::script::Script;
use crate::workflow::template::names::KnownNames;
use crate::workflow::template::reader::{Language, Reader};
use crate::workflow::template::reference::Reference;
use crate::workflow::template::template_error::TemplateError;
use crate::workflow::template::value::{self, TemplateValues, ValueError};

/// To this shell a value is data, and where it would be code for the next one (`eval`, `sh -c '…'`) it
/// is refused. What the author builds from it for other interpreters (`ssh host '…'`, `awk '…'`) is
/// code for those, as with any variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellTemplate {
    pieces: Vec<Piece>,
    slots: Vec<Slot>,
}

impl ShellTemplate {
    /// The errors are in the order of the text, at most a thousand.
    pub fn parse(text: &str, names: &KnownNames<'_>) -> Result<Self, Vec<TemplateError>> {
        let reader = Reader::new(names, Language::Shell);
        let (mut pieces, mut slots) = Lexer::read(text, reader)?.finish(text);
        // There may be a million of these, so spare capacity is released.
        pieces.shrink_to_fit();
        slots.shrink_to_fit();
        Ok(Self { pieces, slots })
    }

    /// Fails on the first value that is missing, too large or holds a NUL character.
    pub fn render(&self, values: &dyn TemplateValues) -> Result<Script, ValueError> {
        let mut texts = vec![];
        for slot in &self.slots {
            texts.push(value::argument(&slot.reference, values)?);
        }
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Raw { slot, escaped: hide } => {
                    let value = texts.get(*slot).map(String::as_str).unwrap_or_default();
                    if *hide {
                        text.push_str(&escaped(value));
                    } else {
                        text.push_str(value);
                    }
                }
            }
        }
        let variables = self.slots.iter().zip(texts);
        let env = variables.filter_map(|(slot, text)| Some((slot.variable.clone()?, text)));
        let env = env.collect();
        Ok(Script { text, env })
    }

    /// Each once, in the order of their first appearance, without those in comments.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.slots.iter().map(|slot| &slot.reference)
    }
}
