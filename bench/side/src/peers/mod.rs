//! The others: how each is prepared, and in which settings it runs.

mod dbos;
mod engine;
mod graphile_worker;
mod npm;
mod parallel;
mod pg_boss;
mod prepared;
mod restate;
mod xargs;

pub(crate) use engine::{Engine, Turn, number};
pub(crate) use prepared::{Peer, Prepared, prepare};
