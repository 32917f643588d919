//! What every workload needs: the contestants, their folders, and the sizes of a quick or a full run.

use std::path::PathBuf;
use std::process::Command;

use crate::arguments::Arguments;
use crate::peers::{self, Engine, Peer, Turn};
use crate::postgres::Postgres;
use crate::process::{Reason, bound};
use crate::scratch::Scratch;

#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) arguments: Arguments,
    /// The database, or why there is none. Declared before the folders, so that it is stopped before they are
    /// removed.
    pub(crate) postgres: Result<Postgres, Reason>,
    pub(crate) scratch: Scratch,
    pub(crate) peers: Vec<Peer>,
    ours: Engine,
}

impl Bench {
    /// Prepares the peers.
    pub(crate) fn prepare(arguments: Arguments) -> Result<Self, Reason> {
        let scratch = Scratch::make()?;
        let sources = arguments.bench.join("peers");
        let prepare = |name: &&'static str| {
            eprintln!("preparing {name}");
            peers::prepare(name, &sources, &scratch.home)
        };
        let peers: Vec<Peer> = arguments.peers.iter().map(prepare).collect();
        let prepared = || peers.iter().filter_map(|peer| peer.outcome.as_ref().ok());
        let needs = |engine: &Engine| engine.database;
        let needed = prepared().any(|peer| peer.engines.iter().any(needs));
        let postgres =
            if needed { Postgres::start(scratch.data()) } else { Err("no peer needs it".to_owned()) };
        let [_, bench] = &arguments.built;
        let ours = Engine {
            name: "Undaunted, in process",
            driver: vec![bench.join("undaunted-bench-embedded").into()],
            database: false,
            pace: 60_000,
            pending: 1_000_000,
            when_killed: Some(("BENCH_WIDTH", "64")),
        };
        Ok(Self { arguments, postgres, scratch, peers, ours })
    }

    /// Undaunted in process, and all engines of the peers.
    pub(crate) fn engines(&self) -> Vec<&Engine> {
        let prepared = self.peers.iter().filter_map(|peer| peer.outcome.as_ref().ok());
        let theirs = prepared.flat_map(|peer| &peer.engines);
        std::iter::once(&self.ours).chain(theirs).collect()
    }

    /// Whether an engine is ours.
    pub(crate) fn is_ours(&self, engine: &Engine) -> bool {
        engine.name == self.ours.name
    }

    /// Whether a peer of this name is measured and installed.
    pub(crate) fn has(&self, name: &str) -> bool {
        let mut peers = self.peers.iter();
        peers.any(|peer| peer.name == name && peer.outcome.is_ok())
    }

    /// Prepares a turn of an engine.
    pub(crate) fn turn<'a>(&self, engine: &'a Engine) -> Result<Turn<'a>, Reason> {
        engine.turn(&self.scratch, self.postgres.as_ref().ok())
    }

    /// How many rounds there are.
    pub(crate) const fn rounds(&self) -> usize {
        if self.arguments.quick { 2 } else { 5 }
    }

    /// The size for a quick or a full run.
    pub(crate) const fn sized(&self, quick: u32, full: u32) -> u32 {
        if self.arguments.quick { quick } else { full }
    }

    /// The product's program.
    pub(crate) fn undaunted(&self) -> Command {
        bound(self.product("undaunted"))
    }

    /// A program that was built with the product.
    pub(crate) fn product(&self, name: &str) -> PathBuf {
        let [product, _] = &self.arguments.built;
        product.join(name)
    }

    /// A program that was built with the benchmarks.
    pub(crate) fn benchmark(&self, name: &str) -> PathBuf {
        let [_, bench] = &self.arguments.built;
        bench.join(name)
    }
}
