//! What happens next: the pure core of Undaunted.
//!
//! No async, no clock, no random source, no files: text, states and times come in as arguments, and
//! data comes out. [`workflow`] turns the text of a file into a checked workflow, or into everything
//! that is wrong with it. A [`Job`](job::Job) is what its journal of [`event`]s comes to, and three
//! functions run it:
//!
//! - [`decide`](decide::decide): state, input and time in; events out;
//! - [`Job::apply`](job::Job::apply): the only one that changes the state, and it cannot fail;
//! - [`wanted`](effect::wanted): what the world should be doing now.
//!
//! [`react`](decide::react) calls the first two until nothing more follows.

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
pub mod job;
pub mod law;
#[doc(hidden)]
pub mod mutant;
pub mod plan;
pub mod state_file;
pub mod submission;
pub mod task;
pub mod update;
pub mod view;
pub mod workflow;
