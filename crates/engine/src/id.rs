//! The numbers of a job's parts, each a type of its own.

use std::fmt;

use minicbor::{Decode, Encode};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
        #[cbor(transparent)]
        pub struct $name(#[n(0)] pub u32);

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

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// A step, by its place in the workflow.
    StepId
);

number!(
    /// A command, by its place among all commands of the workflow.
    CommandId
);

/// Counted from 1. An [`AttemptId`](crate::event::AttemptId) that names the last attempt made has 0 if
/// there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(transparent)]
pub struct AttemptNumber(#[n(0)] pub u32);

/// A start of an attempt, or of the command that gives the items of a map, counted over the whole job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(transparent)]
pub struct StartId(#[n(0)] pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct ItemId {
    #[n(0)]
    pub step: StepId,
    /// The place in the input of the step.
    #[n(1)]
    pub index: u32,
}

impl StepId {
    pub const fn item(self, index: u32) -> ItemId {
        ItemId { step: self, index }
    }
}

impl fmt::Display for StartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for AttemptNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
