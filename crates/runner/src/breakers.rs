//! The breakers of a store: read, configured, changed by hand.
//!
//! A breaker has no owner. Its journal takes facts from every process, without a version, and the state
//! of the breaker is their fold.

use undaunted_engine::breaker::{BreakerJournal, BreakerRecord, BreakerState, Fact};
use undaunted_engine::event::{BreakerEvent, Event, Text};
use undaunted_engine::plan::Plan;
use undaunted_engine::update::settings_of_breakers;
use undaunted_policy::{BreakerSettings, Timestamp};
use undaunted_store::{AggregateId, Append, Numbered, Store, Version};

use crate::journal::JournalError;

/// The family of the journals of breakers.
pub const FAMILY: &str = "breaker";

/// The family of the claims under which breakers are probed: `probe/NAME`.
pub const PROBES: &str = "probe";

pub fn aggregate(breaker: &str) -> Result<AggregateId, JournalError> {
    of_family(FAMILY, breaker)
}

/// What a process claims to probe for a breaker.
pub fn probe_claim(breaker: &str) -> Result<AggregateId, JournalError> {
    of_family(PROBES, breaker)
}

fn of_family(family: &str, breaker: &str) -> Result<AggregateId, JournalError> {
    AggregateId::new(family, breaker).map_err(|_| JournalError::NoBreaker {
        breaker: breaker.to_owned(),
    })
}

/// The records of a breaker, oldest first, after a version.
pub fn records(
    store: &dyn Store,
    breaker: &str,
    after: Version,
) -> Result<Vec<(u64, BreakerRecord)>, JournalError> {
    let read = store.read(&aggregate(breaker)?, after)?;
    let read: Vec<Numbered> = read.collect::<Result<_, _>>()?;
    decoded(breaker, read)
}

/// The same, from their bytes.
pub(crate) fn decoded(
    breaker: &str,
    records: Vec<Numbered>,
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

/// What the journal of a breaker comes to; nothing if no job ever used the breaker.
pub fn read(store: &dyn Store, breaker: &str) -> Result<Option<BreakerJournal>, JournalError> {
    let records = records(store, breaker, Version::EMPTY)?;
    Ok((!records.is_empty()).then(|| BreakerJournal::fold(&records)))
}

/// The names of all breakers.
pub fn names(store: &dyn Store) -> Result<Vec<String>, JournalError> {
    let listed = store.list(FAMILY, "")?;
    let names = listed.iter().map(|listed| listed.aggregate.id().to_owned());
    Ok(names.collect())
}

/// Every breaker by its name, and what its journal comes to.
pub fn list(store: &dyn Store) -> Result<Vec<(String, BreakerJournal)>, JournalError> {
    let mut found = Vec::new();
    for name in names(store)? {
        if let Some(journal) = read(store, &name)? {
            found.push((name, journal));
        }
    }
    Ok(found)
}

/// Changes a breaker by hand; none if the change is not called for. The state it has then.
pub fn change(
    store: &dyn Store,
    breaker: &str,
    how: impl FnOnce(&BreakerState) -> Option<Fact>,
) -> Result<BreakerState, JournalError> {
    let missing = || JournalError::NoBreaker {
        breaker: breaker.to_owned(),
    };
    let found = read(store, breaker)?.ok_or_else(missing)?;
    let Some(fact) = how(&found.state) else {
        return Ok(found.state);
    };
    let record = BreakerRecord::by_hand(vec![fact]);
    store.append(vec![append(breaker, &record)?])?;
    Ok(read(store, breaker)?.ok_or_else(missing)?.state)
}

/// A record for a breaker: neither a version nor an epoch stands in its way.
pub(crate) fn append(breaker: &str, record: &BreakerRecord) -> Result<Append, JournalError> {
    Ok(Append::facts(aggregate(breaker)?, vec![record.encode()]))
}

/// What has to be written so that the breakers of a workflow have the settings it gives them: the
/// latest submission wins. With it the events that tell of it, where other settings held before.
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
            events.push(configured(&name, &old, &settings));
        }
        let record = BreakerRecord {
            job: Some(job.to_owned()),
            ..BreakerRecord::by_hand(vec![Fact::Configured { at, settings }])
        };
        appends.push(append(&name, &record)?);
    }
    Ok((appends, events))
}

fn configured(name: &str, old: &BreakerSettings, new: &BreakerSettings) -> Event {
    Event::Breaker(BreakerEvent::Configured {
        breaker: Text::Itself(name.to_owned()),
        changes: settings_of_breakers(name, old, new),
    })
}
