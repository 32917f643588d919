//! All attempts of a job, in the order in which they began.
//!
//! An attempt is complete when its item has a record after the end of the attempt; until then, attempts that
//! began later wait in a queue. If the queue becomes too long, the end of its first attempt is looked up in
//! the index.

use std::collections::{BTreeMap, VecDeque};

use undaunted_engine::event::{Event, ItemEvent, Record};
use undaunted_engine::id::ItemId;
use undaunted_engine::job::Job;
use undaunted_engine::view::history::{Histories, PastAttempt};
use undaunted_store::{Store, Version};

use super::JobReader;
use crate::JournalError;
use crate::journal::decode;

/// The longest queue of attempts.
const WAITING: usize = 4096;

#[derive(Default)]
struct Queue {
    histories: Histories,
    /// In the order of their starts; `None` while the attempt is not complete.
    attempts: VecDeque<(ItemId, Option<PastAttempt>)>,
    /// How many attempts have left the queue.
    taken: usize,
    /// The positions of an item's attempts that are not complete.
    places: BTreeMap<ItemId, VecDeque<usize>>,
}

impl Queue {
    fn take(&mut self, job: &Job, record: &Record) {
        self.histories.take(job, record);
        let Event::Item(event) = &record.event else {
            return;
        };
        let item = event.item();
        if let ItemEvent::AttemptStarted(_) = event {
            let place = self.taken.saturating_add(self.attempts.len());
            self.attempts.push_back((item, None));
            self.places.entry(item).or_default().push_back(place);
        }
        // The consequence of a failure is in the next record of the item.
        let is_open = matches!(
            event,
            ItemEvent::AttemptStarted(_) | ItemEvent::AttemptFailed(_) | ItemEvent::AttemptAccepted { .. }
        );
        self.complete(job, item, usize::from(is_open));
    }

    /// Completes the attempts of an item, except for the last `open` ones.
    fn complete(&mut self, job: &Job, item: ItemId, open: usize) {
        let Some(history) = self.histories.items.get_mut(&item) else {
            return;
        };
        let done = history.attempts.len().saturating_sub(open);
        for attempt in history.attempts.drain(..done) {
            let place = self.places.get_mut(&item).and_then(VecDeque::pop_front);
            let place = place.and_then(|place| place.checked_sub(self.taken));
            if let Some((_, waiting)) = place.and_then(|place| self.attempts.get_mut(place)) {
                *waiting = Some(attempt);
            }
        }
        if self.places.get(&item).is_some_and(VecDeque::is_empty) {
            self.places.remove(&item);
        }
        history.stops.clear();
        history.holds.clear();
        history.mends.clear();
        // The round is needed in case of a redrive; for most items of a map it is the first.
        let is_over = history.attempts.is_empty() && history.end.is_some();
        if is_over && history.round <= 1 && job.plan().is_map(item.step) {
            self.histories.items.remove(&item);
        }
    }

    /// The next attempt, if it is complete.
    fn next(&mut self) -> Option<(ItemId, PastAttempt)> {
        self.attempts.front().filter(|(_, found)| found.is_some())?;
        let (item, attempt) = self.attempts.pop_front()?;
        self.taken = self.taken.saturating_add(1);
        Some((item, attempt?))
    }

    /// The item whose attempt is first in a queue that is too long.
    fn blocked(&self) -> Option<ItemId> {
        let (item, _) = self.attempts.front()?;
        (self.attempts.len() > WAITING).then_some(*item)
    }

    fn end(&mut self, job: &Job) {
        let items: Vec<ItemId> = self.places.keys().copied().collect();
        for item in items {
            self.complete(job, item, 0);
        }
    }
}

impl JobReader<'_> {
    /// Calls `each` with every attempt up to the version that was read, with the name of its item loaded.
    pub fn each_attempt<E: From<JournalError>>(
        &mut self,
        mut each: impl FnMut(&Job, &PastAttempt) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut queue = Queue { histories: Histories::of_all(), ..Queue::default() };
        let store: &dyn Store = self.store;
        let aggregate = self.aggregate.clone();
        let mut plan = self.plan_at_record()?;
        // The records before the first attempt are mostly names and values of items.
        let begin = self.projection.index.first_of_items();
        let begin = begin.into_iter().chain(self.projection.turns.first().copied());
        let before = begin.min().unwrap_or(self.version.next().0);
        let before = Version(before.saturating_sub(1));
        let records = store.read(&aggregate, before);
        for read in records.map_err(JournalError::from)? {
            let (version, bytes) = read.map_err(JournalError::from)?;
            if version > self.version {
                break;
            }
            let record = decode(self.job.id(), version, &bytes)?;
            queue.take(plan.at(&record).unwrap_or(&self.job), &record);
            while let Some((item, attempt)) = queue.next() {
                self.learn_around(item)?;
                each(&self.job, &attempt)?;
            }
            if let Some(item) = queue.blocked() {
                self.look_up(&mut queue, item)?;
            }
        }
        queue.end(&self.job);
        while let Some((item, attempt)) = queue.next() {
            self.learn_around(item)?;
            each(&self.job, &attempt)?;
        }
        Ok(())
    }

    /// Completes the first attempt of the queue from the index.
    fn look_up(&mut self, queue: &mut Queue, item: ItemId) -> Result<(), JournalError> {
        let history = self.histories([item].into())?.remove(&item);
        let attempts = history.map(|history| history.attempts).unwrap_or_default();
        let open = queue.histories.items.get(&item).and_then(|history| history.attempts.first());
        let found = attempts
            .into_iter()
            .find(|attempt| open.is_some_and(|open| open.of == attempt.of && open.round == attempt.round));
        let found = found.or_else(|| open.cloned());
        match (queue.attempts.front_mut(), found) {
            (Some((_, waiting)), Some(found)) => *waiting = Some(found),
            // The journal has only its start, so the others must not wait for it.
            (Some(_), None) => {
                drop(queue.attempts.pop_front());
                queue.taken = queue.taken.saturating_add(1);
            }
            (None, _) => {}
        }
        Ok(())
    }
}
