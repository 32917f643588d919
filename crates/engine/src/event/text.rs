//! A text in an event, or the number of a text kept before.
//!
//! Items that fail together fail alike, so the text of an error is kept once and referred to by number.
//! When there are too many different texts, they are stored in place.

use minicbor::{Decode, Encode};

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum StoredText {
    /// The number of a text kept before, from 0.
    #[n(0)]
    Kept(#[n(0)] u32),
    #[n(1)]
    Itself(#[n(0)] String),
}

impl StoredText {
    /// Shortens a text that is stored in place to this many bytes, and marks the cut.
    pub(crate) fn brief(self, most: usize) -> Self {
        match self {
            Self::Itself(text) if text.len() > most => {
                let end = (0..=most).rev().find(|end| text.is_char_boundary(*end));
                let kept = text.get(..end.unwrap_or_default()).unwrap_or_default();
                Self::Itself(format!("{kept}…"))
            }
            short => short,
        }
    }
}
