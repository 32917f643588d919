//! A text in an event: itself, or the number of one that was kept before.
//!
//! Items that fail together fail alike. The text of an error is kept once and named by its number
//! afterwards; when there are too many different ones they stand where they are.

use minicbor::{Decode, Encode};

/// A text of an event.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Text {
    /// The text with this number, counted from 0 in the order they were kept.
    #[n(0)]
    Kept(#[n(0)] u32),
    #[n(1)]
    Itself(#[n(0)] String),
}

impl Text {
    /// The same, no longer than so many bytes where it stands itself. What is cut off is marked.
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
