//! Executors run attempts: one trait, and one file for each kind of work.
//!
//! [`Executors::of`] selects the executor of a command; the event loop uses all of them through [`Executor`].
//! An executor decides nothing: it begins attempts that are on record, cancels them, and reports with an
//! [`ExecutorMessage`].

mod answer;
mod calls;
mod function;
mod http;
mod input;
mod program;
mod sub_flow;
mod write_file;

use std::path::PathBuf;
use std::sync::Arc;

use answer::{MOST, SHOWN};
use sub_flow::InnerFlows;
use undaunted_engine::event::NewItem;
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::Task;
use undaunted_engine::workflow::Action;
use undaunted_policy::{FailureCause, Timestamp};
use write_file::FileWrites;

use crate::{DriveError, JobContext, KeeperRefusal};

pub use answer::{HttpAnswer, StepResult, step_result};
pub(crate) use calls::Calls;
pub use function::{FunctionAttempt, FunctionFailure, FunctionOrder, FunctionResult, Functions};
pub(crate) use http::send;
pub use http::{HttpOrder, attempt_end, is_there};
pub use input::items_of_file;
pub(crate) use input::{InputReads, of_command, of_items, read_file};
pub(crate) use program::Programs;
pub(crate) use sub_flow::SubFlowRequest;
pub use write_file::NewFile;
pub(crate) use write_file::write_file;

pub(crate) trait Executor {
    /// Begins an attempt whose start is on record. Its end is always reported.
    fn begin(&mut self, start: StartId, task: Task, context: &JobContext<'_>);

    /// Cancels an attempt. Returns its end if that is known at once; then it is not reported as well.
    fn cancel(&mut self, start: StartId, context: &JobContext<'_>) -> Option<AttemptEnd>;

    /// The fate of an attempt on record as started, after its engine or keeper has died.
    fn fate_after_crash(&mut self, attempt: &StartedAttempt<'_>) -> AttemptFate;

    /// The service has accepted an attempt and will send its result later.
    fn accepted(&mut self, _start: StartId) {}

    /// The end of an attempt is known. Also called for attempts of another executor.
    fn ended(&mut self, _start: StartId) {}

    fn check(&self, _action: &Action, _context: &JobContext<'_>) -> Result<(), DriveError> {
        Ok(())
    }

    /// The target of an attempt, which names its breaker unless the command names one.
    fn target(&mut self, _: &Task, _: &JobContext<'_>) -> Result<Option<Arc<str>>, String> {
        Ok(None)
    }
}

pub(crate) struct StartedAttempt<'a> {
    pub(crate) start: StartId,
    /// None for the command that produces the items of a map.
    pub(crate) action: Option<&'a Action>,
    /// The service has accepted it, and that is on record.
    pub(crate) is_accepted: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AttemptFate {
    /// It never began, or repeating it is harmless: it begins under the same number.
    Begin,
    /// It is running, since this instant if that is known, and its end will be reported.
    Wait(Option<Timestamp>),
    Ended(Box<AttemptEnd>),
}

/// The items of a map, or why they cannot be read.
pub type ReadItems = Result<InputItems, String>;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputItems {
    pub items: Vec<NewItem>,
    /// What the user should know about the input.
    pub warning: Option<String>,
}

#[derive(Debug)]
pub enum ExecutorMessage {
    Began {
        start: StartId,
        /// By the clock of the machine it runs on.
        at: Option<Timestamp>,
        /// Output and error output.
        files: Option<[PathBuf; 2]>,
    },
    /// A program was cancelled before it was started.
    NotBegun(StartId),
    /// The service has accepted an attempt; its result comes later.
    Accepted(StartId),
    Ended(Box<AttemptEnd>),
    Items {
        step: StepId,
        items: ReadItems,
    },
    Refused(KeeperRefusal),
    /// The keeper has gone. The next one recovers the fates of its commands.
    KeeperGone,
}

#[derive(Default)]
pub(crate) struct Executors {
    pub(crate) programs: Programs,
    pub(crate) calls: Calls,
    pub(crate) inputs: InputReads,
    pub(crate) sub_flows: InnerFlows,
    files: FileWrites,
}

impl Executors {
    /// The executor of an action; without an action, of the command that produces the items of a map.
    pub(crate) fn of(&mut self, action: Option<&Action>) -> &mut dyn Executor {
        match action {
            None | Some(Action::Shell(_) | Action::Agent { .. }) => &mut self.programs,
            Some(Action::Http(_) | Action::Step(_) | Action::Function(_)) => &mut self.calls,
            Some(Action::WriteFile(_)) => &mut self.files,
            Some(Action::SubFlow(_)) => &mut self.sub_flows,
        }
    }

    /// Passed to every executor, since the item may be at another command by now.
    pub(crate) fn ended(&mut self, start: StartId) {
        let Self {
            programs,
            calls,
            inputs: _, // their commands are programs
            sub_flows,
            files,
        } = self;
        let all: [&mut dyn Executor; 4] = [programs, calls, sub_flows, files];
        for executor in all {
            executor.ended(start);
        }
    }
}

pub(crate) fn failed(start: StartId, cause: FailureCause, error: impl Into<String>) -> AttemptEnd {
    AttemptEnd { start, failure: Some(cause), error: error.into(), ..AttemptEnd::default() }
}
