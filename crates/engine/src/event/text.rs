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
    /// The text itself.
    #[n(1)]
    Itself(#[n(0)] String),
}
