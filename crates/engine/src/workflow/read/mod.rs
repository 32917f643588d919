//! From the tree to the checked workflow, one file per part of the language.
//!
//! Every reader takes what it can and notes what it cannot, so that all problems of a file are reported
//! at once.

mod action;
mod breaker;
mod command;
mod conform;
mod flow;
mod handler;
mod layer;
mod map;
mod names;
mod plan;
mod reader;
mod settings;
mod workflow;

pub(crate) use flow::flow_step;
pub(crate) use plan::{NoPlan, plan_flow};
pub(crate) use reader::WorkflowReader;
pub(crate) use workflow::{blank, workflow};
