//! The state of a job: the fold of its events.
//!
//! [`Job::apply`] alone changes a [`Job`] and its parts. Nothing here decides anything: `decide` makes the
//! events, and `effect` says what they ask the runner to do.

mod apply;
mod breakers;
mod clocks;
mod compact_option;
mod complete;
mod flow;
mod hold;
mod import;
mod inputs;
mod item;
mod items;
mod open;
mod plans;
mod queue;
mod redrive;
mod reservations;
mod shared_positions;
mod snapshot;
mod starts;
mod state;
mod step;
mod texts;
mod time_limits;

pub use complete::{JobFailure, JobFailures};
pub use hold::{Hold, Holds};
pub use item::{ActiveItem, Activity, HandlerFrame, ItemPosition, ItemScope, ItemState, SettledItem};
pub use items::Items;
pub use plans::Plans;
pub use queue::RetryQueue;
pub use reservations::ReservedStart;
pub use snapshot::SavedError;
pub use starts::{AttemptStarts, StartPace};
pub use state::{Job, JobError, JobStage, JobTimes};
pub use step::{StepStage, StepState};
pub use texts::TextTable;
