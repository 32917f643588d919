//! What a round has found.

use std::fmt;

/// What kind of promise is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Something that was done, or promised to be done, is not on record or never done.
    Lost,
    /// Something was done once more than it may be.
    Duplicated,
    /// Anything else: too early, too much, against the journal's own laws.
    Unlawful,
}

/// One broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) kind: Kind,
    pub(crate) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Lost => "lost",
            Kind::Duplicated => "duplicated",
            Kind::Unlawful => "unlawful",
        };
        write!(f, "{kind}: {}", self.what)
    }
}

/// Everything a round has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) violations: Vec<Violation>,
    /// The largest lateness of a wait, in microseconds.
    pub(crate) lateness: u64,
    /// Whose that was.
    pub(crate) latest: String,
    /// How many waits were measured.
    pub(crate) waits: u64,
    pub(crate) kills: u64,
    /// Places of the program where somebody died.
    pub(crate) places: Vec<String>,
}

impl Found {
    pub(crate) fn add(&mut self, kind: Kind, what: String) {
        self.violations.push(Violation { kind, what });
    }

    pub(crate) fn lost(&mut self, what: String) {
        self.add(Kind::Lost, what);
    }

    pub(crate) fn duplicated(&mut self, what: String) {
        self.add(Kind::Duplicated, what);
    }

    pub(crate) fn unlawful(&mut self, what: String) {
        self.add(Kind::Unlawful, what);
    }

    /// A claim that has to hold.
    pub(crate) fn claim(&mut self, kind: Kind, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.add(kind, what());
        }
    }

    pub(crate) fn count(&self, kind: Kind) -> u64 {
        let found = self.violations.iter().filter(|it| it.kind == kind);
        u64::try_from(found.count()).unwrap_or(u64::MAX)
    }

    /// A wait ended so late.
    pub(crate) fn late(&mut self, lateness: u64, who: impl FnOnce() -> String) {
        if lateness > self.lateness {
            self.lateness = lateness;
            self.latest = who();
        }
    }

    /// Takes over what another round has found.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.violations.extend(other.violations);
        self.late(other.lateness, || other.latest);
        self.waits = self.waits.saturating_add(other.waits);
        self.kills = self.kills.saturating_add(other.kills);
        self.places.extend(other.places);
    }
}
