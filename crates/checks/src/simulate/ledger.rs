//! Sums of a job's records, computed without the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use undaunted_engine::event::{
    AttemptId, AttemptStarted, Event, ItemEvent, JobEvent, Record, RetryScheduled, StepEvent,
};
use undaunted_engine::id::{CommandId, ItemId, StartId};
use undaunted_policy::Timestamp;

#[derive(Default)]
pub(super) struct EventLedger {
    /// Running attempts.
    live: BTreeMap<ItemId, AttemptId>,
    started: BTreeSet<StartId>,
    reading: BTreeSet<StartId>,
    /// First attempts that may begin.
    reserved: BTreeSet<StartId>,
    /// The sums of delays.
    spent: BTreeMap<(ItemId, CommandId), Duration>,
    /// When retries fall due.
    due: BTreeMap<ItemId, Timestamp>,
    /// The delays of the retries in `due`.
    delay: BTreeMap<ItemId, Duration>,
    ended: BTreeSet<ItemId>,
    /// Charged retries, in all and by item.
    charged: u32,
    charged_by: BTreeMap<ItemId, u32>,
    pub(super) has_ended: bool,
}

impl EventLedger {
    pub(super) const fn due(&self) -> &BTreeMap<ItemId, Timestamp> {
        &self.due
    }

    pub(super) fn was_started(&self, start: StartId) -> bool {
        self.started.contains(&start)
    }

    /// Whether it may begin although it is not recorded as started.
    pub(super) fn is_reserved(&self, start: StartId) -> bool {
        self.reserved.contains(&start)
    }

    /// Whether the command with this number lists the items of a map.
    pub(super) fn is_reading(&self, start: StartId) -> bool {
        self.reading.contains(&start)
    }

    /// Enters a record and returns what does not add up.
    pub(super) fn enter(&mut self, record: &Record) -> Vec<String> {
        let mut violations = Vec::new();
        match &record.event {
            Event::Item(ItemEvent::AttemptStarted(started)) => {
                self.attempt_started(started, record.at, &mut violations);
            }
            Event::Item(ItemEvent::StartReserved(reserved)) => {
                violations.extend(self.reserved(reserved.start));
            }
            Event::Item(ItemEvent::ReservationWithdrawn(withdrawn)) => {
                violations.extend(self.withdrawn(withdrawn.start));
            }
            Event::Step(StepEvent::Started { start, .. }) => self.reading.extend(start),
            Event::Item(ItemEvent::AttemptSucceeded(done)) => self.attempt_ended(done.of, &mut violations),
            Event::Item(ItemEvent::AttemptFailed(done)) => self.attempt_ended(done.of, &mut violations),
            Event::Item(ItemEvent::RetryScheduled(retrying)) => {
                self.retry_scheduled(retrying, &mut violations);
            }
            Event::Item(ItemEvent::Held(held)) => {
                let of = held.of;
                self.due.remove(&of.item());
                if let Some(sum) = &held.arithmetic {
                    self.charge(of, sum.pool, sum.share, &mut violations);
                }
            }
            Event::Item(ItemEvent::CommandStopped(stopped)) => {
                let of = stopped.of;
                self.due.remove(&of.item());
                if stopped.handler.is_some() {
                    // The commands of a handler begin anew in each of its rounds.
                    self.spent.retain(|(item, _), _| *item != of.item());
                }
                self.check_not_settled(of.item(), &mut violations);
            }
            Event::Item(ItemEvent::CommandRepeated { of }) => {
                // One more attempt, which is charged.
                self.charged += 1;
                *self.charged_by.entry(of.item()).or_default() += 1;
            }
            Event::Job(JobEvent::Resumed(_)) => {
                // A clock that was set back does not prolong a wait.
                for (place, due) in &mut self.due {
                    let delay = self.delay.get(place).copied().unwrap_or_default();
                    *due = (*due).min(record.at.after(delay));
                }
            }
            Event::Item(ItemEvent::Succeeded { step, index } | ItemEvent::Skipped { step, index, .. }) => {
                self.item_settled(step.item(*index), &mut violations);
            }
            Event::Item(ItemEvent::DeadLettered { of, .. }) => {
                self.item_settled(of.item(), &mut violations);
            }
            Event::Job(
                JobEvent::Completed(_) | JobEvent::Partial(_) | JobEvent::Failed(_) | JobEvent::Cancelled(_),
            ) => {
                if !self.live.is_empty() {
                    violations.push(format!("the job ends while {:?} run", self.live));
                }
                if self.has_ended {
                    violations.push("the job ends twice".to_owned());
                }
                self.has_ended = true;
            }
            _ => {}
        }
        violations
    }

