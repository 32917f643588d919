//! The breakers of a store.
//!
//! Nobody owns a breaker: whoever changes one says which version of it they know, and whoever was
//! slower reads it again. The last record of its journal is what it is.

use undaunted_engine::breaker::{BreakerRecord, BreakerState, Change};
use undaunted_engine::event::{Event, Text};
use undaunted_engine::plan::Plan;
use undaunted_engine::update::settings_of_breakers;
use undaunted_policy::{BreakerSettings, Timestamp};
use undaunted_store::{AggregateId, Append, AppendError, Epoch, Store, Version};

use crate::journal::JournalError;

/// The family of the journals of breakers.
pub const FAMILY: &str = "breaker";

/// The journal of a breaker.
///
/// # Errors
///
/// When the name cannot be one of a breaker.
pub fn aggregate(breaker: &str) -> Result<AggregateId, JournalError> {
    AggregateId::new(FAMILY, breaker).map_err(|_| JournalError::NoBreaker {
        breaker: breaker.to_owned(),
    })
}

/// The records of a breaker, oldest first, after a version.
///
/// # Errors
///
/// When they cannot be read.
pub fn records(
    store: &dyn Store,
    breaker: &str,
    after: Version,
) -> Result<Vec<(Version, BreakerRecord)>, JournalError> {
    let read = store.read(&aggregate(breaker)?, after)?;
    read.map(|read| {
        let (version, bytes) = read?;
        let record = BreakerRecord::decode(&bytes).map_err(|why| JournalError::BreakerRecord {
            breaker: breaker.to_owned(),
            version,
            why,
        })?;
        Ok((version, record))
    })
    .collect()
}

/// What a breaker is, and how many records it has; none if nobody ever named it.
///
/// # Errors
///
/// When it cannot be read.
pub fn read(
    store: &dyn Store,
    breaker: &str,
) -> Result<Option<(Version, BreakerRecord)>, JournalError> {
    let head = store.head(&aggregate(breaker)?)?;
    let last = head.map_or(Version::default(), |head| head.version);
    let before = Version(last.0.saturating_sub(1));
    Ok(records(store, breaker, before)?.pop())
}

/// The names of all breakers.
///
/// # Errors
///
/// When they cannot be read.
pub fn names(store: &dyn Store) -> Result<Vec<String>, JournalError> {
    let listed = store.list(FAMILY, "")?;
    let names = listed.iter().map(|listed| listed.aggregate.id().to_owned());
    Ok(names.collect())
}

/// Every breaker by its name, and its last record.
///
/// # Errors
///
/// When they cannot be read.
pub fn list(store: &dyn Store) -> Result<Vec<(String, BreakerRecord)>, JournalError> {
    let mut found = Vec::new();
    for name in names(store)? {
        if let Some((_, record)) = read(store, &name)? {
            found.push((name, record));
        }
    }
    Ok(found)
}

/// Changes a breaker that is there, on behalf of a job or by hand, however many others do at the same
/// time. What it has become.
///
/// # Errors
///
/// When there is no such breaker, or it cannot be written.
pub fn change(
    store: &dyn Store,
    breaker: &str,
    job: Option<&str>,
    now: Timestamp,
    how: impl Fn(&mut BreakerState) -> Option<Change>,
) -> Result<BreakerState, JournalError> {
    loop {
        let Some((version, mut last)) = read(store, breaker)? else {
            return Err(JournalError::NoBreaker {
                breaker: breaker.to_owned(),
            });
        };
        let Some(change) = how(&mut last.state) else {
            return Ok(last.state);
        };
        let record = BreakerRecord {
            at: now,
            change,
            job: job.map(str::to_owned),
            state: last.state,
        };
        match store.append(vec![append(breaker, version, &[&record])?]) {
            Err(AppendError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(record.state),
        }
    }
}

/// Records for a breaker. Nobody claims one, so there is only one epoch.
pub(crate) fn append(
    breaker: &str,
    after: Version,
    records: &[&BreakerRecord],
) -> Result<Append, JournalError> {
    let records = records.iter().map(|record| record.encode()).collect();
    let aggregate = aggregate(breaker)?;
    Ok(Append::new(aggregate, after, Epoch::default(), records))
}

/// Whether an append was refused because somebody else was faster to change a breaker.
pub(crate) fn was_overtaken(error: &AppendError) -> bool {
    matches!(error, AppendError::Conflict { aggregate, .. } if aggregate.family() == FAMILY)
}

/// What has to be written so that the breakers of a workflow have the settings it gives them: the
/// latest submission wins. With it the events that tell of it, where other settings held before.
pub(crate) fn configure(
    store: &dyn Store,
    job: &str,
    plan: &Plan,
    now: Timestamp,
) -> Result<(Vec<Append>, Vec<Event>), JournalError> {
    let (mut appends, mut events) = (Vec::new(), Vec::new());
    for (name, settings) in plan.breakers() {
        let known = read(store, &name)?;
        let version = known.as_ref().map_or(Version::default(), |(at, _)| *at);
        let old = known.map(|(_, record)| record.state);
        let Some(state) = with_settings(old.clone(), settings) else {
            continue;
        };
        if let Some(old) = old {
            events.push(Event::BreakerConfigured {
                breaker: Text::Itself(name.clone()),
                changes: settings_of_breakers(&name, &old.settings, &settings),
            });
        }
        let record = BreakerRecord {
            at: now,
            change: Change::Configured,
            job: Some(job.to_owned()),
            state,
        };
        appends.push(append(&name, version, &[&record])?);
    }
    Ok((appends, events))
}

/// A breaker with these settings, unless it has them already. What it is goes on: one that is open
/// stays open as long as was said when it opened.
fn with_settings(old: Option<BreakerState>, settings: BreakerSettings) -> Option<BreakerState> {
    match old {
        Some(old) if old.settings == settings => None,
        Some(old) => Some(BreakerState { settings, ..old }),
        None => Some(BreakerState::with(settings)),
    }
}
