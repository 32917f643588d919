//! xargs: runs commands, keeps no record, never tries again.

use crate::peers::Prepared;
use crate::process::{Reason, bound, finish};

pub(super) fn prepare() -> Result<Prepared, Reason> {
    let said = finish(bound("xargs").arg("--version"))?;
    Ok(Prepared {
        version: said.lines().next().unwrap_or("xargs").to_owned(),
        settings: "`xargs -P WIDTH -n 1`; keeps no record",
        engines: Vec::new(),
    })
}