    fn reserved(&mut self, start: StartId) -> Option<String> {
        let is_new = self.reserved.insert(start);
        (!is_new).then(|| format!("start {start} is reserved twice"))
    }

    fn withdrawn(&mut self, start: StartId) -> Option<String> {
        let was_reserved = self.reserved.remove(&start);
        (!was_reserved).then(|| format!("start {start} is withdrawn, and was not reserved"))
    }

    fn attempt_started(&mut self, started: &AttemptStarted, at: Timestamp, violations: &mut Vec<String>) {
        let of = started.of;
        let place = of.item();
        if let Some(other) = self.live.insert(place, of) {
            violations.push(format!("{of:?} starts while {other:?} runs"));
        }
        if self.reserved.remove(&started.start) != started.began.is_some() {
            violations.push(format!("start {} began without its reservation", started.start));
        }
        if !self.started.insert(started.start) {
            violations.push(format!("start {} is recorded twice", started.start));
        }
        if of.attempt.0 == 1 {
            // A redrive begins anew.
            self.spent.remove(&(of.item(), of.command));
        }
        if let Some(due) = self.due.remove(&place)
            && due > at
        {
            violations.push(format!("{of:?} starts at {at:?}, due at {due:?}"));
        }
        self.check_not_settled(place, violations);
    }

    fn retry_scheduled(&mut self, retrying: &RetryScheduled, violations: &mut Vec<String>) {
        let of = retrying.of;
        let spent = self.spent.entry((of.item(), of.command)).or_default();
        *spent += retrying.delay;
        let sum = &retrying.arithmetic;
        if *spent != sum.spent_after {
            violations.push(format!("{spent:?} was spent, recorded is {:?}", sum.spent_after));
        }
        if sum.budget.is_some_and(|budget| *spent > budget) {
            violations.push(format!("{spent:?} is more than its budget {:?}", sum.budget));
        }
        self.due.insert(of.item(), retrying.due);
        self.delay.insert(of.item(), retrying.delay);
        self.charge(of, sum.pool, sum.share, violations);
    }

    fn attempt_ended(&mut self, of: AttemptId, violations: &mut Vec<String>) {
        if self.live.remove(&of.item()) != Some(of) {
            violations.push(format!("{of:?} ends, and did not run"));
        }
        self.check_not_settled(of.item(), violations);
    }

    fn item_settled(&mut self, place: ItemId, violations: &mut Vec<String>) {
        if !self.ended.insert(place) {
            violations.push(format!("item {place:?} ends twice"));
        }
        self.due.remove(&place);
    }

    fn check_not_settled(&self, place: ItemId, violations: &mut Vec<String>) {
        if self.ended.contains(&place) {
            violations.push(format!("item {place:?} acts after its end"));
        }
    }

    fn charge(
        &mut self,
        of: AttemptId,
        pool: Option<(u32, u32)>,
        share: Option<(u32, u32)>,
        violations: &mut Vec<String>,
    ) {
        let by = self.charged_by.entry(of.item()).or_default();
        if let Some((used, total)) = pool {
            if used != self.charged || used >= total {
                violations.push(format!("the pool has {used} of {total}, charged were {}", self.charged));
            }
            self.charged += 1;
        }
        if let Some((used, most)) = share {
            if used != *by || used >= most {
                violations.push(format!("item {} has {used} of {most}, charged were {by}", of.index));
            }
            *by += 1;
        }
    }
}
