//! Peers that are there, and those that could not be had.

use std::path::Path;

use crate::peers::{Engine, dbos, graphile_worker, parallel, pg_boss, restate, xargs};
use crate::process::Reason;

/// A peer that can be measured.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// Its name and version.
    pub(crate) version: String,
    /// What was set, and what that means for its record.
    pub(crate) settings: &'static str,
    /// The ways in which it executes items durably; none for those that run commands.
    pub(crate) engines: Vec<Engine>,
}

/// A peer by its name, and what came of preparing it.
#[derive(Debug)]
pub(crate) struct Peer {
    /// As it is named on the command line.
    pub(crate) name: &'static str,
    /// Ready, or the reason why it cannot take part.
    pub(crate) outcome: Result<Prepared, Reason>,
}

/// Prepares a peer: `sources` has its pinned versions and its driver, `home` is where it is installed.
pub(crate) fn prepare(name: &'static str, sources: &Path, home: &Path) -> Peer {
    let outcome = match name {
        "xargs" => xargs::prepare(),
        "parallel" => parallel::prepare(),
        "dbos" => dbos::prepare(sources, home),
        "restate" => restate::prepare(sources, home),
        "pg-boss" => pg_boss::prepare(sources, home),
        _ => graphile_worker::prepare(sources, home),
    };
    Peer { name, outcome }
}
