//! The kill campaign: the built program, real processes and files, and `kill -9`.
//!
//! Every round draws a workflow, which attempts fail, and which processes are killed when. It runs the
//! workflow, kills, resumes, and at last lets the job end. The commands and the step server write down what
//! really ran (`record`, `step_server`), out of the program's reach, and `compare` holds that against the
//! program's journal. Nothing here knows how the program works inside: it sees processes, files, HTTP
//! responses and printed events.

mod act;
mod campaign;
mod compare;
mod findings;
mod job_round;
mod journal;
mod plan;
mod policy;
mod record;
mod sandbox;
mod schedule;
mod serve_round;
mod servers;
mod step_server;

pub use act::{ActArgs, act};
pub use campaign::{KillArgs, run};
