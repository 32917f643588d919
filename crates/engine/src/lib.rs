//! What happens next: the pure core of Undaunted.
//!
//! No async, no clock, no random source, no files: text, states and times come in as arguments, and
//! data comes out. Today it holds the workflow language: [`workflow`] turns the text of a file into
//! a checked workflow, or into everything that is wrong with it.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

pub mod workflow;
