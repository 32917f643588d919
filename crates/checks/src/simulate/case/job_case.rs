//! A case as a whole.

use std::collections::BTreeMap;
use std::time::Duration;

use super::command::{CaseBreaker, CaseCommand};
use super::flow::CaseFlow;
use super::retry::{CaseAttempts, CaseRetry};

/// A random job, and what its commands do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobCase {
    /// When it has to be over.
    pub deadline: Option<Duration>,
    /// The job pool.
    pub pool: Option<u32>,
    /// The item cap.
    pub share: Option<u32>,
    /// The `retry_config` of the workflow.
    pub retry: Option<CaseRetry>,
    /// The breakers that commands ask, each with its settings.
    pub breakers: Vec<CaseBreaker>,
    /// What is to be done.
    pub shape: CaseShape,
    /// What the attempts of each command (by label) do for each item: the name of an item of a map,
    /// the number of an item of a flow from `0` on, nothing elsewhere.
    pub scripts: BTreeMap<(u32, String), AttemptScript>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseShape {
    /// One command after the other.
    List(Vec<CaseCommand>),
    /// The same for every item.
    Map(Box<CaseMap>),
    /// What leads to the goals.
    Flow(CaseFlow),
}

/// A map, and what goes before and after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseMap {
    /// Runs before.
    pub setup: Vec<CaseCommand>,
    /// Runs for every item; never empty.
    pub commands: Vec<CaseCommand>,
    /// Runs after.
    pub reduce: Vec<CaseCommand>,
    /// The names of the items.
    pub items: Vec<String>,
    /// The items come from a command and not from a file.
    pub items_by_shell: bool,
    /// How many run at a time.
    pub width: u32,
    /// How long an item may take, in whole seconds.
    pub item_deadline: Option<Duration>,
    /// The `retry_config` of its `timeout_config`.
    pub timeout_retry: Option<CaseRetry>,
    /// The `retry_config` of its `error_policy`.
    pub policy_retry: Option<CaseRetry>,
    /// How many items may fail.
    pub tolerance: CaseTolerance,
    /// When it is complete although not everything has reported.
    pub completion: Option<CaseCompletion>,
}

/// How many items may fail, and what becomes of one that does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaseTolerance {
    /// `continue_on_failure: false`.
    pub first_stops: bool,
    /// Stop at so many.
    pub max_failures: Option<u32>,
    /// Stop when more than so many percent of at least ten settled items have failed.
    pub share_percent: Option<u32>,
    /// `on_item_failure`, if anything is said.
    pub on_item_failure: Option<&'static str>,
}

/// A completion rule with best effort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseCompletion {
    /// How many have to succeed.
    pub min: Option<u32>,
    /// Within this time, in whole seconds.
    pub deadline: Option<Duration>,
    /// `on_complete: leave`.
    pub leaves: bool,
}

impl JobCase {
    /// What an attempt does. The label is `w3`; the item is that of a map (`a0`) or the number of
    /// one of a flow, and does not matter anywhere else; attempts are counted from 1.
    #[must_use]
    pub fn act(&self, label: &str, item: &str, attempt: u32) -> ScriptedAttempt {
        let number = label.strip_prefix('w').and_then(|it| it.parse().ok());
        let of_item = |label: u32| self.scripts.get(&(label, item.to_owned()));
        let of_all = |label: u32| self.scripts.get(&(label, String::new()));
        let script = number.and_then(|label| of_item(label).or_else(|| of_all(label)));
        script.map_or_else(ScriptedAttempt::nothing, |script| script.act(attempt))
    }

    /// The JSON text of the items of a map: what `items.json` holds, or the command prints.
    #[must_use]
    pub fn items(&self) -> String {
        let CaseShape::Map(map) = &self.shape else {
            return "[]".to_owned();
        };
        let items = map.items.iter().map(|id| format!("{{\"id\":\"{id}\"}}"));
        format!("[{}]", items.collect::<Vec<_>>().join(","))
    }

    /// Every command of a list or a map, those of handlers too.
    #[must_use]
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

    /// Whether something ends whatever goes on for ever by itself: hanging attempts, and retries
    /// without a bound.
    #[must_use]
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

    /// Whether an attempt of this command may hang.
    fn hangs(&self, label: u32) -> bool {
        let mut scripts = self.scripts.iter();
        scripts.any(|((of, _), script)| {
            *of == label && script.acts.iter().any(|act| act.how == ScriptedEnd::Hang)
        })
    }
}

/// What one attempt does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedAttempt {
    /// How long it takes, if nobody ends it before.
    pub takes: Duration,
    /// How it ends.
    pub how: ScriptedEnd,
}

/// How an attempt ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptedEnd {
    /// Well, having written this. Of a step of a flow: its outputs, a JSON object.
    Success(String),
    /// With this exit status, which is not 0.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// Never by itself.
    Hang,
    /// With this HTTP status, which is no success, and the seconds of its `CaseRetry-After`.
    Status(u16, Option<u64>),
    /// Nobody took the connection.
    Refused,
    /// The answer says `"success": false`.
    Denied,
    /// An async step says that it has taken the work on; what comes of it comes so much later.
    Later(Box<ScriptedAttempt>),
}

/// What the attempts of one command do for one item: one act each, the last for all that follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptScript {
    /// The acts of attempt 1, 2 and so on; never empty.
    pub acts: Vec<ScriptedAttempt>,
}

impl AttemptScript {
    /// What the attempt of this number, counted from 1, does.
    #[must_use]
    pub fn act(&self, attempt: u32) -> ScriptedAttempt {
        let place = usize::try_from(attempt).unwrap_or(usize::MAX);
        let act = self.acts.get(place.saturating_sub(1));
        act.or(self.acts.last()).cloned().unwrap_or_else(ScriptedAttempt::nothing)
    }
}

impl ScriptedAttempt {
    /// A success in a millisecond: what anything does that a script does not mention.
    #[must_use]
    pub fn nothing() -> Self {
        Self { takes: Duration::from_millis(1), how: ScriptedEnd::Success(String::new()) }
    }
}
