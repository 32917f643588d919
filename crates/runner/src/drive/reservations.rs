//! Reserved starts: handed to the keeper ahead of a free slot, and withdrawn before anything that must precede them.

use undaunted_engine::event::{Event, ItemEvent};
use undaunted_engine::id::{ItemId, StartId};
use undaunted_engine::input::Input;
use undaunted_engine::mutant::{self, Mutant};
use undaunted_policy::Timestamp;
use undaunted_store::StoreRequest;

use super::{DriveError, JobDriver, JobMessage};
use crate::ExecutorMessage;

/// What waits until the keeper has said of each reserved start whether it has begun.
#[derive(Default)]
pub(super) struct Withdrawal {
    /// The keeper was asked to withdraw them; until each has begun or not, none is reserved.
    is_under_way: bool,
    messages: Vec<JobMessage>,
    /// All that the store had when it was last asked.
    requests: Vec<StoreRequest>,
}

impl Withdrawal {
    const fn is_wanted(&self) -> bool {
        !self.messages.is_empty() || !self.requests.is_empty()
    }
}

impl JobDriver<'_> {
    /// Reserves starts for the next items, if nothing else may come first.
    pub(super) fn reserve(&mut self) {
        if self.withdrawal.is_under_way || self.withdrawal.is_wanted() {
            return;
        }
        let now = self.now();
        for item in self.job.reservable(now) {
            // A command that cannot be built fails when a slot is free.
            let Ok(task) = self.task(item, now) else { return };
            let before = self.journal.pending.records.len();
            self.decide_at(&Input::Reserve { item }, now);
            let records = self.journal.pending.records.get(before..).unwrap_or_default();
            let start = records.iter().find_map(|record| match &record.event {
                Event::Item(ItemEvent::StartReserved(reserved)) => Some(reserved.start),
                Event::Job(_) | Event::Step(_) | Event::Item(_) | Event::Breaker(_) => None,
            });
            let Some(start) = start else { return };
            self.starter.prepare(start, task);
        }
    }

    /// Hands a reserved start to the keeper, now that it is on disk.
    pub(super) fn hand_over(&mut self, start: StartId, item: ItemId) -> Result<(), DriveError> {
        let prepared = self.starter.take(start);
        if !self.job.starts.reserved.contains_key(&start) {
            return Ok(());
        }
        let Some(task) = prepared.or_else(|| self.task(item, self.now()).ok()) else {
            self.context.notifier.send(ExecutorMessage::NotBegun(start));
            return Ok(());
        };
        if task.reads_item_file {
            self.write_item(item)?;
        }
        let slots = self.job.parallel(item.step);
        self.executors.programs.reserve(start, &task, slots, &self.context);
        Ok(())
    }

    /// Withdraws the reserved starts if something has to come before them: at once what the keeper does not know yet;
    /// about the others it is asked.
    pub(super) fn withdraw_if_needed(&mut self) {
        if self.job.starts.reserved.is_empty() {
            self.withdrawal.is_under_way = false;
            return;
        }
        let stops = self.withdrawal.is_wanted() || self.context.shutdown.is_requested();
        if !self.withdrawal.is_under_way && (stops || !self.job.keeps_reservations(self.now())) {
            self.withdrawal.is_under_way = true;
            let reserved: Vec<StartId> = self.job.starts.reserved.keys().copied().collect();
            for start in reserved {
                if self.starter.take(start).is_some() {
                    self.not_begun(start);
                }
            }
            self.executors.programs.withdraw();
        }
    }

    /// Keeps what stops or changes the job until its reserved starts are withdrawn. A second signal does not wait.
    pub(super) fn defer(&mut self, message: JobMessage) -> Result<Option<JobMessage>, DriveError> {
        let stops = match &message {
            JobMessage::Interrupt | JobMessage::Cancel | JobMessage::PassOn(_) => true,
            JobMessage::Stored(..)
            | JobMessage::Executor(_)
            | JobMessage::Outputs(_)
            | JobMessage::Reported(_)
            | JobMessage::FindToken(_) => false,
        };
        if !stops || !self.must_withdraw_first() {
            return Ok(Some(message));
        }
        let is_signal = |it: &JobMessage| matches!(it, JobMessage::Interrupt);
        if is_signal(&message) && self.withdrawal.messages.iter().any(is_signal) {
            for earlier in std::mem::take(&mut self.withdrawal.messages) {
                self.handle_now(earlier)?;
            }
            return Ok(Some(message));
        }
        self.withdrawal.messages.push(message);
        self.withdraw_if_needed();
        Ok(None)
    }

    fn must_withdraw_first(&self) -> bool {
        !self.job.starts.reserved.is_empty() && !mutant::is(Mutant::ReservationNotWithdrawn)
    }

    /// The requests, unless they have to wait for a withdrawal.
    pub(super) fn defer_requests(&mut self, requests: Vec<StoreRequest>) -> Vec<StoreRequest> {
        if requests.is_empty() || !self.must_withdraw_first() {
            return requests;
        }
        self.withdrawal.requests = requests;
        self.withdraw_if_needed();
        Vec::new()
    }

    /// Handles what has waited for a withdrawal.
    pub(super) fn handle_deferred(&mut self) -> Result<(), DriveError> {
        if self.job.starts.reserved.is_empty() && self.withdrawal.is_wanted() {
            let requests = std::mem::take(&mut self.withdrawal.requests);
            for message in std::mem::take(&mut self.withdrawal.messages) {
                self.handle_now(message)?;
            }
            self.handle_requests(requests);
        }
        Ok(())
    }

    /// The keeper has begun a start; it may have been reserved.
    pub(super) fn begun(&mut self, start: StartId, at: Option<Timestamp>) {
        if self.job.starts.reserved.contains_key(&start) {
            let at = at.unwrap_or_else(|| self.now());
            self.decide(&Input::Begun { start, at });
        }
    }

    /// Returns whether the start was reserved.
    pub(super) fn not_begun(&mut self, start: StartId) -> bool {
        let was_reserved = self.job.starts.reserved.contains_key(&start);
        if was_reserved {
            self.executors.ended(start);
            self.decide(&Input::NotBegun { start });
        }
        was_reserved
    }
}
