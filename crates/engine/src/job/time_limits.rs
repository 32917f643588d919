//! When the attempts, items and results of a job run out of time, and by which limit.
//!
//! Instants are absolute; nothing here ends anything. A pause or a clean suspension moves the first start of an
//! item, and with it the item's deadline.

use std::time::Duration;

use undaunted_policy::{FailureCause, Reason, Timestamp};

use super::item::ActiveItem;
use super::state::Job;
use crate::event::{TimeLimit, TimeLimitKind};
use crate::id::{CommandId, StepId};

/// The end of a limit, and the limit.
pub(crate) type LimitEnd = (Timestamp, TimeLimit);

impl Job {
    /// Runs from the submission, or from the first redrive after it has passed.
    pub fn deadline(&self) -> Option<Timestamp> {
        let from = self.times.deadline_from.unwrap_or(self.times.submitted_at);
        let allowed = || Some(from.after(self.workflow().deadline?));
        self.times.passed.or_else(allowed)
    }

    /// A redrive asks for a round after the deadline, so the deadline runs anew: the round could start nothing else.
    pub(super) fn renew_deadline(&mut self, now: Timestamp) {
        if self.stops_at_deadline() || self.deadline().is_some_and(|end| end <= now) {
            self.times.deadline_from = Some(now);
            self.times.passed = None;
        }
    }

    /// Whether the job's deadline has ended it, or is about to.
    pub(crate) fn stops_at_deadline(&self) -> bool {
        self.failures.stopped == Some(Reason::Deadline)
    }

    /// The deadline, if it made the job end an attempt or an input command.
    pub fn deadline_that_ended(&self, cause: FailureCause) -> Option<TimeLimit> {
        let ended = cause == FailureCause::Interrupted && self.stops_at_deadline();
        let allowed = self.workflow().deadline.filter(|_| ended)?;
        Some(TimeLimit::new(TimeLimitKind::Deadline, allowed))
    }

    pub fn item_limit(&self, step: StepId) -> Option<Duration> {
        self.plan.map(step)?.item_deadline
    }

    pub fn deadline_of(&self, step: StepId, active: &ActiveItem) -> Option<Timestamp> {
        self.deadline_for(step, active.command, active.began())
    }

    pub(crate) fn deadline_for(
        &self,
        step: StepId,
        command: CommandId,
        began: Option<Timestamp>,
    ) -> Option<Timestamp> {
        self.deadlines(step, command, began).map(|(end, _)| end).min()
    }

    fn deadlines(
        &self,
        step: StepId,
        command: CommandId,
        began: Option<Timestamp>,
    ) -> impl Iterator<Item = LimitEnd> {
        let of = |kind| {
            move |(from, allowed): (Timestamp, _)| (from.after(allowed), TimeLimit::new(kind, allowed))
        };
        // A handler may clean up after an item whose deadline has passed.
        let of_item = self.item_limit(step).filter(|_| self.plan.handled_by(command).is_none());
        let of_item = began.zip(of_item).map(of(TimeLimitKind::ItemTimeout));
        let of_job = self.workflow().deadline.and_then(|allowed| Some((self.deadline()?, allowed)));
        let of_job = of_job.map(|(end, allowed)| (end, TimeLimit::new(TimeLimitKind::Deadline, allowed)));
        of_item.into_iter().chain(of_job)
    }

    /// What ends an attempt that starts now: its timeout, or the deadline of its item or job.
    pub(crate) fn attempt_limit(
        &self,
        step: StepId,
        command: CommandId,
        began: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<LimitEnd> {
        let own = self.plan.command(command);
        let own = own.and_then(|command| command.timeout.or(command.action.default_timeout()));
        let own = own.map(|allowed| (now.after(allowed), TimeLimit::new(TimeLimitKind::Timeout, allowed)));
        // The deadline of an item that has not started counts from this attempt.
        let deadlines = self.deadlines(step, command, began.or(Some(now)));
        own.into_iter().chain(deadlines).min_by_key(|(end, _)| *end)
    }

    /// What ends the wait for the result of an attempt that is accepted now.
    pub(crate) fn result_limit(&self, step: StepId, active: &ActiveItem, now: Timestamp) -> LimitEnd {
        let allowed = self.plan.completion_timeout(step);
        let own = (now.after(allowed), TimeLimit::new(TimeLimitKind::CompletionTimeout, allowed));
        let deadlines = self.deadlines(step, active.command, active.began());
        deadlines.fold(own, |first, next| if next.0 < first.0 { next } else { first })
    }
}
