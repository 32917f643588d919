//! The kill campaign: the built program, real processes and files, and `kill -9`.
//!
//! Every round draws a workflow, which attempts fail, and whom to kill when; runs it, kills, goes on,
//! and at last lets it end. What really ran is written down by whoever ran it, outside of the program's
//! reach, and compared with what its journal says. Nothing here knows how the program works inside: it
//! sees processes, files, answers and the events it prints.

mod act;
mod campaign;
mod client;
mod compare;
mod found;
mod job_round;
mod journal;
mod outside;
mod plan;
mod policy;
mod program;
mod serve_round;
mod servers;
mod step_server;
mod strokes;
mod world;

pub use act::{ActArgs, act};
pub use campaign::{Args, run};
