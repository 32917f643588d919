//! What changes in the author's text, and what it becomes.
//!
//! Edits may come in any order: the delimiter of a here-document is rewritten only after its body
//! was read. What no edit covers is copied byte for byte.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::workflow::template::reference::Reference;

/// A reference of the text, and the variable that carries its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) reference: Reference,
    /// Nothing for `${raw:…}`, which is inserted.
    pub(super) variable: Option<String>,
}

/// A part of the rewritten text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text for the shell.
    Text(String),
    /// The value of a `raw:` slot, escaped where it stands in a here-document that was quoted.
    Raw { slot: usize, escaped: bool },
}

/// What changes in a text.
#[derive(Debug, Default)]
pub(super) struct Edits {
    list: Vec<(Range<usize>, Piece)>,
    slots: Vec<Slot>,
    known: BTreeMap<Reference, usize>,
    variables: usize,
}

impl Edits {
    /// The slot of a reference: the same one for the same reference.
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
        self.slots.push(Slot {
            reference,
            variable,
        });
        slot
    }

    pub(super) fn variable(&self, slot: usize) -> &str {
        let slot = self.slots.get(slot);
        slot.and_then(|slot| slot.variable.as_deref())
            .unwrap_or_default()
    }

    /// Replaces a part of the text; the answer is for `append`.
    pub(super) fn replace(&mut self, range: Range<usize>, text: String) -> usize {
        self.list.push((range, Piece::Text(text)));
        self.list.len().saturating_sub(1)
    }

    /// Replaces a part of the text by a value, once it is known.
    pub(super) fn insert_raw(&mut self, range: Range<usize>, slot: usize, escaped: bool) {
        self.list.push((range, Piece::Raw { slot, escaped }));
    }

    /// Adds to the text of an earlier edit.
    pub(super) fn append(&mut self, edit: usize, more: &str) {
        if let Some((_, Piece::Text(text))) = self.list.get_mut(edit) {
            text.push_str(more);
        }
    }

    /// The rewritten text in pieces, and the slots.
    pub(super) fn finish(mut self, text: &str) -> (Vec<Piece>, Vec<Slot>) {
        self.list.sort_by_key(|(range, _)| range.start);
        let mut pieces = vec![];
        let mut plain = String::new();
        let mut copied = 0;
        for (range, piece) in self.list {
            plain.push_str(text.get(copied..range.start).unwrap_or_default());
            copied = range.end;
            match piece {
                Piece::Text(inserted) => plain.push_str(&inserted),
                Piece::Raw { .. } => {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    pieces.push(piece);
                }
            }
        }
        plain.push_str(text.get(copied..).unwrap_or_default());
        pieces.push(Piece::Text(plain));
        (pieces, self.slots)
    }
}
