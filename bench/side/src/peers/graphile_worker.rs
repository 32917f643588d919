//! graphile-worker: jobs in PostgreSQL, fetched ahead and completed in batches.

use std::path::Path;

use crate::peers::npm::Installed;
use crate::peers::{Engine, Prepared};
use crate::process::Reason;

pub(super) fn prepare(sources: &Path, home: &Path) -> Result<Prepared, Reason> {
    let installed = Installed::of("graphile-worker", sources, home)?;
    Ok(Prepared {
        version: installed.version("graphile-worker")?,
        settings: "`localQueue: {size: 2000}`, `concurrentJobs: 64`, completions and failures in batches (one by one in D); its \
                   first retry comes after e seconds, which cannot be configured and is not counted; after a kill the dead worker \
                   is unlocked manually, because otherwise its jobs wait for four hours",
        engines: vec![Engine {
            name: "graphile-worker",
            driver: installed.driver(),
            database: true,
            pace: 15_000,
            pending: 100_000,
            when_killed: Some(("BENCH_COMPLETION_DELAY", "-1")),
        }],
    })
}
