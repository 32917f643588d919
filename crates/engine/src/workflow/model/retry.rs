//! The retry policy of a command, and where each of its values comes from.

use std::collections::BTreeMap;

use undaunted_policy::Policy;

use crate::stored::worded;
use crate::workflow::source::Span;

#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedRetry {
    pub policy: Policy,
    /// By setting; one that is missing here has its default.
    origins: Box<[(&'static str, SettingOrigin)]>,
}

impl ResolvedRetry {
    /// For commands without any `retry_config`.
    pub fn once() -> Self {
        Self { policy: Policy::ONCE, origins: Box::default() }
    }

    pub(crate) fn new(policy: Policy, origins: BTreeMap<&'static str, SettingOrigin>) -> Self {
        Self { policy, origins: origins.into_iter().collect() }
    }

    /// `None` for a default.
    pub fn origin(&self, setting: &str) -> Option<SettingOrigin> {
        let found = self.origins.iter().find(|(name, _)| *name == setting);
        found.map(|(_, origin)| *origin)
    }

    pub fn origins(&self) -> impl Iterator<Item = (&'static str, SettingOrigin)> {
        self.origins.iter().copied()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingOrigin {
    pub place: SettingPlace,
    pub span: Span,
}

worded! {
    /// The blocks that may hold retry settings, the closest to the command first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum SettingPlace {
        Command = "retry_config of the command",
        TimeoutConfig = "map.timeout_config",
        MapErrorPolicy = "map.error_policy",
        ErrorPolicy = "error_policy of the workflow",
        Workflow = "retry_config of the workflow",
        WorkConfig = "work_config",
        Deadline = "deadline",
    }
}
