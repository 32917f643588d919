//! An engine that executes items durably, called through a driver (`bench/peers/contract.mjs`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::postgres::Postgres;
use crate::process::{Reason, answer, bound};
use crate::scratch::Scratch;

/// How a driver is started, and the sizes it can handle.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    /// The name in the tables.
    pub(crate) name: &'static str,
    /// The program, and its arguments before the workload.
    pub(crate) driver: Vec<OsString>,
    /// Whether it needs PostgreSQL.
    pub(crate) database: bool,
    /// Roughly how many items it executes per second; the sizes of turns depend on it.
    pub(crate) pace: u32,
    /// How many pending retries it can prepare in reasonable time.
    pub(crate) pending: u32,
    /// An environment variable for the workload in which it is killed.
    pub(crate) when_killed: Option<(&'static str, &'static str)>,
}

/// One turn of an engine, with an empty database or an empty folder.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    engine: &'a Engine,
    database: Option<String>,
    folder: PathBuf,
}

impl Engine {
    /// Prepares for a turn.
    pub(crate) fn turn(&self, scratch: &Scratch, postgres: Option<&Postgres>) -> Result<Turn<'_>, Reason> {
        let database = match (self.database, postgres) {
            (false, _) => None,
            (true, Some(postgres)) => Some(postgres.fresh()?),
            (true, None) => return Err("PostgreSQL is not available".to_owned()),
        };
        Ok(Turn { engine: self, database, folder: scratch.turn()? })
    }
}

impl Turn<'_> {
    /// The driver with a workload and its arguments.
    pub(crate) fn command(&self, workload: &str, items: u32, argument: Option<&str>) -> Command {
        let mut words = self.engine.driver.iter();
        let mut command = bound(words.next().cloned().unwrap_or_default());
        command.args(words).arg(workload).arg(items.to_string());
        command.args(argument).env("BENCH_FOLDER", &self.folder);
        if let Some(database) = &self.database {
            command.env("BENCH_POSTGRES", database);
        }
        if let Some((name, value)) = self.engine.when_killed
            && ["begin", "resume"].contains(&workload)
        {
            command.env(name, value);
        }
        command
    }

    /// Runs a workload to its end.
    pub(crate) fn measure(&self, workload: &str, items: u32) -> Result<Value, Reason> {
        answer(&mut self.command(workload, items, None))
    }

    /// The folder of engines without a database.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// A number in the answer of a driver.
pub(crate) fn number(answer: &Value, name: &str) -> Result<f64, Reason> {
    let number = answer.get(name).and_then(Value::as_f64);
    number.ok_or_else(|| format!("the driver's answer has no number `{name}`: {answer}"))
}
