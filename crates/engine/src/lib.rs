//! What happens next: the pure core of Undaunted.
//!
//! No async, no clock, no random source, no files: text, states and times come in as arguments, and data
//! comes out. [`workflow`] turns the text of a file into a checked workflow, or into diagnostics. A
//! [`Job`](job::Job) is the fold of its journal of [`event`]s, and three functions run it:
//!
//! 1. [`decide`](decide::decide): state, [`input`] and time in; events out;
//! 2. [`Job::apply`](job::Job::apply): the only function that changes a job, and it cannot fail;
//! 3. [`wanted`](effect::wanted): what the runner should be doing now.
//!
//! [`react`](decide::react) runs the first two until nothing more follows. The runner writes the events,
//! acts on the effects, and turns what happens into the next input. After a crash it folds the journal and
//! asks `wanted`: recovery is the same walk.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

pub mod breaker;
pub mod capture;
pub mod catalog;
pub mod decide;
mod dispatch;
pub mod effect;
pub mod event;
pub mod flow;
mod fnv;
pub mod id;
pub mod input;
pub mod item_bytes;
pub mod job;
pub mod law;
#[doc(hidden)]
pub mod mutant;
pub mod plan;
pub mod state_file;
mod stored;
pub mod submission;
pub mod task;
pub mod update;
pub mod view;
pub mod workflow;
