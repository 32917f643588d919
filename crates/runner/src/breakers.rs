//! The breakers of a store: reading, configuring and changing them.
//!
//! A breaker has no owner. Every process appends facts to its journal, without a version; its state is
//! the fold of these facts.

use undaunted_engine::breaker::{BreakerFact, BreakerJournal, BreakerRecord, BreakerState};
use undaunted_engine::event::{BreakerEvent, Event, StoredText};
use undaunted_engine::plan::Plan;
use undaunted_engine::state_file::ImportedBreaker;
use undaunted_engine::update::settings_of_breakers;
use undaunted_policy::Timestamp;
use undaunted_store::{AggregateId, Append, NumberedRecord, Store, Version};

use crate::JournalError;

pub const FAMILY: &str = "breaker";
/// The family of claims under which breakers are probed: `probe/NAME`.
pub const PROBES: &str = "probe";

pub fn aggregate(breaker: &str) -> Result<AggregateId, JournalError> {
    of_family(FAMILY, breaker)
}

pub fn probe_claim(breaker: &str) -> Result<AggregateId, JournalError> {
    of_family(PROBES, breaker)
}

fn of_family(family: &str, breaker: &str) -> Result<AggregateId, JournalError> {
    AggregateId::new(family, breaker).map_err(|_| JournalError::NoBreaker { breaker: breaker.to_owned() })
}

pub fn records(
    store: &dyn Store,
    breaker: &str,
    after: Version,
) -> Result<Vec<(u64, BreakerRecord)>, JournalError> {
    decoded(breaker, store.read(&aggregate(breaker)?, after)?.collect::<Result<_, _>>()?)
}

pub(crate) fn decoded(
    breaker: &str,
    records: Vec<NumberedRecord>,
) -> Result<Vec<(u64, BreakerRecord)>, JournalError> {
    let decoded = records.into_iter().map(|(version, bytes)| {
        let record = BreakerRecord::decode(&bytes).map_err(|why| JournalError::BreakerRecord {
            breaker: breaker.to_owned(),
            version,
            why,
        })?;
        Ok((version.0, record))
    });
    decoded.collect()
}

/// None if no job ever used the breaker.
pub fn read(store: &dyn Store, breaker: &str) -> Result<Option<BreakerJournal>, JournalError> {
    let records = records(store, breaker, Version::EMPTY)?;
    Ok((!records.is_empty()).then(|| BreakerJournal::fold(&records)))
}

pub fn names(store: &dyn Store) -> Result<Vec<String>, JournalError> {
    let listed = store.list(FAMILY, "")?;
    Ok(listed.iter().map(|listed| listed.aggregate.id().to_owned()).collect())
}

pub fn list(store: &dyn Store) -> Result<Vec<(String, BreakerJournal)>, JournalError> {
    let mut found = Vec::new();
    for name in names(store)? {
        if let Some(journal) = read(store, &name)? {
            found.push((name, journal));
        }
    }
    Ok(found)
}

/// Records the fact that `decide` returns, if any, and returns the resulting state of the breaker.
pub fn change(
    store: &dyn Store,
    breaker: &str,
    decide: impl FnOnce(&BreakerState) -> Option<BreakerFact>,
) -> Result<BreakerState, JournalError> {
    let missing = || JournalError::NoBreaker { breaker: breaker.to_owned() };
    let found = read(store, breaker)?.ok_or_else(missing)?;
    let Some(fact) = decide(&found.state) else {
        return Ok(found.state);
    };
    let record = BreakerRecord::by_hand(vec![fact]);
    store.append(vec![append(breaker, &record)?])?;
    Ok(read(store, breaker)?.ok_or_else(missing)?.state)
}

/// Restores the state of a breaker that was imported with a job, unless the breaker is in a more cautious one.
pub fn restore(store: &dyn Store, imported: &ImportedBreaker, at: Timestamp) -> Result<(), JournalError> {
    let (name, settings) = (imported.name.as_str(), imported.settings);
    let found = read(store, name)?;
    let mut facts = Vec::new();
    if found.is_none() {
        facts.push(BreakerFact::Configured { at, settings });
    }
    let known = found.map_or_else(|| BreakerState::with_settings(settings), |journal| journal.state);
    facts.extend(imported.fact(&known, at));
    if !facts.is_empty() {
        store.append(vec![append(name, &BreakerRecord::by_hand(facts))?])?;
    }
    Ok(())
}

/// An unconditional append: the store checks neither version nor epoch.
pub(crate) fn append(breaker: &str, record: &BreakerRecord) -> Result<Append, JournalError> {
    Ok(Append::facts(aggregate(breaker)?, vec![record.encode()]))
}

/// The appends that configure the breakers of a workflow (the latest submission wins), and an event for each
/// breaker whose settings change.
pub(crate) fn configure(
    store: &dyn Store,
    job: &str,
    plan: &Plan,
    at: Timestamp,
) -> Result<(Vec<Append>, Vec<Event>), JournalError> {
    let (mut appends, mut events) = (Vec::new(), Vec::new());
    for (name, settings) in plan.breakers() {
        let old = read(store, &name)?.map(|journal| journal.state.settings);
        if old == Some(settings) {
            continue;
        }
        if let Some(old) = old {
            events.push(Event::Breaker(BreakerEvent::Configured {
                breaker: StoredText::Itself(name.clone()),
                changes: settings_of_breakers(&name, &old, &settings),
            }));
        }
        let record = BreakerRecord {
            job: Some(job.to_owned()),
            ..BreakerRecord::by_hand(vec![BreakerFact::Configured { at, settings }])
        };
        appends.push(append(&name, &record)?);
    }
    Ok((appends, events))
}
