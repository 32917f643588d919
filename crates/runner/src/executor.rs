//! Doing the work of attempts: one trait, one file a kind of work.
//!
//! [`Executors::of`] is the only place that says which executor has a command; the event loop speaks
//! to all of them through [`Executor`]. An executor decides nothing: it begins what is on record, ends
//! what is unwanted, and reports with an [`ExecutorMessage`].

mod answer;
mod calls;
mod function;
mod http;
mod input;
mod message;
mod program;
mod sub_flow;
mod write_file;

use std::sync::Arc;

use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::Task;
use undaunted_engine::workflow::Action;
use undaunted_policy::Cause;

use crate::drive::{DriveError, JobContext};

pub use answer::{Answer, StepResult, step_result};
pub(crate) use calls::Calls;
pub use function::{Attempt, Failed, FunctionOrder, Functions, Outcome};
pub(crate) use http::send;
pub use http::{Order, is_there, judged};
pub(crate) use input::{Inputs, of_command, of_items, read_file};
pub use message::{ExecutorMessage, ReadItems};
pub(crate) use program::Programs;
pub(crate) use sub_flow::Ask;
pub use write_file::NewFile;
pub(crate) use write_file::write_file;

use function::FunctionCalls;
use http::Requests;
use sub_flow::InnerFlows;
use write_file::FileWrites;

/// One kind of work.
pub(crate) trait Executor {
    /// Begins an attempt whose start is on record. Its end, at the latest, is reported.
    fn begin(&mut self, start: u64, task: Task, context: &JobContext<'_>);

    /// Ends an attempt. The end is returned if it is known at once, and then not reported; work that
    /// has not begun, or cannot be ended, has none.
    fn cancel(&mut self, start: u64, context: &JobContext<'_>) -> Option<AttemptEnd>;

    /// What became of an attempt that is on record as started and whose engine, or keeper, has died.
    fn fate_after_crash(&mut self, attempt: &Started<'_>) -> AttemptFate;

    /// An attempt was taken on by the other side: its result comes from there.
    fn accepted(&mut self, _start: u64) {}

    /// The end of an attempt is known. Of a kind that had nothing to do with it, too.
    fn ended(&mut self, _start: u64) {}

    /// Whether an action can be done by this process.
    fn check(&self, _action: &Action, _context: &JobContext<'_>) -> Result<(), DriveError> {
        Ok(())
    }

    /// What an attempt calls, after which its breaker is named unless the command names one.
    fn target(&mut self, _: &Task, _: &JobContext<'_>) -> Result<Option<Arc<str>>, String> {
        Ok(None)
    }
}

/// An attempt that is on record as started.
pub(crate) struct Started<'a> {
    /// The number of its start.
    pub(crate) start: u64,
    /// What its command does; nothing if it is the command that gives the items of a map.
    pub(crate) action: Option<&'a Action>,
    /// Whether it is on record that the other side has taken it on.
    pub(crate) is_accepted: bool,
}

/// What became of an attempt that is on record as started.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptFate {
    /// It never began, or comes to the same when it is done twice: it begins under the same number.
    Begin,
    /// It is under way, and its end will be reported.
    Wait,
    /// It has ended, or was interrupted.
    Ended(Box<AttemptEnd>),
}

/// The executors of one job.
#[derive(Default)]
pub(crate) struct Executors {
    pub(crate) programs: Programs,
    pub(crate) requests: Requests,
    pub(crate) inputs: Inputs,
    pub(crate) sub_flows: InnerFlows,
    functions: FunctionCalls,
    files: FileWrites,
}

impl Executors {
    /// The executor of an action; without one, of a command that gives the items of a map.
    pub(crate) fn of(&mut self, action: Option<&Action>) -> &mut dyn Executor {
        match action {
            None | Some(Action::Shell(_) | Action::Agent { .. }) => &mut self.programs,
            Some(Action::Http(_) | Action::Step(_)) => &mut self.requests,
            Some(Action::Function(_)) => &mut self.functions,
            Some(Action::WriteFile(_)) => &mut self.files,
            Some(Action::SubFlow(_)) => &mut self.sub_flows,
        }
    }

    /// The end of an attempt is known. Its item may be somewhere else by now, so all of them hear it.
    pub(crate) fn ended(&mut self, start: u64) {
        self.programs.ended(start);
        self.requests.ended(start);
        self.functions.ended(start);
        self.sub_flows.ended(start);
    }
}

/// The end of an attempt that has come to nothing.
pub(crate) fn failed(start: u64, cause: Cause, error: impl Into<String>) -> AttemptEnd {
    AttemptEnd {
        start,
        failure: Some(cause),
        error: error.into(),
        ..AttemptEnd::default()
    }
}
