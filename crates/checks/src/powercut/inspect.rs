//! Whether a store holds what it must after a cut, and works.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use undaunted_store::{AggregateId, Head, SqliteStore, Store as _, Version};

use super::model::{AGGREGATES, AppendPart, FAMILIES, ModelAggregate, StoreCall, StoreModel, aggregate};
use super::session::{StoreSession, error_chain, snapshot};
use super::trace::{Recorder, TraceEvent};
use crate::random::SeededRandom;

#[derive(Clone, Debug)]
pub(super) struct ExpectedState<'a> {
    pub(super) acknowledged: &'a StoreModel,
    /// Calls that were not acknowledged yet, in order, for each handle.
    pub(super) under_way: Vec<Vec<&'a StoreCall>>,
}

impl ExpectedState<'_> {
    /// The model state that equals the found one, if there is one: of the unacknowledged calls of a handle, a
    /// prefix has taken effect.
    fn matching(&self, observed: &StoreModel) -> Option<StoreModel> {
        reachable(self.acknowledged.clone(), &self.under_way, observed)
    }
}

fn reachable(
    mut model: StoreModel,
    handles: &[Vec<&StoreCall>],
    observed: &StoreModel,
) -> Option<StoreModel> {
    let Some((calls, others)) = handles.split_first() else {
        return (model.aggregates == observed.aggregates).then_some(model);
    };
    if let Some(reached) = reachable(model.clone(), others, observed) {
        return Some(reached);
    }
    calls.iter().find_map(|call| {
        model.apply(call);
        reachable(model.clone(), others, observed)
    })
}

/// Opens a store, compares it with what is expected, and works on it. Returns what it held when it was
/// opened.
pub(super) fn inspect(
    folder: &Path,
    expected: &ExpectedState<'_>,
    recorder: Option<Arc<Recorder>>,
    random: &mut SeededRandom,
) -> Result<(StoreModel, StoreSession), String> {
    // Above all numbers that a round writes.
    let mut session = StoreSession::begin(folder, recorder, StoreModel::default(), 1 << 32);
    session.open(0)?;
    let observed = observe(session.store(0)?)?;
    let Some(model) = expected.matching(&observed) else {
        let difference = expected.acknowledged.difference(&observed);
        return Err(difference.unwrap_or_else(|| "it holds half of what was asked".to_owned()));
    };
    session.note(TraceEvent::Found);
    session.model = model.clone();
    snapshots(session.store(0)?, &model)?;
    integrity_check(&session.store(0)?.database())?;
    work_on(&mut session, random)?;
    // Reading everything again is slow, so it is done in some rounds only.
    match random.below(8) {
        0 => compare(&session)?,
        1 => {
            session.close(0);
            session.open(0)?;
            compare(&session)?;
        }
        _ => {}
    }
    Ok((model, session))
}

fn compare(session: &StoreSession) -> Result<(), String> {
    let observed = observe(session.store(0)?)?;
    let difference = session.model.difference(&observed);
    difference.map_or(Ok(()), |what| Err(format!("after some more work, {what}")))
}

fn observe(store: &SqliteStore) -> Result<StoreModel, String> {
    let mut model = StoreModel::default();
    for index in 0..AGGREGATES {
        let id = aggregate(index)?;
        let head = store.head(&id).map_err(|error| error_chain(&error))?;
        if let Some(head) = head {
            model.aggregates.insert(index, read(store, &id, head)?);
        }
    }
    for (parity, family) in FAMILIES.iter().enumerate() {
        let of_family = |index: &&usize| *index & 1 == parity;
        let listed = store.list(family, "").map_err(|error| error_chain(&error))?;
        let expected = model.aggregates.iter();
        let expected = expected.filter(|(index, observed)| of_family(index) && !observed.records.is_empty());
        if listed.len() != expected.count() {
            return Err(format!("{family}: {} are listed", listed.len()));
        }
    }
    Ok(model)
}

fn read(store: &SqliteStore, id: &AggregateId, head: Head) -> Result<ModelAggregate, String> {
    let mut aggregate = ModelAggregate { epoch: head.epoch.0, ..ModelAggregate::default() };
    for record in store.read(id, Version::EMPTY).map_err(|error| error_chain(&error))? {
        let (version, bytes) = record.map_err(|error| error_chain(&error))?;
        aggregate.records.push(Arc::new(bytes));
        if version != Version::EMPTY.after(aggregate.records.len()) {
            return Err(format!("{id}: record {version} is out of order"));
        }
    }
    if Version::EMPTY.after(aggregate.records.len()) != head.version {
        return Err(format!("{id}: not all records up to {} can be read", head.version));
    }
    for request in store.requests(id).map_err(|error| error_chain(&error))? {
        aggregate.requests.insert(request.id.0, Arc::new(request.bytes));
    }
    Ok(aggregate)
}

/// A snapshot may be missing; if it is there, it is right.
fn snapshots(store: &SqliteStore, model: &StoreModel) -> Result<(), String> {
    for (index, expected) in &model.aggregates {
        let id = aggregate(*index)?;
        let observed = store.latest_snapshot(&id).map_err(|error| error_chain(&error))?;
        let Some(observed) = observed.latest else { continue };
        let at = usize::try_from(observed.at.0).unwrap_or(usize::MAX);
        if at > expected.records.len() || observed.bytes != snapshot(*index, at, &expected.records) {
            return Err(format!("the snapshot of {id} at {at} is not what was saved"));
        }
    }
    Ok(())
}

/// SQLite's own check of the database, and rows without an aggregate.
fn integrity_check(database: &Path) -> Result<(), String> {
    let asked = || -> rusqlite::Result<(String, i64)> {
        let connection = Connection::open(database)?;
        let error_chain = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        let strays = connection.query_row(
            "SELECT (SELECT count(*) FROM batches WHERE aggregate NOT IN (SELECT number FROM aggregates))
                  + (SELECT count(*) FROM requests WHERE aggregate NOT IN (SELECT number FROM aggregates))",
            [],
            |row| row.get(0),
        )?;
        Ok((error_chain, strays))
    };
    match asked() {
        Ok((words, 0)) if words == "ok" => Ok(()),
        Ok((words, 0)) => Err(format!("the database is not sound: {words}")),
        Ok((_, strays)) => Err(format!("{strays} rows belong to no aggregate")),
        Err(error) => Err(format!("the database cannot be looked at: {}", error_chain(&error))),
    }
}

/// A claim, an append to two aggregates, and a request that is taken, in the order of an owner.
fn work_on(session: &mut StoreSession, random: &mut SeededRandom) -> Result<(), String> {
    let index = random.below(AGGREGATES);
    let other = index.saturating_add(1) % AGGREGATES;
    session.claim(0, index)?;
    let parts = |session: &mut StoreSession, taken: Vec<u64>, length: usize| {
        vec![
            AppendPart { index, records: vec![session.record(length), session.record(9)], taken },
            AppendPart { index: other, records: vec![session.record(30)], taken: vec![] },
        ]
    };
    let length = random.below(6000);
    let first = parts(session, vec![], length);
    session.append(0, first)?;
    session.request(0, index)?;
    let taken = session.model.of(index).requests.into_keys().collect();
    let second = parts(session, taken, 40);
    session.append(0, second)
}

#[cfg(test)]
mod tests;
