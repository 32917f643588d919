//! DBOS: steps of workflows, in PostgreSQL and in SQLite.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::peers::{Engine, Prepared};
use crate::process::{Reason, bound, finish};

pub(super) fn prepare(sources: &Path, home: &Path) -> Result<Prepared, Reason> {
    let (sources, home) = (sources.join("dbos"), home.join("dbos"));
    let (wanted, done) = (sources.join("requirements.txt"), home.join("installed"));
    let python = home.join("venv/bin/python");
    let wanted_text = fs::read(&wanted).map_err(|error| error.to_string())?;
    if fs::read(&done).ok().as_ref() != Some(&wanted_text) {
        finish(bound("python3").args(["-m", "venv", "--clear"]).arg(home.join("venv")))?;
        let mut pip = bound(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--requirement"]);
        finish(pip.arg(&wanted))?;
        fs::write(&done, &wanted_text).map_err(|error| error.to_string())?;
    }
    let mut ask = bound(&python);
    let version =
        finish(ask.args(["-c", "import importlib.metadata as m; print('dbos', m.version('dbos'))"]))?;
    let driver: Vec<OsString> = vec![python.into(), sources.join("driver.py").into()];
    let engine = |name, database, pace| Engine {
        name,
        driver: driver.clone(),
        database,
        pace,
        pending: 1_000,
        when_killed: None,
    };
    Ok(Prepared {
        version: version.trim().to_owned(),
        settings: "steps of eight parallel workflows in PostgreSQL, of one in SQLite (write-ahead log, default `synchronous`: \
                   full); retries after 0 s, which are not recorded",
        engines: vec![engine("DBOS, PostgreSQL", true, 400), engine("DBOS, SQLite", false, 200)],
    })
}
