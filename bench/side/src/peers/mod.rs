//! The peers: how each is installed, and its settings.

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
