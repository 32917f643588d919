//! The violations and figures of a round.

use std::fmt;

/// Which promise is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ViolationKind {
    /// Something that was done or promised is not recorded, or was never done.
    Lost,
    /// Something was done more often than allowed.
    Duplicated,
    /// Anything else: too early, too much, or against the laws of a journal.
    Unlawful,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KillViolation {
    pub(crate) kind: ViolationKind,
    pub(crate) what: String,
}

impl fmt::Display for KillViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ViolationKind::Lost => "lost",
            ViolationKind::Duplicated => "duplicated",
            ViolationKind::Unlawful => "unlawful",
        };
        write!(f, "{kind}: {}", self.what)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KillFindings {
    pub(crate) violations: Vec<KillViolation>,
    /// The longest lateness of a wait, in microseconds.
    pub(crate) lateness: u64,
    /// The attempt with that lateness.
    pub(crate) latest: String,
    /// The number of measured waits.
    pub(crate) waits: u64,
    pub(crate) kills: u64,
    /// Failpoints at which a process died.
    pub(crate) failpoints: Vec<String>,
}

impl KillFindings {
    fn add(&mut self, kind: ViolationKind, what: fmt::Arguments<'_>) {
        self.violations.push(KillViolation { kind, what: what.to_string() });
    }

    pub(crate) fn lost(&mut self, what: fmt::Arguments<'_>) {
        self.add(ViolationKind::Lost, what);
    }

    pub(crate) fn duplicated(&mut self, what: fmt::Arguments<'_>) {
        self.add(ViolationKind::Duplicated, what);
    }

    pub(crate) fn unlawful(&mut self, what: fmt::Arguments<'_>) {
        self.add(ViolationKind::Unlawful, what);
    }

    pub(crate) fn lost_unless(&mut self, holds: bool, what: fmt::Arguments<'_>) {
        if !holds {
            self.lost(what);
        }
    }

    pub(crate) fn duplicated_unless(&mut self, holds: bool, what: fmt::Arguments<'_>) {
        if !holds {
            self.duplicated(what);
        }
    }

    pub(crate) fn unlawful_unless(&mut self, holds: bool, what: fmt::Arguments<'_>) {
        if !holds {
            self.unlawful(what);
        }
    }

    pub(crate) fn count(&self, kind: ViolationKind) -> u64 {
        let findings = self.violations.iter().filter(|it| it.kind == kind);
        u64::try_from(findings.count()).unwrap_or(u64::MAX)
    }

    /// A wait ended this late.
    pub(crate) fn late(&mut self, lateness: u64, attempt: impl FnOnce() -> String) {
        if lateness > self.lateness {
            self.lateness = lateness;
            self.latest = attempt();
        }
    }

    /// Adds the findings of another round.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.violations.extend(other.violations);
        self.late(other.lateness, || other.latest);
        self.waits += other.waits;
        self.kills += other.kills;
        self.failpoints.extend(other.failpoints);
    }
}
