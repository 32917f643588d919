//! A case as a whole.

use std::collections::BTreeMap;
use std::time::Duration;

use super::act::{Act, How, Script};
use super::command::{Breaker, Command};
use super::flow::Flow;
use super::retry::{Attempts, Retry};

/// A random job, and what its commands do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// When it has to be over.
    pub deadline: Option<Duration>,
    /// The job pool.
    pub pool: Option<u32>,
    /// The item cap.
    pub share: Option<u32>,
    /// The `retry_config` of the workflow.
    pub retry: Option<Retry>,
    /// The breakers that commands ask, each with its settings.
    pub breakers: Vec<Breaker>,
    /// What is to be done.
    pub shape: Shape,
    /// What the attempts of each command (by label) do for each item: the name of an item of a map,
    /// the number of an item of a flow from `0` on, nothing elsewhere.
    pub scripts: BTreeMap<(u32, String), Script>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One command after the other.
    List(Vec<Command>),
    /// The same for every item.
    Map(Box<Map>),
    /// What leads to the goals.
    Flow(Flow),
}

/// A map, and what goes before and after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Runs before.
    pub setup: Vec<Command>,
    /// Runs for every item; never empty.
    pub commands: Vec<Command>,
    /// Runs after.
    pub reduce: Vec<Command>,
    /// The names of the items.
    pub items: Vec<String>,
    /// The items come from a command and not from a file.
    pub items_by_shell: bool,
    /// How many run at a time.
    pub width: u32,
    /// How long an item may take, in whole seconds.
    pub item_deadline: Option<Duration>,
    /// The `retry_config` of its `timeout_config`.
    pub timeout_retry: Option<Retry>,
    /// The `retry_config` of its `error_policy`.
    pub policy_retry: Option<Retry>,
    /// How many items may fail.
    pub tolerance: Tolerance,
    /// When it is complete although not everything has reported.
    pub completion: Option<Completion>,
}

/// How many items may fail, and what becomes of one that does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tolerance {
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
pub struct Completion {
    /// How many have to succeed.
    pub min: Option<u32>,
    /// Within this time, in whole seconds.
    pub deadline: Option<Duration>,
    /// `on_complete: leave`.
    pub leaves: bool,
}

impl Case {
    /// What an attempt does. The label is `w3`; the item is that of a map (`a0`) or the number of
    /// one of a flow, and does not matter anywhere else; attempts are counted from 1.
    #[must_use]
    pub fn act(&self, label: &str, item: &str, attempt: u32) -> Act {
        let number = label.strip_prefix('w').and_then(|it| it.parse().ok());
        let of_item = |label: u32| self.scripts.get(&(label, item.to_owned()));
        let of_all = |label: u32| self.scripts.get(&(label, String::new()));
        let script = number.and_then(|label| of_item(label).or_else(|| of_all(label)));
        script.map_or_else(Act::nothing, |script| script.act(attempt))
    }

    /// The JSON text of the items of a map: what `items.json` holds, or the command prints.
    #[must_use]
    pub fn items(&self) -> String {
        let Shape::Map(map) = &self.shape else {
            return "[]".to_owned();
        };
        let items = map.items.iter().map(|id| format!("{{\"id\":\"{id}\"}}"));
        format!("[{}]", items.collect::<Vec<_>>().join(","))
    }

    /// Every command of a list or a map, those of handlers too.
    #[must_use]
    pub fn commands(&self) -> Vec<&Command> {
        let roots: Vec<&Command> = match &self.shape {
            Shape::List(commands) => commands.iter().collect(),
            Shape::Map(map) => {
                let around = map.setup.iter().chain(&map.commands);
                around.chain(&map.reduce).collect()
            }
            Shape::Flow(_) => Vec::new(),
        };
        roots.into_iter().flat_map(Command::with_all_below).collect()
    }

    /// Whether something ends whatever goes on for ever by itself: hanging attempts, and retries
    /// without a bound.
    #[must_use]
    pub fn can_end(&self) -> bool {
        let item = match &self.shape {
            Shape::Map(map) => map.item_deadline,
            _ => None,
        };
        if let Shape::Flow(flow) = &self.shape {
            let mut steps = flow.steps.iter();
            return steps.all(|step| step.timeout.is_some() || !self.hangs(step.label));
        }
        let bounded = |retry: Option<&Retry>| {
            retry.is_none_or(|it| it.attempts != Some(Attempts::Unlimited) || it.is_bounded())
        };
        let in_map: Vec<u32> = match &self.shape {
            Shape::Map(map) => map.commands.iter().map(|it| it.label).collect(),
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
        scripts.any(|((of, _), script)| *of == label && script.acts.iter().any(|act| act.how == How::Hang))
    }
}
