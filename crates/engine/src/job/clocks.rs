//! Shifts the clocks of items when a job is resumed or unpaused.
//!
//! Nothing here starts, ends or charges anything.

use std::time::Duration;

use undaunted_policy::Timestamp;

use super::item::{ActiveItem, Activity};
use super::step::StepState;
use crate::event::JobResumed;
use crate::mutant::{self, Mutant};

impl StepState {
    /// The last run was from `began` to `left`; the job is resumed at `now`.
    pub(super) fn resume(&mut self, resumed: &JobResumed, [began, left, now]: [Timestamp; 3]) {
        let mut moved = Vec::new();
        self.items.each_active(|item, active| {
            active.forgive_queue(began, left);
            if resumed.planned {
                active.stand_still(resumed.away, left, now);
            }
            if let Some((was, is)) = active.clamp(now) {
                moved.push((was, is, item));
            }
        });
        for (was, is, item) in moved {
            self.waiting.remove(was, item);
            self.waiting.insert(is, item);
        }
        if resumed.planned {
            self.held.stand_still(left, now);
        }
        self.held.clamp(now);
    }

    /// The clocks stood still from `since` to `now`, `away` in total. The end of a delay budget does not move: while
    /// the job runs, a due retry only waits for its start, which `resume` does not count.
    pub(super) fn unpause(&mut self, away: Duration, since: Timestamp, now: Timestamp) {
        self.items.each_active(|_, active| active.move_began(away));
        self.held.stand_still(since, now);
    }
}

impl ActiveItem {
    /// Does not count the time for which a due retry waited for a slot while the job ran.
    fn forgive_queue(&mut self, began: Timestamp, left: Timestamp) {
        if let (Activity::Waiting(due), Some(expires)) = (self.activity, self.expires()) {
            self.set_expires(Some(expires.after(left.since(due.max(began)))));
        }
    }

    fn move_began(&mut self, away: Duration) {
        self.set_began(self.began().map(|began| began.after(away)));
    }

    /// Stops the clock of an item while its job is suspended: a retry that fell due then is not late.
    fn stand_still(&mut self, away: Duration, left: Timestamp, now: Timestamp) {
        self.move_began(away);
        if let (Activity::Waiting(due), Some(expires)) = (self.activity, self.expires()) {
            self.set_expires(Some(expires.after(now.since(due.max(left)))));
        }
    }

    /// A wait is never longer than its delay, however the clock was set meanwhile.
    fn clamp(&mut self, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let Activity::Waiting(due) = self.activity else { return None };
        let longest = now.after(self.progress().previous.unwrap_or_default());
        if due <= longest && !mutant::is(Mutant::WaitRestartedOnResume) {
            return None;
        }
        self.activity = Activity::Waiting(longest);
        let left = self.expires().map(|expires| expires.since(due));
        self.set_expires(left.map(|left| longest.after(left)));
        Some((due, longest))
    }
}
