//! GNU parallel: runs commands and logs those that have ended, so that it can skip them the next time.

use crate::peers::Prepared;
use crate::postgres::install;
use crate::process::{Reason, bound, finish};

pub(super) fn prepare() -> Result<Prepared, Reason> {
    let version = || finish(bound("parallel").arg("--version"));
    let said = version().or_else(|_| {
        install("parallel")?;
        version()
    })?;
    Ok(Prepared {
        version: said.lines().next().unwrap_or("GNU parallel").to_owned(),
        settings: "`parallel --joblog FILE -j WIDTH`, `--resume` after a kill; the log is not synced",
        engines: Vec::new(),
    })
}
