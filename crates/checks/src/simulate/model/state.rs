//! How steps and items stand.

use std::time::Duration;

use super::breaker::Ticket;
use super::failure::Outcome;
use super::prediction::{Fate, Range};

/// What a command has used up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pub(super) attempts: u32,
    pub(super) retries: u32,
    pub(super) spent: Duration,
    pub(super) spent_range: Range,
    pub(super) previous: Option<Duration>,
}

/// An item.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// As the prediction has it, and as the script has it.
    pub(super) name: String,
    pub(super) script: String,
    pub(super) doing: Doing,
    /// When its first attempt started.
    pub(super) began: Option<Duration>,
    /// Which command of the step.
    pub(super) command: usize,
    /// Whether it is at the command itself, or at what runs because of it.
    pub(super) part: Part,
    pub(super) main: Progress,
    pub(super) below: Progress,
    /// Why the command stopped, while its handler runs and in the attempts after that.
    pub(super) stopped: Option<&'static str>,
    /// Rounds of the handler that were begun.
    pub(super) rounds: u32,
    /// Units of the job pool.
    pub(super) charged: u32,
    /// What it has given, if it is an item of a flow.
    pub(super) output: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Command,
    Handler(usize),
    After(usize),
}

#[derive(Clone, Debug)]
pub(super) enum Doing {
    /// It was never begun.
    New,
    /// It goes on then, as soon as there is room.
    Ready {
        since: Duration,
    },
    Running(Running),
    /// A breaker keeps it back.
    Held {
        since: Duration,
        gate: String,
    },
    Settled(Fate),
}

/// An attempt.
#[derive(Clone, Debug)]
pub(super) struct Running {
    /// When it ends, and how; never, if nobody ends it.
    pub(super) end: Option<(Duration, Outcome)>,
    /// When it is taken on, if its result comes later.
    pub(super) accepted: Option<Duration>,
    pub(super) ticket: Option<(String, Ticket)>,
}

/// A step.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) items: Vec<Item>,
    pub(super) stage: Stage,
    pub(super) began: Duration,
    /// An item of it has failed for good, and it is part of a flow.
    pub(super) failing: bool,
    /// What its completion rule has decided: whether that is a success, and whether time was up.
    pub(super) reached: Option<(bool, bool)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Waiting,
    Active,
    Complete,
    Failed,
    /// What it requires can no longer come.
    Unreachable,
}

impl Item {
    pub(super) fn new((name, script): &(String, String)) -> Self {
        Self {
            name: name.clone(),
            script: script.clone(),
            doing: Doing::New,
            began: None,
            command: 0,
            part: Part::Command,
            main: Progress::default(),
            below: Progress::default(),
            stopped: None,
            rounds: 0,
            charged: 0,
            output: String::new(),
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        matches!(self.doing, Doing::Settled(_))
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.doing, Doing::Running(_))
    }

    /// Begun and not settled.
    pub(super) fn is_under_way(&self) -> bool {
        !matches!(self.doing, Doing::New | Doing::Settled(_))
    }

    /// What the command at hand has used up.
    pub(super) fn progress(&mut self) -> &mut Progress {
        match self.part {
            Part::Command => &mut self.main,
            Part::Handler(_) | Part::After(_) => &mut self.below,
        }
    }

    pub(super) fn has(&self, fate: impl Fn(Fate) -> bool) -> bool {
        matches!(self.doing, Doing::Settled(it) if fate(it))
    }
}

impl Step {
    /// Whether items that were never begun may begin.
    pub(super) fn takes_more(&self) -> bool {
        self.stage == Stage::Active && self.reached.is_none() && !self.failing
    }

    pub(super) fn running(&self) -> usize {
        self.items.iter().filter(|it| it.is_running()).count()
    }
}
