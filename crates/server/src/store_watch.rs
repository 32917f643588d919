//! Counts and logs the jobs of a store that other processes run.
//!
//! A thread looks at the heads of all journals about once a second and reads the new records of those that
//! have some. Records from before the start of the server are not logged, and count only where the series
//! belong to a job.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use undaunted_engine::event::{Event, Record};
use undaunted_engine::id::StepId;
use undaunted_engine::job::{Job, Plans};
use undaunted_engine::view::JobCounters;
use undaunted_policy::Timestamp;
use undaunted_runner::breakers;
use undaunted_runner::clock::Clock;
use undaunted_runner::folder::LocalFolder;
use undaunted_runner::journal::{FAMILY, JournalError, aggregate, begin, decode, replay};
use undaunted_runner::reader::JobReader;
use undaunted_store::{ListedAggregate, Version};

use crate::watch::Watch;
use crate::watched_jobs::{WatchState, WatchedJob};

/// The time between two looks, and how many times longer than a look it is at least. Within 5 seconds a server
/// shows what other processes do.
const INTERVAL: Duration = Duration::from_secs(1);
const INTERVAL_FACTOR: u32 = 15;
const MAX_INTERVAL: Duration = Duration::from_millis(3500);

/// Ends its thread when it is dropped.
#[derive(Debug)]
pub struct StoreWatch(Arc<WatchRounds>);

#[derive(Debug, Default)]
struct WatchRounds {
    counts: Mutex<RoundCounts>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct RoundCounts {
    wanted: u64,
    done: u64,
    has_ended: bool,
}

/// What the thread remembers from round to round.
struct Watcher {
    watch: Watch,
    local: LocalFolder,
    plans: Plans,
    started: Timestamp,
    /// The pulse of the store before the last round.
    pulse: Option<u64>,
    breakers: BTreeMap<String, Version>,
}

impl StoreWatch {
    pub fn start(watch: Watch, local: LocalFolder) -> std::io::Result<Self> {
        let rounds = Arc::<WatchRounds>::default();
        let (shared, started) = (Arc::clone(&rounds), Clock::set().now());
        let (plans, breakers) = (Plans::default(), BTreeMap::new());
        let mut watcher = Watcher { watch, local, plans, started, pulse: None, breakers };
        let thread = std::thread::Builder::new().name("store-watch".to_owned());
        let _ = thread.spawn(move || {
            let mut pause = Duration::ZERO;
            while let Some(wanted) = shared.next(pause) {
                let began = Instant::now();
                // What cannot be read now is read in the next round.
                drop(watcher.look());
                pause = began.elapsed().saturating_mul(INTERVAL_FACTOR).clamp(INTERVAL, MAX_INTERVAL);
                shared.finish(wanted);
            }
        })?;
        Ok(Self(rounds))
    }

    /// Waits until everything that is on disk now is counted, for a limited time.
    pub fn catch_up(&self, patience: Duration) {
        let mut counts = self.0.lock();
        counts.wanted = counts.wanted.saturating_add(1);
        let wanted = counts.wanted;
        self.0.changed.notify_all();
        let waits = |counts: &mut RoundCounts| counts.done < wanted && !counts.has_ended;
        drop(self.0.changed.wait_timeout_while(counts, patience, waits));
    }
}

impl Drop for StoreWatch {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.changed.notify_all();
    }
}

impl WatchRounds {
    fn lock(&self) -> MutexGuard<'_, RoundCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next round. `None` at the end.
    fn next(&self, pause: Duration) -> Option<u64> {
        let idle = |counts: &mut RoundCounts| counts.wanted == counts.done && !counts.has_ended;
        let waited = self.changed.wait_timeout_while(self.lock(), pause, idle);
        let (counts, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!counts.has_ended).then_some(counts.wanted)
    }

    fn finish(&self, wanted: u64) {
        self.lock().done = wanted;
        self.changed.notify_all();
    }
}

impl Watcher {
    fn look(&mut self) -> Result<(), JournalError> {
        let store = Arc::clone(&self.watch.store);
        let pulse = store.pulse()?;
        if self.pulse == Some(pulse) {
            return Ok(());
        }
        let listed = store.list(FAMILY, "")?;
        for listed in &listed {
            self.look_at(listed);
        }
        let there: BTreeSet<&str> = listed.iter().map(|listed| listed.aggregate.id()).collect();
        for removed in self.watch.jobs.take_removed(|job| there.contains(job)) {
            self.watch.metrics.remove(&removed);
        }
        self.look_at_breakers()?;
        // The earlier pulse, so that records written meanwhile are found the next time.
        self.pulse = Some(pulse);
        Ok(())
    }

