//! The states of steps and items.

use std::time::Duration;

use super::breaker::ModelTicket;
use super::judge::ModelOutcome;
use super::prediction::{DelayRange, PredictedEnd};

/// What a command has used up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ModelProgress {
    pub(super) attempts: u32,
    pub(super) retries: u32,
    pub(super) spent: Duration,
    pub(super) spent_range: DelayRange,
    pub(super) previous: Option<Duration>,
}

#[derive(Clone, Debug)]
pub(super) struct ModelItem {
    /// As in the prediction and as in the script.
    pub(super) name: String,
    pub(super) script: String,
    pub(super) state: ModelItemState,
    pub(super) began: Option<Duration>,
    pub(super) command: usize,
    /// Whether it is at the command itself or at one that runs because of it.
    pub(super) part: ModelItemPart,
    pub(super) main: ModelProgress,
    pub(super) below: ModelProgress,
    /// Why the command stopped, while its handler runs and in the attempts after that.
    pub(super) stopped: Option<&'static str>,
    /// Rounds of the handler.
    pub(super) rounds: u32,
    pub(super) charged: u32,
    /// The output, if it is an item of a flow.
    pub(super) output: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelItemPart {
    Command,
    Handler(usize),
    After(usize),
}

#[derive(Clone, Debug)]
pub(super) enum ModelItemState {
    New,
    /// It continues then, as soon as there is a slot.
    Ready {
        since: Duration,
    },
    Running(ModelAttempt),
    Held {
        since: Duration,
        breaker: String,
    },
    Settled(PredictedEnd),
}

#[derive(Clone, Debug)]
pub(super) struct ModelAttempt {
    /// When and how it ends; `None` if it never does.
    pub(super) end: Option<(Duration, ModelOutcome)>,
    /// When it is accepted, if its result is async.
    pub(super) accepted: Option<Duration>,
    pub(super) ticket: Option<(String, ModelTicket)>,
}

#[derive(Clone, Debug)]
pub(super) struct ModelStep {
    pub(super) items: Vec<ModelItem>,
    pub(super) stage: ModelStage,
    pub(super) began: Duration,
    /// An item of this step of a flow has failed.
    pub(super) failing: bool,
    /// The decision of the completion rule: whether it is a success, and whether it was by deadline.
    pub(super) reached: Option<(bool, bool)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelStage {
    Waiting,
    Active,
    Complete,
    Failed,
    /// A required input can no longer be produced.
    Unreachable,
}

impl ModelItem {
    pub(super) fn new((name, script): &(String, String)) -> Self {
        Self {
            name: name.clone(),
            script: script.clone(),
            state: ModelItemState::New,
            began: None,
            command: 0,
            part: ModelItemPart::Command,
            main: ModelProgress::default(),
            below: ModelProgress::default(),
            stopped: None,
            rounds: 0,
            charged: 0,
            output: String::new(),
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        matches!(self.state, ModelItemState::Settled(_))
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, ModelItemState::Running(_))
    }

    /// Begun and not settled.
    pub(super) fn is_under_way(&self) -> bool {
        !matches!(self.state, ModelItemState::New | ModelItemState::Settled(_))
    }

    /// The progress of the current command.
    pub(super) fn progress(&mut self) -> &mut ModelProgress {
        match self.part {
            ModelItemPart::Command => &mut self.main,
            ModelItemPart::Handler(_) | ModelItemPart::After(_) => &mut self.below,
        }
    }

    pub(super) fn has(&self, fate: impl Fn(PredictedEnd) -> bool) -> bool {
        matches!(self.state, ModelItemState::Settled(it) if fate(it))
    }
}

impl ModelStep {
    /// Whether new items may begin.
    pub(super) fn takes_more(&self) -> bool {
        self.stage == ModelStage::Active && self.reached.is_none() && !self.failing
    }

    pub(super) fn running(&self) -> usize {
        self.items.iter().filter(|it| it.is_running()).count()
    }
}
