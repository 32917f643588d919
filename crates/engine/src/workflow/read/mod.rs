//! From the tree to the checked workflow, one file per part of the language.
//!
//! Every reader reports what it cannot read and continues, so that all problems of a file are reported
//! at once.

mod action;
mod breaker;
mod command;
mod flow;
mod layer;
mod map;
mod names;
mod plan;
mod reader;
mod settings;
mod workflow;

pub(crate) use plan::aim_at;
pub use plan::assemble;
pub(super) use reader::WorkflowReader;
pub(super) use workflow::workflow;
