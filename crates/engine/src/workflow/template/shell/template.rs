//! A shell text with references, and the edits that turn it into a script.
//!
//! The shell runs the author's text with variables in it, the same for every item; the values are in
//! the environment, where the shell never reads them as code. A text where a reference cannot be
//! replaced safely is refused. What no edit covers is copied byte for byte.

use std::collections::BTreeMap;
use std::ops::Range;

use super::frame::escaped;
use super::lexer::ShellLexer;
use crate::workflow::filter::SyntaxError;
use crate::workflow::template::names::KnownNames;
use crate::workflow::template::reader::{ReferenceReader, TemplateLanguage};
use crate::workflow::template::reference::{Reference, TemplateValues, ValueError};

/// The shell's input: a text, and the environment variables it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub text: String,
    pub env: Vec<(String, String)>,
}

/// To this shell a value is data, and where it would be code for the next one (`eval`, `sh -c '…'`) it
/// is refused. What the author builds from it for other interpreters (`ssh host '…'`, `awk '…'`) is
/// code for those, as with any variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellTemplate {
    pieces: Vec<ScriptPiece>,
    slots: Vec<Slot>,
}

impl ShellTemplate {
    /// The errors are in the order of the text, at most a thousand.
    pub fn parse(text: &str, names: &KnownNames<'_>) -> Result<Self, Vec<SyntaxError>> {
        let reader = ReferenceReader::new(names, TemplateLanguage::Shell);
        let (mut pieces, mut slots) = ShellLexer::read(text, reader)?.finish(text);
        // There may be a million of these, so spare capacity is released.
        pieces.shrink_to_fit();
        slots.shrink_to_fit();
        Ok(Self { pieces, slots })
    }

    /// Fails on the first value that is missing, too large or contains a NUL character.
    pub fn render(&self, values: &dyn TemplateValues) -> Result<Script, ValueError> {
        let texts = self.slots.iter().map(|slot| slot.reference.argument_in(values));
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                ScriptPiece::Text(plain) => text.push_str(plain),
                ScriptPiece::Raw { slot, escape } => {
                    let value = texts.get(*slot).map(String::as_str).unwrap_or_default();
                    text.push_str(&if *escape { escaped(value) } else { value.into() });
                }
            }
        }
        let variables = self.slots.iter().zip(texts);
        let env = variables.filter_map(|(slot, text)| Some((slot.variable.clone()?, text))).collect();
        Ok(Script { text, env })
    }

    /// Each once, in the order of their first appearance, without those in comments.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.slots.iter().map(|slot| &slot.reference)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) reference: Reference,
    /// The environment variable with the value; `None` for `${raw:…}`, which is inserted.
    pub(super) variable: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScriptPiece {
    Text(String),
    /// The value of a `raw:` slot, escaped in a here-document that was quoted.
    Raw {
        slot: usize,
        escape: bool,
    },
}

/// Edits may come in any order: the delimiter of a here-document is rewritten only after its body was
/// read.
#[derive(Debug, Default)]
pub(super) struct Edits {
    list: Vec<(Range<usize>, ScriptPiece)>,
    slots: Vec<Slot>,
    known: BTreeMap<Reference, usize>,
    variables: usize,
}

impl Edits {
    /// The same slot for the same reference.
    pub(super) fn slot(&mut self, reference: Reference) -> usize {
        if let Some(slot) = self.known.get(&reference) {
            return *slot;
        }
        let variable = (!reference.is_raw()).then(|| {
            self.variables = self.variables.saturating_add(1);
            format!("__undaunted_{}", self.variables)
        });
        let slot = self.slots.len();
        self.known.insert(reference.clone(), slot);
        self.slots.push(Slot { reference, variable });
        slot
    }

    pub(super) fn variable(&self, slot: usize) -> &str {
        let slot = self.slots.get(slot);
        slot.and_then(|slot| slot.variable.as_deref()).unwrap_or_default()
    }

    /// The result is for `append`.
    pub(super) fn replace(&mut self, range: Range<usize>, text: String) -> usize {
        self.list.push((range, ScriptPiece::Text(text)));
        self.list.len().saturating_sub(1)
    }

    pub(super) fn insert_raw(&mut self, range: Range<usize>, slot: usize, escape: bool) {
        self.list.push((range, ScriptPiece::Raw { slot, escape }));
    }

    pub(super) fn append(&mut self, edit: usize, more: &str) {
        if let Some((_, ScriptPiece::Text(text))) = self.list.get_mut(edit) {
            text.push_str(more);
        }
    }

    pub(super) fn finish(mut self, text: &str) -> (Vec<ScriptPiece>, Vec<Slot>) {
        self.list.sort_by_key(|(range, _)| range.start);
        let mut pieces = vec![];
        let mut plain = String::new();
        let mut copied = 0;
        for (range, piece) in self.list {
            plain.push_str(text.get(copied..range.start).unwrap_or_default());
            copied = range.end;
            match piece {
                ScriptPiece::Text(inserted) => plain.push_str(&inserted),
                ScriptPiece::Raw { .. } => {
                    pieces.push(ScriptPiece::Text(std::mem::take(&mut plain)));
                    pieces.push(piece);
                }
            }
        }
        plain.push_str(text.get(copied..).unwrap_or_default());
        pieces.push(ScriptPiece::Text(plain));
        (pieces, self.slots)
    }
}
