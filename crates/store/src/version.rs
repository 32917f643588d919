//! The two numbers of a guarded append: the version of the journal and the epoch of the claim.

use std::fmt;

/// The number of records appended to a journal. The version of a record is the version of the journal once it
/// is appended; the first record has version 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    pub const EMPTY: Self = Self(0);

    pub fn after(self, records: usize) -> Self {
        Self(self.0.saturating_add(u64::try_from(records).unwrap_or(u64::MAX)))
    }

    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a claim. Every claim has a higher epoch than all earlier claims of the store, whatever the
/// aggregate, so an epoch is never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch of an aggregate that was never claimed. Any process may append to it.
    pub const UNCLAIMED: Self = Self(0);

    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
