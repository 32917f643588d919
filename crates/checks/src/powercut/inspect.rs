//! Whether a store that lost its power holds what it should, and works on.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use undaunted_store::{AggregateId, Head, SqliteStore, Store as _, Version};

use super::recorder::{Event, Recorder};
use super::session::{Session, said, snapshot};
use super::world::{Aggregate, Deed, FAMILIES, MOST, Part, World, aggregate};
use crate::die::Die;

/// What was known when the power was cut.
#[derive(Clone, Debug)]
pub(super) struct Known<'a> {
    /// What was acknowledged.
    pub(super) acknowledged: &'a World,
    /// What was asked and not yet acknowledged, in order, for each handle.
    pub(super) under_way: Vec<Vec<&'a Deed>>,
}

impl Known<'_> {
    /// The world that was found, if it is one that may be: of what was under way through a handle, the
    /// first so many are there.
    fn matching(&self, found: &World) -> Option<World> {
        reach(self.acknowledged.clone(), &self.under_way, found)
    }
}

fn reach(mut world: World, handles: &[Vec<&Deed>], found: &World) -> Option<World> {
    let Some((deeds, others)) = handles.split_first() else {
        return (world.aggregates == found.aggregates).then_some(world);
    };
    if let Some(reached) = reach(world.clone(), others, found) {
        return Some(reached);
    }
    deeds.iter().find_map(|deed| {
        world.apply(deed);
        reach(world.clone(), others, found)
    })
}

/// Opens a store, compares, and works on. Gives what it held when it was opened, and the work.
pub(super) fn inspect(
    folder: &Path,
    known: &Known<'_>,
    recorder: Option<Arc<Recorder>>,
    die: &mut Die,
) -> Result<(World, Session), String> {
    // Numbered past all that a round writes.
    let mut session = Session::begin(folder, recorder, World::default(), 1 << 32);
    session.open(0)?;
    let found = observe(session.store(0)?)?;
    let Some(world) = known.matching(&found) else {
        let difference = known.acknowledged.difference(&found);
        return Err(difference.unwrap_or_else(|| "it holds half of what was asked".to_owned()));
    };
    session.note(Event::Found);
    session.world = world.clone();
    snapshots(session.store(0)?, &world)?;
    sound(&session.store(0)?.database())?;
    work_on(&mut session, die)?;
    // To read everything once more takes its time; that the work was acknowledged is known already.
    match die.below(8) {
        0 => compare(&session)?,
        1 => {
            session.close(0);
            session.open(0)?;
            compare(&session)?;
        }
        _ => {}
    }
    Ok((world, session))
}

fn compare(session: &Session) -> Result<(), String> {
    let found = observe(session.store(0)?)?;
    let difference = session.world.difference(&found);
    difference.map_or(Ok(()), |what| Err(format!("after some more work, {what}")))
}

/// Everything that is in a store.
fn observe(store: &SqliteStore) -> Result<World, String> {
    let mut world = World::default();
    for who in 0..MOST {
        let id = aggregate(who)?;
        let head = store.head(&id).map_err(|error| said(&error))?;
        if let Some(head) = head {
            world.aggregates.insert(who, read(store, &id, head)?);
        }
    }
    for (parity, family) in FAMILIES.iter().enumerate() {
        let of_family = |who: &&usize| *who & 1 == parity;
        let listed = store.list(family, "").map_err(|error| said(&error))?;
        let known = world.aggregates.iter();
        let known = known.filter(|(who, found)| of_family(who) && !found.records.is_empty());
        if listed.len() != known.count() {
            return Err(format!("{family}: {} are listed", listed.len()));
        }
    }
    Ok(world)
}

fn read(store: &SqliteStore, id: &AggregateId, head: Head) -> Result<Aggregate, String> {
    let mut aggregate = Aggregate { epoch: head.epoch.0, ..Aggregate::default() };
    for record in store.read(id, Version::EMPTY).map_err(|error| said(&error))? {
        let (version, bytes) = record.map_err(|error| said(&error))?;
        aggregate.records.push(Arc::new(bytes));
        if version != Version::EMPTY.after(aggregate.records.len()) {
            return Err(format!("{id}: record {version} is out of order"));
        }
    }
    if Version::EMPTY.after(aggregate.records.len()) != head.version {
        return Err(format!("{id}: not all records up to {} can be read", head.version));
    }
    for request in store.requests(id).map_err(|error| said(&error))? {
        aggregate.requests.insert(request.id.0, Arc::new(request.bytes));
    }
    Ok(aggregate)
}

/// A snapshot may be missing. One that is given is right.
fn snapshots(store: &SqliteStore, world: &World) -> Result<(), String> {
    for (who, known) in &world.aggregates {
        let id = aggregate(*who)?;
        let found = store.latest_snapshot(&id).map_err(|error| said(&error))?;
        let Some(found) = found.latest else { continue };
        let at = usize::try_from(found.at.0).unwrap_or(usize::MAX);
        if at > known.records.len() || found.bytes != snapshot(*who, at, &known.records) {
            return Err(format!("the snapshot of {id} at {at} is not what was saved"));
        }
    }
    Ok(())
}

/// The database as SQLite itself sees it, and rows that belong to nobody.
fn sound(database: &Path) -> Result<(), String> {
    let asked = || -> rusqlite::Result<(String, i64)> {
        let connection = Connection::open(database)?;
        let said = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        let strays = connection.query_row(
            "SELECT (SELECT count(*) FROM batches WHERE aggregate NOT IN (SELECT number FROM aggregates))
                  + (SELECT count(*) FROM requests WHERE aggregate NOT IN (SELECT number FROM aggregates))",
            [],
            |row| row.get(0),
        )?;
        Ok((said, strays))
    };
    match asked() {
        Ok((words, 0)) if words == "ok" => Ok(()),
        Ok((words, 0)) => Err(format!("the database is not sound: {words}")),
        Ok((_, strays)) => Err(format!("{strays} rows belong to no aggregate")),
        Err(error) => Err(format!("the database cannot be looked at: {}", said(&error))),
    }
}

/// A claim, an append to two aggregates, a request that is taken; in this order, as an owner would.
fn work_on(session: &mut Session, die: &mut Die) -> Result<(), String> {
    let who = die.below(MOST);
    let other = who.saturating_add(1) % MOST;
    session.claim(0, who)?;
    let parts = |session: &mut Session, taken: Vec<u64>, length: usize| {
        vec![
            Part { who, records: vec![session.record(length), session.record(9)], taken },
            Part { who: other, records: vec![session.record(30)], taken: vec![] },
        ]
    };
    let length = die.below(6000);
    let first = parts(session, vec![], length);
    session.append(0, first)?;
    session.request(0, who)?;
    let taken = session.world.of(who).requests.into_keys().collect();
    let second = parts(session, taken, 40);
    session.append(0, second)
}

#[cfg(test)]
mod tests;
