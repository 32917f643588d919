//! The retry policy of a command, and where each of its values comes from.

use std::collections::BTreeMap;

use undaunted_policy::Policy;

use crate::workflow::source::Span;

/// A policy put together from several places.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    pub policy: Policy,
    /// Who gave which setting, by name; what is missing here is a default.
    origins: Box<[(&'static str, Origin)]>,
}

impl Resolved {
    /// No `retry_config` anywhere: run once.
    pub fn once() -> Self {
        Self {
            policy: Policy::ONCE,
            origins: Box::default(),
        }
    }

    pub(crate) fn new(policy: Policy, origins: BTreeMap<&'static str, Origin>) -> Self {
        Self {
            policy,
            origins: origins.into_iter().collect(),
        }
    }

    /// Who gave this setting; nobody, if it is a default.
    pub fn origin(&self, setting: &str) -> Option<Origin> {
        let found = self.origins.iter().find(|(name, _)| *name == setting);
        found.map(|(_, origin)| *origin)
    }

    /// Every setting that was given, by name.
    pub fn origins(&self) -> impl Iterator<Item = (&'static str, Origin)> {
        self.origins.iter().copied()
    }
}

/// Where a value was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub place: Place,
    /// Where in the file.
    pub span: Span,
}

/// The blocks that may hold retry settings, the closest to the command first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// `retry_config` of the command.
    Command,
    /// `map.timeout_config`.
    TimeoutConfig,
    /// `map.error_policy`.
    MapErrorPolicy,
    /// `error_policy` of the workflow.
    ErrorPolicy,
    /// `retry_config` of the workflow.
    Workflow,
    /// `work_config` of a flow step.
    WorkConfig,
    /// A deadline of the item or the job.
    Deadline,
}

impl Place {
    /// Where that is, in the words of the file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Command => "retry_config of the command",
            Self::TimeoutConfig => "map.timeout_config",
            Self::MapErrorPolicy => "map.error_policy",
            Self::ErrorPolicy => "error_policy of the workflow",
            Self::Workflow => "retry_config of the workflow",
            Self::WorkConfig => "work_config",
            Self::Deadline => "deadline",
        }
    }
}
