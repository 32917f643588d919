//! The journal of the catalog, record by record.

use undaunted_engine::catalog::CatalogRecord;
use undaunted_store::{AggregateId, Append, AppendError, Epoch, Store, Version};

use crate::journal::JournalError;

/// The family of the catalog's journal.
pub const FAMILY: &str = "catalog";

/// The one journal of that family.
pub const ID: &str = "catalog";

/// The journal of the catalog.
pub(super) fn aggregate() -> Result<AggregateId, JournalError> {
    // The words are not empty, so this does not happen; an error costs less than a panic.
    AggregateId::new(FAMILY, ID).map_err(|error| JournalError::CatalogWriter {
        why: error.to_string(),
    })
}

/// Shows the records of the catalog after a version, oldest first.
///
/// # Errors
///
/// When they cannot be read; everything before the record it is about has been shown.
pub(super) fn follow(
    store: &dyn Store,
    after: Version,
    mut each: impl FnMut(Version, CatalogRecord),
) -> Result<(), JournalError> {
    for read in store.read(&aggregate()?, after)? {
        let (version, bytes) = read?;
        let record = CatalogRecord::decode(&bytes)
            .map_err(|why| JournalError::CatalogRecord { version, why })?;
        each(version, record);
    }
    Ok(())
}

/// The records of the catalog after a version, oldest first.
pub fn records(
    store: &dyn Store,
    after: Version,
) -> Result<Vec<(Version, CatalogRecord)>, JournalError> {
    let mut found = Vec::new();
    follow(store, after, |version, record| {
        found.push((version, record));
    })?;
    Ok(found)
}

/// Records for the catalog. Nobody claims it, so there is only one epoch.
pub(super) fn append(after: Version, records: &[CatalogRecord]) -> Result<Append, JournalError> {
    let records = records.iter().map(CatalogRecord::encode).collect();
    Ok(Append::new(aggregate()?, after, Epoch::UNCLAIMED, records))
}

/// Whether an append was refused because somebody else was faster to change the catalog.
pub(super) fn was_overtaken(error: &AppendError) -> bool {
    matches!(error, AppendError::Conflict { aggregate, .. } if aggregate.family() == FAMILY)
}
