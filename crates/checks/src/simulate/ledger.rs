//! What the records of a job add up to, reckoned without the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use undaunted_engine::event::{Event, Record, Retrying, Started, Subject};
use undaunted_policy::Timestamp;

/// The sums of one job.
#[derive(Default)]
pub(super) struct Ledger {
    /// Attempts that run, by step and item.
    live: BTreeMap<(u32, u32), Subject>,
    started: BTreeSet<u64>,
    reading: BTreeSet<u64>,
    /// Delays added up, by step, item and command.
    spent: BTreeMap<(u32, u32, u32), Duration>,
    /// When retries fall due, by step and item.
    due: BTreeMap<(u32, u32), Timestamp>,
    /// Their delays.
    delay: BTreeMap<(u32, u32), Duration>,
    /// Items that have ended.
    ended: BTreeSet<(u32, u32)>,
    /// Retries that were charged, in all and by item.
    charged: u32,
    charged_by: BTreeMap<(u32, u32), u32>,
    /// Whether the job has ended.
    pub(super) is_over: bool,
}

impl Ledger {
    /// When retries fall due, by step and item.
    pub(super) const fn due(&self) -> &BTreeMap<(u32, u32), Timestamp> {
        &self.due
    }

    /// Whether an attempt with this number was ever recorded as started.
    pub(super) fn was_started(&self, start: u64) -> bool {
        self.started.contains(&start)
    }

    /// Whether a command with this number gives items.
    pub(super) fn is_reading(&self, start: u64) -> bool {
        self.reading.contains(&start)
    }

    /// Enters a record. What does not add up, in words.
    pub(super) fn enter(&mut self, record: &Record) -> Vec<String> {
        let mut wrong = Vec::new();
        match &record.event {
            Event::AttemptStarted(started) => self.starts(started, record.at, &mut wrong),
            Event::StepStarted { start, .. } => self.reading.extend(start),
            Event::AttemptSucceeded(done) => self.ends(done.subject, &mut wrong),
            Event::AttemptFailed(done) => self.ends(done.subject, &mut wrong),
            Event::RetryScheduled(retrying) => self.waits(retrying, &mut wrong),
            Event::Held(held) => {
                let of = held.subject;
                self.due.remove(&(of.step, of.item));
                if let Some(sum) = &held.sum {
                    self.charge(of, sum.pool, sum.share, &mut wrong);
                }
            }
            Event::CommandStopped(stopped) => {
                let of = stopped.subject;
                self.due.remove(&(of.step, of.item));
                self.goes_on((of.step, of.item), &mut wrong);
            }
            Event::CommandRepeated { subject } => {
                // One more attempt, which is charged.
                self.charged = self.charged.saturating_add(1);
                let by = self
                    .charged_by
                    .entry((subject.step, subject.item))
                    .or_default();
                *by = by.saturating_add(1);
            }
            Event::JobResumed(_) => {
                // A clock that was set back stretches no wait.
                for (place, due) in &mut self.due {
                    let delay = self.delay.get(place).copied().unwrap_or_default();
                    *due = (*due).min(record.at.after(delay));
                }
            }
            Event::ItemSucceeded { step, item } | Event::ItemSkipped { step, item, .. } => {
                self.settles((*step, *item), &mut wrong);
            }
            Event::ItemDeadLettered { subject, .. } => {
                self.settles((subject.step, subject.item), &mut wrong);
            }
            Event::JobCompleted(_)
            | Event::JobPartial(_)
            | Event::JobFailed(_)
            | Event::JobCancelled(_) => {
                if !self.live.is_empty() {
                    wrong.push(format!("the job ends while {:?} run", self.live));
                }
                if self.is_over {
                    wrong.push("the job ends twice".to_owned());
                }
                self.is_over = true;
            }
            _ => {}
        }
        wrong
    }

    fn starts(&mut self, started: &Started, at: Timestamp, wrong: &mut Vec<String>) {
        let of = started.subject;
        let place = (of.step, of.item);
        if let Some(other) = self.live.insert(place, of) {
            wrong.push(format!("{of:?} starts while {other:?} runs"));
        }
        if !self.started.insert(started.start) {
            wrong.push(format!("start {} is recorded twice", started.start));
        }
        if of.attempt == 1 {
            // The commands of a handler begin anew in each of its rounds.
            self.spent.remove(&(of.step, of.item, of.command));
        }
        if let Some(due) = self.due.remove(&place)
            && due > at
        {
            wrong.push(format!("{of:?} starts at {at:?}, due at {due:?}"));
        }
        self.goes_on(place, wrong);
    }

    fn waits(&mut self, retrying: &Retrying, wrong: &mut Vec<String>) {
        let of = retrying.subject;
        let spent = self
            .spent
            .entry((of.step, of.item, of.command))
            .or_default();
        *spent = spent.saturating_add(retrying.delay);
        let sum = &retrying.sum;
        if *spent != sum.spent_after {
            wrong.push(format!(
                "{spent:?} was spent, recorded is {:?}",
                sum.spent_after
            ));
        }
        if sum.budget.is_some_and(|budget| *spent > budget) {
            wrong.push(format!(
                "{spent:?} is more than its budget {:?}",
                sum.budget
            ));
        }
        self.due.insert((of.step, of.item), retrying.due);
        self.delay.insert((of.step, of.item), retrying.delay);
        self.charge(of, sum.pool, sum.share, wrong);
    }

    fn ends(&mut self, of: Subject, wrong: &mut Vec<String>) {
        if self.live.remove(&(of.step, of.item)) != Some(of) {
            wrong.push(format!("{of:?} ends, and did not run"));
        }
        self.goes_on((of.step, of.item), wrong);
    }

    fn settles(&mut self, place: (u32, u32), wrong: &mut Vec<String>) {
        if !self.ended.insert(place) {
            wrong.push(format!("item {place:?} ends twice"));
        }
        self.due.remove(&place);
    }

    fn goes_on(&self, place: (u32, u32), wrong: &mut Vec<String>) {
        if self.ended.contains(&place) {
            wrong.push(format!("item {place:?} goes on after its end"));
        }
    }

    fn charge(
        &mut self,
        of: Subject,
        pool: Option<(u32, u32)>,
        share: Option<(u32, u32)>,
        wrong: &mut Vec<String>,
    ) {
        let by = self.charged_by.entry((of.step, of.item)).or_default();
        if let Some((used, total)) = pool {
            if used != self.charged || used >= total {
                wrong.push(format!(
                    "the pool has {used} of {total}, charged were {}",
                    self.charged
                ));
            }
            self.charged = self.charged.saturating_add(1);
        }
        if let Some((used, most)) = share {
            if used != *by || used >= most {
                wrong.push(format!(
                    "item {} has {used} of {most}, charged were {by}",
                    of.item
                ));
            }
            *by = by.saturating_add(1);
        }
    }
}
