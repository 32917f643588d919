//! The two numbers of a guarded append: how long the journal is, and whose it is.

use std::fmt;

/// How many records a journal has. A record's version is the journal's once it is appended: the
/// first record is version 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    /// Of a journal without records.
    pub const EMPTY: Self = Self(0);

    /// The version after that many more records.
    pub fn after(self, records: usize) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(records).unwrap_or(u64::MAX)),
        )
    }

    /// The version of the next record.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which claim an append is made under. Every claim of a store has a higher one than all before
/// it, whatever was claimed, so that an epoch never comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Of an aggregate nobody has ever claimed; everybody may append to it.
    pub const UNCLAIMED: Self = Self(0);

    /// The next claim's.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
