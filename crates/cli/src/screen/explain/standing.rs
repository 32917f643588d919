//! The state of an item in one sentence.

use undaunted_engine::view::{HoldView, ItemStatus, ItemView, LiveJobStatus, LookView};
use undaunted_policy::Timestamp;

use crate::screen::duration::short;
use crate::screen::holds;
use crate::screen::limits::has_ended;
use crate::screen::words::retry_of;

/// What the sentence is made from.
pub(super) struct Standing<'s> {
    pub(super) job: &'s str,
    pub(super) job_status: LiveJobStatus,
    status: ItemStatus,
    attempts: u32,
    retry: u32,
    retries_allowed: Option<u32>,
    due: Option<Timestamp>,
    left_out: Option<&'s str>,
    held: Option<&'s HoldView>,
    /// Whether everything about the item follows.
    story: bool,
}

impl<'s> Standing<'s> {
    pub(super) fn of_item(item: &'s ItemView) -> Self {
        Self {
            job: &item.job,
            job_status: item.job_status,
            status: item.status,
            attempts: item.attempts,
            retry: item.retry,
            retries_allowed: item.retries_allowed,
            due: item.due_at.map(|due| due.0),
            left_out: item.left_out.as_deref(),
            held: item.held.as_ref(),
            story: true,
        }
    }

    pub(super) fn of_look(job: &'s str, job_status: LiveJobStatus, look: &'s LookView) -> Self {
        Self {
            job,
            job_status,
            status: look.status,
            attempts: look.attempts,
            retry: look.retry,
            retries_allowed: look.retries_allowed,
            due: look.due_at.map(|due| due.0),
            left_out: look.left_out.as_deref(),
            held: look.held.as_ref(),
            story: false,
        }
    }

    pub(super) fn sentence(&self, now: Timestamp) -> String {
        let ended = has_ended(self.job_status);
        let is_alone = matches!(
            self.job_status,
            LiveJobStatus::Interrupted | LiveJobStatus::As(undaunted_engine::view::JobStatus::Suspended)
        );
        let unless = if self.story && is_alone {
            format!("; nobody runs the job: undaunted resume {}", self.job)
        } else {
            String::new()
        };
        let word = self.status.word();
        match (self.status, self.left_out) {
            (ItemStatus::Pending | ItemStatus::Missing(_), Some(why)) => {
                let reason = self.status.reason().map(|reason| format!(" ({reason})"));
                let reason = reason.unwrap_or_default();
                format!("not waited for{reason}: the step was complete without it, {why}")
            }
            (ItemStatus::Missing(reason), None) => format!("it was never started ({reason})"),
            (ItemStatus::Pending, None) if ended => "it was never started".to_owned(),
            (ItemStatus::Pending, None) => format!("it was not started yet{unless}"),
            (ItemStatus::Running, _) => format!("attempt {} runs{unless}", self.attempts),
            (ItemStatus::Waiting, _) => format!("{}{unless}", self.waiting(now)),
            (ItemStatus::Held, _) => match self.held {
                Some(held) if self.story => format!("{}{unless}", holds::shortly(held, now)),
                Some(held) => format!("{}{unless}", holds::sentence(self.job, held, now)),
                None => format!("held{unless}"),
            },
            (ItemStatus::Succeeded, _) => word.to_owned(),
            (ItemStatus::Dead(reason), _) => {
                format!("a dead letter ({reason}): {}", reason.sentence())
            }
            (ItemStatus::Skipped(reason), _) => {
                format!("{word} ({reason}): {}", reason.sentence())
            }
        }
    }

    fn waiting(&self, now: Timestamp) -> String {
        let what = match self.retry {
            0 => "the first attempt".to_owned(),
            retry => retry_of(retry, self.retries_allowed),
        };
        match self.due {
            Some(due) if due > now => {
                let left = short(due.since(now));
                let at = undaunted_engine::view::rfc3339(due);
                format!("waits for {what}, due in {left} at {at}")
            }
            Some(due) => {
                let at = undaunted_engine::view::rfc3339(due);
                format!("waits for {what}, due since {at}")
            }
            None => format!("waits for a free slot for {what}"),
        }
    }
}
