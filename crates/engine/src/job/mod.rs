//! The state of a job: what its events come to.
//!
//! [`Job`] and its parts are changed by `apply` alone, and nothing here decides anything.

mod apply;
mod complete;
mod flow;
mod gate;
mod hold;
mod import;
mod item;
mod items;
mod open;
mod plans;
mod redrive;
mod restore;
mod state;
mod step;
mod texts;

pub use hold::{Hold, Holds};
pub use item::{Active, Doing, Frame, Item, Scope, Settled};
pub use items::Items;
pub use plans::Plans;
pub use state::{Job, JobError, Mishap, Stage};
pub use step::{StepStage, StepState};
pub use texts::Texts;
