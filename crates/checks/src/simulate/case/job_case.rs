//! A generated job and the scripts of its attempts.

use std::collections::BTreeMap;
use std::time::Duration;

use super::command::{CaseBreaker, CaseCommand};
use super::flow::CaseFlow;
use super::retry::{CaseAttempts, CaseRetry};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobCase {
    pub deadline: Option<Duration>,
    pub pool: Option<u32>,
    pub share: Option<u32>,
    pub retry: Option<CaseRetry>,
    pub breakers: Vec<CaseBreaker>,
    pub shape: CaseShape,
    /// By the label of the command and the item: its name in a map, its number in a flow, empty elsewhere.
    pub scripts: BTreeMap<(u32, String), AttemptScript>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseShape {
    List(Vec<CaseCommand>),
    Map(Box<CaseMap>),
    Flow(CaseFlow),
}

/// A map with its setup and reduce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseMap {
    pub setup: Vec<CaseCommand>,
    pub commands: Vec<CaseCommand>,
    pub reduce: Vec<CaseCommand>,
    pub items: Vec<String>,
    /// Whether a command lists the items, and not a file.
    pub items_by_shell: bool,
    pub width: u32,
    /// In whole seconds.
    pub item_deadline: Option<Duration>,
    /// The `retry_config` of `timeout_config`.
    pub timeout_retry: Option<CaseRetry>,
    /// The `retry_config` of `error_policy`.
    pub policy_retry: Option<CaseRetry>,
    pub tolerance: CaseTolerance,
    pub completion: Option<CaseCompletion>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaseTolerance {
    pub first_stops: bool,
    pub max_failures: Option<u32>,
    /// Stop when more than this percentage of at least ten settled items has failed.
    pub share_percent: Option<u32>,
    pub on_item_failure: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseCompletion {
    pub min: Option<u32>,
    /// In whole seconds.
    pub deadline: Option<Duration>,
    pub leaves: bool,
}

impl JobCase {
    /// A map without anything that keeps its starts from being reserved. Other cases stay as they are.
    pub(crate) fn plain(self) -> Self {
        let CaseShape::Map(map) = &self.shape else { return self };
        // What a script does depends on the kind of command.
        let program = map.commands.iter().find(|command| command.call.is_none()).cloned();
        let Some(program) = program else { return self };
        let mut map = map.clone();
        map.commands = vec![program];
        map.width = map.width.min(2);
        for command in &mut map.commands {
            (command.breaker, command.on_failure) = (None, None);
            (command.stays_interrupted, command.on_success) = (false, Vec::new());
            let mut retry = command.retry.take().unwrap_or_default();
            // A rule may need a breaker.
            retry.rules.clear();
            retry.attempts = Some(match retry.attempts {
                Some(CaseAttempts::Times(times)) => CaseAttempts::Times(times.max(1)),
                Some(CaseAttempts::Unlimited) | None => CaseAttempts::Times(2),
            });
            command.retry = Some(retry);
        }
        (map.tolerance, map.completion) = (CaseTolerance::default(), None);
        (map.timeout_retry, map.policy_retry) = (None, None);
        Self { deadline: None, pool: None, share: None, retry: None, shape: CaseShape::Map(map), ..self }
    }

    /// What an attempt does. The item is ignored outside of maps and flows; attempts are counted from 1.
    pub fn act(&self, label: &str, item: &str, attempt: u32) -> ScriptedAttempt {
        let number = label.strip_prefix('w').and_then(|it| it.parse().ok());
        let of_item = |label: u32| self.scripts.get(&(label, item.to_owned()));
        let of_all = |label: u32| self.scripts.get(&(label, String::new()));
        let script = number.and_then(|label| of_item(label).or_else(|| of_all(label)));
        script.map_or_else(ScriptedAttempt::nothing, |script| script.act(attempt))
    }

    /// The items of a map as JSON, from the file or the command.
    pub fn items(&self) -> String {
        let CaseShape::Map(map) = &self.shape else {
            return "[]".to_owned();
        };
        let items = map.items.iter().map(|id| format!("{{\"id\":\"{id}\"}}"));
        format!("[{}]", items.collect::<Vec<_>>().join(","))
    }

    /// The commands of a list or a map, with those of handlers.
    pub fn commands(&self) -> Vec<&CaseCommand> {
        let roots: Vec<&CaseCommand> = match &self.shape {
            CaseShape::List(commands) => commands.iter().collect(),
            CaseShape::Map(map) => {
                let around = map.setup.iter().chain(&map.commands);
                around.chain(&map.reduce).collect()
            }
            CaseShape::Flow(_) => Vec::new(),
        };
        roots.into_iter().flat_map(CaseCommand::with_all_below).collect()
    }

    /// Whether hanging attempts and unlimited retries are ended by something.
    pub fn can_end(&self) -> bool {
        let item = match &self.shape {
            CaseShape::Map(map) => map.item_deadline,
            _ => None,
        };
        if let CaseShape::Flow(flow) = &self.shape {
            let mut steps = flow.steps.iter();
            return steps.all(|step| step.timeout.is_some() || !self.hangs(step.label));
        }
        let bounded = |retry: Option<&CaseRetry>| {
            retry.is_none_or(|it| it.attempts != Some(CaseAttempts::Unlimited) || it.is_bounded())
        };
        let in_map: Vec<u32> = match &self.shape {
            CaseShape::Map(map) => map.commands.iter().map(|it| it.label).collect(),
            _ => Vec::new(),
        };
        self.commands().into_iter().all(|command| {
            let limited = item.is_some() && in_map.contains(&command.label);
            let ends = command.timeout.is_some() || limited || self.deadline.is_some();
            bounded(command.retry.as_ref()) && (ends || !self.hangs(command.label))
        })
    }

    fn hangs(&self, label: u32) -> bool {
        let mut scripts = self.scripts.iter();
        scripts.any(|((of, _), script)| {
            *of == label && script.acts.iter().any(|act| act.end == ScriptedEnd::Hang)
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedAttempt {
    /// Unless it is ended before.
    pub takes: Duration,
    pub end: ScriptedEnd,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptedEnd {
    /// With this output; for a step of a flow a JSON object.
    Success(String),
    Exit(i32),
    Signal(i32),
    Hang,
    /// An error status, and the seconds of its `Retry-After`.
    Status(u16, Option<u64>),
    /// The connection was refused.
    Refused,
    /// The response says `"success": false`.
    Denied,
    /// The step accepts the work; the result follows after its own time.
    Later(Box<ScriptedAttempt>),
}

/// The attempts of one command for one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptScript {
    /// Attempt 1, 2 and so on, the last for all that follow; never empty.
    pub acts: Vec<ScriptedAttempt>,
}

impl AttemptScript {
    pub fn act(&self, attempt: u32) -> ScriptedAttempt {
        let place = usize::try_from(attempt).unwrap_or(usize::MAX);
        let act = self.acts.get(place.saturating_sub(1));
        act.or(self.acts.last()).cloned().unwrap_or_else(ScriptedAttempt::nothing)
    }
}

impl ScriptedAttempt {
    /// A success in a millisecond, for everything without a script.
    pub fn nothing() -> Self {
        Self { takes: Duration::from_millis(1), end: ScriptedEnd::Success(String::new()) }
    }
}
