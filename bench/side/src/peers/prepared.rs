//! Peers that are installed, and those that could not be.

use std::path::Path;

use crate::peers::{Engine, dbos, graphile_worker, parallel, pg_boss, restate, xargs};
use crate::process::Reason;

#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) version: String,
    /// Its settings and their effect on durability.
    pub(crate) settings: &'static str,
    /// Its engines; none for a peer that runs commands.
    pub(crate) engines: Vec<Engine>,
}

/// A peer, and the result of installing it.
#[derive(Debug)]
pub(crate) struct Peer {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// Ready, or why it cannot be measured.
    pub(crate) outcome: Result<Prepared, Reason>,
}

/// Installs a peer into `home`. `sources` has its pinned versions and its driver.
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