    fn look_at(&self, listed: &ListedAggregate) {
        let (id, head) = (listed.aggregate.id(), listed.head.version);
        let watched = self.watch.jobs.of(id);
        let mut state = watched.lock();
        if matches!(*state, WatchState::Here)
            || (watched.last() == head && !matches!(*state, WatchState::New))
        {
            return;
        }
        if head < watched.last() {
            // Another job with the same name.
            self.watch.metrics.remove(id);
            watched.set_last(Version::EMPTY);
            *state = WatchState::New;
        }
        let before = std::mem::take(&mut *state);
        let job = self.advance(id, head, &watched, before).unwrap_or_else(|_| {
            // It is not counted from the beginning again and again.
            watched.set_last(head);
            None
        });
        *state = WatchState::Elsewhere(job.filter(|job| !job.stage.has_ended()));
        drop(state);
        self.watch.changes.notify();
    }

    /// Counts and logs the new records of a job, and returns the job.
    fn advance(
        &self,
        id: &str,
        head: Version,
        watched: &WatchedJob,
        before: WatchState,
    ) -> Result<Option<Box<Job>>, JournalError> {
        let store = &*self.watch.store;
        let last = watched.last();
        match before {
            WatchState::Elsewhere(Some(mut job)) => {
                for read in store.read(&aggregate(id)?, last)? {
                    let (version, bytes) = read?;
                    let record = decode(id, version, &bytes)?;
                    job.apply(&record);
                    self.watch.tell(&job, &record);
                    watched.set_last(version);
                }
                return Ok(Some(job));
            }
            WatchState::New if self.is_from_before(id)? => return self.count_past(id, head, watched),
            WatchState::New | WatchState::Here | WatchState::Elsewhere(None) => {}
        }
        let (job, version) = replay(store, id, &self.plans, |job, version, record| {
            if version > last {
                self.watch.tell(job, record);
            }
        })?;
        watched.set_last(version);
        Ok(Some(Box::new(job)))
    }

    fn is_from_before(&self, id: &str) -> Result<bool, JournalError> {
        let first = self.record_after(id, Version::EMPTY)?;
        Ok(first.is_some_and(|first| first.at < self.started))
    }

    fn record_after(&self, id: &str, version: Version) -> Result<Option<Record>, JournalError> {
        let read = self.watch.store.read(&aggregate(id)?, version)?.next().transpose()?;
        read.map(|(version, bytes)| decode(id, version, &bytes)).transpose()
    }

    /// Brings back the series of a job from before this process.
    fn count_past(
        &self,
        id: &str,
        head: Version,
        watched: &WatchedJob,
    ) -> Result<Option<Box<Job>>, JournalError> {
        let store = &*self.watch.store;
        let last = self.record_after(id, Version(head.0.saturating_sub(1)))?;
        let has_ended =
            |record: &Record| matches!(&record.event, Event::Job(event) if event.ended().is_some());
        if last.as_ref().is_some_and(has_ended) {
            watched.set_last(head);
            if self.may_have_series(id)? {
                let reader = JobReader::open(store, &self.local.job(id), id, &self.plans)?;
                self.watch.metrics.recover(&reader.job, &reader.projection.counters);
                watched.set_last(reader.version());
            }
            return Ok(None);
        }
        let mut counters = JobCounters::default();
        let (job, version) = replay(store, id, &self.plans, |job, _, record| counters.take(job, record))?;
        self.watch.metrics.recover(&job, &counters);
        watched.set_last(version);
        Ok(Some(Box::new(job)))
    }

    /// Whether a job has a pool, or a step that may have been completed by a rule.
    fn may_have_series(&self, id: &str) -> Result<bool, JournalError> {
        let Some(first) = self.record_after(id, Version::EMPTY)? else {
            return Ok(false);
        };
        let job = begin(id, &first, &self.plans)?;
        let mut steps = StepId::all().zip(&job.steps);
        Ok(job.pool.is_some() || steps.any(|(step, _)| job.plan().completion(step).is_some()))
    }

    fn look_at_breakers(&mut self) -> Result<(), JournalError> {
        let store = &*self.watch.store;
        for listed in store.list(breakers::FAMILY, "")? {
            let (name, head) = (listed.aggregate.id(), listed.head.version);
            if self.breakers.get(name) == Some(&head) {
                continue;
            }
            let Some(journal) = breakers::read(store, name)? else { continue };
            self.watch.metrics.found_breaker(name, journal.state.breaker.circuit());
            let changes = journal.changes.iter().map(|(_, change)| change);
            for change in changes.filter(|it| it.at >= self.started && it.change.is_transition()) {
                self.watch.log.turned(name, change);
            }
            let _ = self.breakers.insert(name.to_owned(), head);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
