//! Texts that events refer to by number.
//!
//! The table is bounded: beyond a number of texts or bytes, further texts are stored in their events and not
//! kept here.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::StoredText;

#[derive(Clone, Debug, Default)]
pub struct TextTable {
    numbers: BTreeMap<Arc<str>, u32>,
    kept: Vec<Arc<str>>,
    bytes: usize,
}

const MAX_TEXTS: usize = 4096;
const MAX_BYTES: usize = 4 << 20;

impl TextTable {
    pub(crate) fn keep(&mut self, text: &str) {
        let number = u32::try_from(self.kept.len()).unwrap_or(u32::MAX);
        let text: Arc<str> = text.into();
        self.bytes = self.bytes.saturating_add(text.len());
        self.numbers.insert(Arc::clone(&text), number);
        self.kept.push(text);
    }

    pub fn number(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    /// The number the text would get after `ahead` others, if it fits.
    pub(crate) fn room_for(&self, text: &str, ahead: usize, ahead_bytes: usize) -> Option<u32> {
        let number = self.kept.len().saturating_add(ahead);
        let bytes = self.bytes.saturating_add(ahead_bytes);
        let fits = number < MAX_TEXTS && bytes.saturating_add(text.len()) <= MAX_BYTES;
        u32::try_from(number).ok().filter(|_| fits)
    }

    /// In the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.kept.iter().map(|text| &**text)
    }

    pub fn len(&self) -> usize {
        self.kept.len()
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn read<'t>(&'t self, text: &'t StoredText) -> &'t str {
        match text {
            StoredText::Kept(number) => {
                usize::try_from(*number).ok().and_then(|number| self.kept.get(number)).map_or("", |text| text)
            }
            StoredText::Itself(text) => text,
        }
    }
}
