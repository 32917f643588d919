//! The changes to the author's text.
//!
//! Edits may come in any order: the delimiter of a here-document is rewritten only after its body was
//! read. What no edit covers is copied byte for byte.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::workflow::template::reference::Reference;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) reference: Reference,
    /// The environment variable with the value; `None` for `${raw:…}`, which is inserted.
    pub(super) variable: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// The value of a `raw:` slot, escaped in a here-document that was quoted.
    Raw {
        slot: usize,
        escaped: bool,
    },
}

#[derive(Debug, Default)]
pub(super) struct Edits {
    list: Vec<(Range<usize>, Piece)>,
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
        self.list.push((range, Piece::Text(text)));
        self.list.len().saturating_sub(1)
    }

    pub(super) fn insert_raw(&mut self, range: Range<usize>, slot: usize, escaped: bool) {
        self.list.push((range, Piece::Raw { slot, escaped }));
    }

    pub(super) fn append(&mut self, edit: usize, more: &str) {
        if let Some((_, Piece::Text(text))) = self.list.get_mut(edit) {
            text.push_str(more);
        }
    }

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
