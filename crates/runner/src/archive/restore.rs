//! Restoring: from a file to the store.

use std::convert::Infallible;
use std::io::Read;
use std::path::Path;

use undaunted_engine::catalog::{Catalog, FlowLifecycle};
use undaunted_engine::job::Job;
use undaunted_store::{Append, Claim, Store, Version};

use super::error::ArchiveError;
use super::reading::{Archive, read, read_from};
use crate::catalog::{CatalogHandle, activated, deactivated};
use crate::journal::{self, JournalError};

/// Restores a job from a file, which stays where it is, and returns its name. If the store has the job
/// already, nothing changes. On an error nothing is written.
pub fn restore(
    store: &dyn Store,
    catalog: Option<&CatalogHandle>,
    file: &Path,
) -> Result<String, ArchiveError> {
    restored(store, catalog, read(file)?)
}

/// For tests: as [`restore`], from any reader. `name` is only for messages.
#[doc(hidden)]
pub fn restore_from(
    store: &dyn Store,
    catalog: Option<&CatalogHandle>,
    name: &Path,
    from: impl Read,
) -> Result<String, ArchiveError> {
    restored(store, catalog, read_from(name, from)?)
}

fn restored(
    store: &dyn Store,
    catalog: Option<&CatalogHandle>,
    mut archive: Archive,
) -> Result<String, ArchiveError> {
    let records = std::mem::take(&mut archive.records);
    let aggregate = journal::aggregate(&archive.header.job)?;
    let claim = store.claim(&aggregate).map_err(JournalError::from)?;
    let written = write(store, &claim, records);
    let released = store.unclaim(&claim).map_err(JournalError::from);
    written?;
    released?;
    if let Some(catalog) = catalog {
        enter(catalog, &archive.job)?;
    }
    Ok(archive.header.job)
}

/// Writes all records, or checks that they are there.
fn write(store: &dyn Store, claim: &Claim, records: Vec<Vec<u8>>) -> Result<(), ArchiveError> {
    if claim.version == Version::EMPTY {
        let append = Append::new(claim.aggregate.clone(), claim.version, claim.epoch, records);
        let written = store.append(vec![append]).map(drop);
        return Ok(written.map_err(JournalError::from)?);
    }
    let mut same = claim.version == Version::EMPTY.after(records.len());
    let found = store.read(&claim.aggregate, Version::EMPTY);
    for (read, ours) in found.map_err(JournalError::from)?.zip(records) {
        let (_, bytes) = read.map_err(JournalError::from)?;
        same = same && bytes == ours;
    }
    if same {
        return Ok(());
    }
    Err(ArchiveError::Exists { job: claim.aggregate.id().to_owned() })
}

/// Adds a flow to the catalog, unless the catalog already has it like this. Ignores a job that is not a flow.
fn enter(catalog: &CatalogHandle, job: &Job) -> Result<(), JournalError> {
    let events: Vec<_> = activated(job).into_iter().chain(deactivated(job)).collect();
    if events.is_empty() {
        return Ok(());
    }
    let (flow, ended) = (job.id().to_owned(), job.times.last_at);
    let entered = catalog.change(move |catalog: &Catalog| {
        let entry = catalog.flows.get(flow.as_str());
        let stands = entry
            .is_some_and(|entry| entry.lifecycle == FlowLifecycle::Deactivated && entry.ended == Some(ended));
        Ok::<_, Infallible>(if stands { Vec::new() } else { events.clone() })
    });
    entered.map(|_| ())
}
