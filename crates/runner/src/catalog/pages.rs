//! The journal of the catalog, record by record.

use undaunted_engine::catalog::CatalogRecord;
use undaunted_store::{AggregateId, Append, AppendError, Epoch, Store, Version};

use crate::journal::JournalError;

pub const FAMILY: &str = "catalog";
pub const ID: &str = "catalog";

pub(super) fn aggregate() -> Result<AggregateId, JournalError> {
    // Neither word is empty, so this does not happen; an error costs less than a panic.
    AggregateId::new(FAMILY, ID).map_err(|error| JournalError::CatalogWriter { why: error.to_string() })
}

/// Calls `each` with the records after a version, oldest first, up to the first that cannot be read.
pub(super) fn follow(
    store: &dyn Store,
    after: Version,
    mut each: impl FnMut(Version, CatalogRecord),
) -> Result<(), JournalError> {
    for read in store.read(&aggregate()?, after)? {
        let (version, bytes) = read?;
        let record =
            CatalogRecord::decode(&bytes).map_err(|why| JournalError::CatalogRecord { version, why })?;
        each(version, record);
    }
    Ok(())
}

pub fn records(store: &dyn Store, after: Version) -> Result<Vec<(Version, CatalogRecord)>, JournalError> {
    let mut found = Vec::new();
    follow(store, after, |version, record| {
        found.push((version, record));
    })?;
    Ok(found)
}

/// The catalog is never claimed, so it has only one epoch.
pub(super) fn append(after: Version, records: &[CatalogRecord]) -> Result<Append, JournalError> {
    let records = records.iter().map(CatalogRecord::encode).collect();
    Ok(Append::new(aggregate()?, after, Epoch::UNCLAIMED, records))
}

/// Whether another process has changed the catalog first.
pub(super) fn was_overtaken(error: &AppendError) -> bool {
    matches!(error, AppendError::Conflict { aggregate, .. } if aggregate.family() == FAMILY)
}
