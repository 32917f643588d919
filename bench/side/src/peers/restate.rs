//! Restate: invocations in the log of a server, executed by a service over loopback HTTP.

use std::path::Path;

use crate::peers::npm::Installed;
use crate::peers::{Engine, Prepared};
use crate::process::Reason;

pub(super) fn prepare(sources: &Path, home: &Path) -> Result<Prepared, Reason> {
    let installed = Installed::of("restate", sources, home)?;
    let versions =
        ["@restatedev/restate-server", "@restatedev/restate-sdk"].map(|package| installed.version(package));
    let [server, sdk] = versions;
    Ok(Prepared {
        version: format!("{}, {}", server?, sdk?),
        settings: "one node with a synced log (the default), 256 concurrent invocations (64 in D), first retry after 1 ms; server \
                   and service are killed together",
        engines: vec![Engine {
            name: "Restate",
            driver: installed.driver(),
            database: false,
            pace: 1_000,
            pending: 10_000,
            when_killed: Some(("RESTATE_WORKER__INVOKER__CONCURRENT_INVOCATIONS_LIMIT", "64")),
        }],
    })
}
