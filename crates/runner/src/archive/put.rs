//! Archiving: from the store to a file, and restoring: from a file to the store.

use std::convert::Infallible;
use std::io::Read;
use std::path::{Path, PathBuf};

use undaunted_engine::catalog::{Catalog, CatalogEvent, FlowLifecycle};
use undaunted_engine::job::{Job, Plans};
use undaunted_store::{Append, Claim, Store, Version};

use super::reading::{Archive, read, read_from, write};
use super::{ArchiveError, ArchiveHeader, file_name};
use crate::catalog::{activated, deactivated};
use crate::{CatalogHandle, ClaimedJob, JournalError, LocalFolder, failpoint, journal};

/// Moves a job that has ended from the store to a file in `to`, and returns its path. Only the journal is
/// kept: the local folder of the job, with the output of its commands, is removed.
///
/// A crash leaves the job, the file or both, and calling it again finishes. After an error the job is
/// still in the store.
pub fn archive(
    store: &dyn Store,
    local: &LocalFolder,
    catalog: Option<&CatalogHandle>,
    job: &str,
    to: &Path,
) -> Result<PathBuf, ArchiveError> {
    let path = to.join(file_name(job)?);
    let claimed = journal::claim(store, job, &Plans::default())?;
    let moved = write_and_note(store, catalog, &claimed, &path).and_then(|()| {
        let folder = local.job(job);
        // The folder first: a journal without a folder can be removed again, a folder alone would stay.
        folder.remove().map_err(ArchiveError::io(folder.path()))?;
        failpoint::reach("archive-folder-removed", 1);
        Ok(journal::remove(store, &claimed)?)
    });
    if moved.is_err() {
        // If this fails too, the claim ends with the process.
        let _ = store.unclaim(&claimed.claim);
    }
    moved.map(|()| path)
}

/// Writes the file and records that in the catalog. Removes nothing.
fn write_and_note(
    store: &dyn Store,
    catalog: Option<&CatalogHandle>,
    claimed: &ClaimedJob,
    path: &Path,
) -> Result<(), ArchiveError> {
    if !claimed.job.stage.has_ended() {
        return Err(ArchiveError::NotEnded { job: claimed.job.id().to_owned() });
    }
    refuse_if_awaited(store, &claimed.job)?;
    let exists = is_archived(store, claimed, path)?;
    let catalog = catalog.filter(|_| claimed.job.workflow().flow.is_some());
    if let Some(catalog) = catalog {
        record(catalog, claimed.job.id(), |flow| CatalogEvent::FlowArchiving { flow })?;
    }
    if !exists && let Err(error) = write_and_read(store, claimed, path) {
        if let Some(catalog) = catalog {
            undo_archiving(catalog, claimed);
        }
        return Err(error);
    }
    failpoint::reach("archive-kept", 1);
    if let Some(catalog) = catalog {
        let file = path.display().to_string();
        record(catalog, claimed.job.id(), move |flow| CatalogEvent::FlowArchived {
            flow,
            file: file.clone(),
        })?;
    }
    failpoint::reach("archive-noted", 1);
    Ok(())
}

/// Refuses a sub-flow whose parent has not ended, since the parent reads the result from the store.
fn refuse_if_awaited(store: &dyn Store, job: &Job) -> Result<(), ArchiveError> {
    let run = job.submitted().flow.as_ref();
    let Some(parent) = run.and_then(|run| run.parent.as_ref()) else {
        return Ok(());
    };
    match journal::load(store, &parent.flow, &Plans::default()) {
        Ok(waiting) if !waiting.stage.has_ended() => {
            Err(ArchiveError::Awaited { job: job.id().to_owned(), parent: parent.flow.clone() })
        }
        Ok(_) | Err(JournalError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether the file is an archive of this job already. An archive of an earlier state of the job counts as
/// missing, so that it is replaced; any other file is an error.
fn is_archived(store: &dyn Store, claimed: &ClaimedJob, path: &Path) -> Result<bool, ArchiveError> {
    if path.symlink_metadata().is_err() {
        return Ok(false);
    }
    let in_the_way = || ArchiveError::InTheWay { path: path.to_owned(), job: claimed.job.id().to_owned() };
    let Ok(found) = read(path) else {
        return Err(in_the_way());
    };
    let mut records = store.read(&claimed.claim.aggregate, Version::EMPTY).map_err(JournalError::from)?;
    for bytes in &found.records {
        let ours = records.next().transpose().map_err(JournalError::from)?;
        if ours.is_none_or(|(_, ours)| ours != *bytes) {
            return Err(in_the_way());
        }
    }
    Ok(found.header.records == claimed.version.0)
}

/// Writes the file, and reads it back before the job is removed.
fn write_and_read(store: &dyn Store, claimed: &ClaimedJob, path: &Path) -> Result<(), ArchiveError> {
    let header = ArchiveHeader { job: claimed.job.id().to_owned(), records: claimed.version.0 };
    write(store, &header, path)?;
    read(path).map(|_| ())
}

/// Records an event of a flow in the catalog, if the catalog has the flow.
fn record(
    catalog: &CatalogHandle,
    flow: &str,
    event: impl Fn(String) -> CatalogEvent + Send + 'static,
) -> Result<(), JournalError> {
    let flow = flow.to_owned();
    let recorded = catalog.change(move |catalog: &Catalog| {
        let known = catalog.flows.contains_key(flow.as_str());
        Ok::<_, Infallible>(known.then(|| event(flow.clone())).into_iter().collect())
    });
    recorded.map(|_| ())
}

/// Records in the catalog that a flow that could not be archived is deactivated, as before.
fn undo_archiving(catalog: &CatalogHandle, claimed: &ClaimedJob) {
    if let Some(event) = deactivated(&claimed.job) {
        // The error that prevented archiving is the one to report.
        let _ = record(catalog, claimed.job.id(), move |_| event.clone());
    }
}

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
    let written = write_records(store, &claim, records);
    let released = store.unclaim(&claim).map_err(JournalError::from);
    written?;
    released?;
    if let Some(catalog) = catalog {
        enter(catalog, &archive.job)?;
    }
    Ok(archive.header.job)
}

/// Writes all records, or checks that they are there.
fn write_records(store: &dyn Store, claim: &Claim, records: Vec<Vec<u8>>) -> Result<(), ArchiveError> {
    if claim.version == Version::EMPTY {
        let append = Append::new(claim.aggregate.clone(), claim.version, claim.epoch, records);
        return Ok(store.append(vec![append]).map(drop).map_err(JournalError::from)?);
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
