//! Bytes that may be a record of a job, of a breaker or of the catalog.
//!
//! A record that can be read is written so that the same is read again: a copied, archived or restored job is
//! the same job. The breaker or catalog folded from a single record can be asked and shown.

use std::collections::BTreeSet;
use std::fmt::Debug;

use undaunted_engine::breaker::{AdmissionControl, BreakerFact, BreakerJournal, BreakerRecord};
use undaunted_engine::catalog::{Catalog, CatalogRecord};
use undaunted_engine::event::{FORMAT, Record, RecordError};
use undaunted_policy::Timestamp;
use undaunted_server::catalog_event;
use undaunted_store::Version;

use super::law::uphold;
use super::notation;

/// Decodes the bytes as every kind of record and returns their words.
pub fn journal_record(data: &[u8]) -> BTreeSet<&'static str> {
    let bytes = notation::record(data);
    let mut outcomes = BTreeSet::new();
    if let Some(record) = reread(&bytes, Record::decode, Record::encode) {
        outcomes.insert(record.event.word());
    }
    let breaker = reread_as(BreakerRecord::FORMAT, &bytes, BreakerRecord::decode, BreakerRecord::encode);
    if let Some(record) = breaker {
        ask(&record);
        outcomes.insert("breaker");
        let journal = BreakerJournal::fold(&[(1, record)]);
        let changes = journal.changes.iter();
        outcomes.extend(changes.map(|(_, change)| change.change.word()));
    }
    if let Some(record) = reread(&bytes, CatalogRecord::decode, CatalogRecord::encode) {
        let mut catalog = Catalog::default();
        catalog.apply(&record);
        let once = catalog.clone();
        let _ = catalog_event(Version(1), &record);
        catalog.apply(&record);
        uphold(
            "applying a catalog record twice changes nothing",
            format!("{once:?}") == format!("{catalog:?}"),
            &record,
        );
        outcomes.insert(record.event.word());
    }
    if outcomes.is_empty() {
        outcomes.insert("refused");
    }
    outcomes
}

/// Decodes a record and checks that it survives encoding.
pub(super) fn reread<R: Debug + PartialEq>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<R, RecordError>,
    encode: impl Fn(&R) -> Vec<u8>,
) -> Option<R> {
    reread_as(FORMAT, bytes, decode, encode)
}

/// The same for a journal with a format number of its own, of which `known` is the newest.
fn reread_as<R: Debug + PartialEq>(
    known: u8,
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<R, RecordError>,
    encode: impl Fn(&R) -> Vec<u8>,
) -> Option<R> {
    let newer = bytes.first().is_some_and(|format| *format > known);
    match decode(bytes) {
        Err(error) => {
            let told = matches!(error, RecordError::Newer { .. }) == newer;
            let told = told && !error.to_string().is_empty();
            uphold("a record of a newer release is called so", told, &error);
            None
        }
        Ok(record) => {
            let written = encode(&record);
            let again = decode(&written);
            let same = again.as_ref() == Ok(&record);
            uphold("a written record is read again", same, &(&record, &again));
            let stable = again.is_ok_and(|again| encode(&again) == written);
            uphold("a record is always written the same", stable, &record);
            Some(record)
        }
    }
}

pub(super) fn ask(record: &BreakerRecord) {
    let name = std::sync::Arc::from("b");
    for (first, now) in [(1, 0), (7, 1), (u64::MAX, u64::MAX)] {
        let at = Timestamp::from_nanos(now);
        let records = [(first, record.clone())];
        let mut journal = BreakerJournal::fold(&records);
        let mut admission = AdmissionControl::default();
        admission.tick(at);
        admission.load(&name, journal.clone());
        let _ = admission.admit(&name, &std::sync::Arc::from("j"), Some(1));
        let by_hand = [
            BreakerFact::Imported { since: at, until: Timestamp::MAX },
            journal.folded(),
            BreakerFact::Tripped { at },
            BreakerFact::Reset { at },
        ];
        let by_hand = BreakerRecord::by_hand(by_hand.to_vec());
        journal.add(first.saturating_add(1), &by_hand);
        uphold("a breaker that is closed is closed", !journal.state.is_open_or_half_open(), &journal);
    }
}
