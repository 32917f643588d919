//! The state of a job: the fold of its events.
//!
//! [`Job`] and its parts are changed by `apply` alone, and nothing here decides anything.

mod alike;
mod apply;
mod complete;
mod flow;
mod gate;
mod hold;
mod import;
mod inputs;
mod item;
mod items;
mod maybe;
mod mishaps;
mod open;
mod plans;
mod queue;
mod redrive;
mod restore;
mod saved;
mod starts;
mod state;
mod step;
mod texts;
mod times;

pub use hold::{Hold, Holds};
pub use item::{Active, Doing, Frame, Item, Scope, Settled, Standing};
pub use items::Items;
pub use mishaps::{Mishap, Mishaps};
pub use plans::Plans;
pub use queue::Queue;
pub use saved::SavedError;
pub use starts::Starts;
pub use state::{Job, JobError, Stage};
pub use step::{StepStage, StepState};
pub use texts::Texts;
pub use times::Times;
