//! Typed indices and counters: steps, commands, items, attempts, starts.

use std::fmt;

use minicbor::encode::Write;
use minicbor::{Decode, Decoder, Encode, Encoder};

use crate::event::codec::{Decoded, Encoded};
use crate::stored::stored;

/// Stores a number as the bare number. The codec is written by hand so that it is inlined: a record holds
/// several numbers, and recovery decodes every record.
macro_rules! stored_as_number {
    ($name:ident, $number:ident) => {
        impl<C> Encode<C> for $name {
            #[inline]
            fn encode<W: Write>(&self, to: &mut Encoder<W>, _: &mut C) -> Encoded<W> {
                to.$number(self.0)?.ok()
            }
        }

        impl<'b, C> Decode<'b, C> for $name {
            #[inline]
            fn decode(from: &mut Decoder<'b>, _: &mut C) -> Decoded<Self> {
                from.$number().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// The number at this position of a list; saturates.
            pub fn at(position: usize) -> Self {
                Self(u32::try_from(position).unwrap_or(u32::MAX))
            }

            pub fn position(self) -> usize {
                usize::try_from(self.0).unwrap_or(usize::MAX)
            }

            /// Every number from the first, to be zipped with a list.
            pub fn all() -> impl Iterator<Item = Self> {
                (0..).map(Self)
            }
        }

        stored_as_number!($name, u32);
    };
}

number!(
    /// A step, by its position in the workflow.
    StepId
);

number!(
    /// A command, by its position among all commands of the workflow.
    CommandId
);

/// Counted from 1. Where an [`AttemptId`](crate::event::AttemptId) names the last attempt, 0 means that there
/// was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttemptNumber(pub u32);

stored_as_number!(AttemptNumber, u32);

/// The start of an attempt or of the input command of a map, counted over the whole job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StartId(pub u64);

stored_as_number!(StartId, u64);

stored! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct ItemId {
        pub step: StepId = 0,
        /// The position in the input of the step.
        pub index: u32 = 1,
    }
}

impl StepId {
    pub const fn item(self, index: u32) -> ItemId {
        ItemId { step: self, index }
    }
}
