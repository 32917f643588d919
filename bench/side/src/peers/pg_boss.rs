//! pg-boss: jobs in PostgreSQL, taken and completed in batches.

use std::path::Path;

use crate::peers::npm::Installed;
use crate::peers::{Engine, Prepared};
use crate::process::Reason;

pub(super) fn prepare(sources: &Path, home: &Path) -> Result<Prepared, Reason> {
    let installed = Installed::of("pg-boss", sources, home)?;
    Ok(Prepared {
        version: installed.version("pg-boss")?,
        settings: "four loops that fetch and complete 1000 jobs at a time (16 in D, where a kill repeats a batch), `retryDelay: \
                   0`; after a kill `expireInSeconds: 1`, its minimum, and continuous `supervise`",
        engines: vec![Engine {
            name: "pg-boss",
            driver: installed.driver(),
            database: true,
            pace: 15_000,
            pending: 100_000,
            when_killed: Some(("BENCH_BATCH", "16")),
        }],
    })
}
