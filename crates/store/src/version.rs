//! The two numbers of a guarded append: how long the journal is, and whose it is.

use std::fmt;

/// How many records a journal has. A record's version is the journal's once it is appended: the
/// first record is version 1.
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

/// The claim an append is made under. Every claim has a higher epoch than all claims of the same store
/// before it, whatever they claimed, so an epoch never comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Of an aggregate that was never claimed; any process may append to it.
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
