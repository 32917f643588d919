//! The status of an item in one sentence.

use undaunted_engine::view::{HoldView, InspectedItemView, ItemStatus, ItemView, LiveJobStatus};
use undaunted_policy::Timestamp;

use crate::screen::limits::has_ended;
use crate::screen::words::retry_of;
use crate::screen::{holds, short};

/// The facts the sentence is made from.
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
    /// Whether the details of the item follow the sentence.
    has_details: bool,
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
            has_details: true,
        }
    }

    pub(super) fn of_look(job: &'s str, job_status: LiveJobStatus, look: &'s InspectedItemView) -> Self {
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
            has_details: false,
        }
    }

    pub(super) fn sentence(&self, now: Timestamp) -> String {
        let ended = has_ended(self.job_status);
        let is_unowned = matches!(
            self.job_status,
            LiveJobStatus::Interrupted | LiveJobStatus::As(undaunted_engine::view::JobStatus::Suspended)
        );
        let resume = if self.has_details && is_unowned {
            format!("; no process is running the job: undaunted resume {}", self.job)
        } else {
            String::new()
        };
        let word = self.status.word();
        match (self.status, self.left_out) {
            (ItemStatus::Pending | ItemStatus::Missing(_), Some(why)) => {
                let reason = self.status.reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
                format!("not waited for{reason}: the step completed without it, {why}")
            }
            (ItemStatus::Missing(reason), None) => format!("never started ({reason})"),
            (ItemStatus::Pending, None) if ended => "never started".to_owned(),
            (ItemStatus::Pending, None) => format!("not started yet{resume}"),
            (ItemStatus::Running, _) => format!("attempt {} is running{resume}", self.attempts),
            (ItemStatus::Waiting, _) => format!("{}{resume}", self.waiting(now)),
            (ItemStatus::Held, _) => match self.held {
                Some(held) if self.has_details => format!("{}{resume}", holds::shortly(held, now)),
                Some(held) => format!("{}{resume}", holds::sentence(self.job, held, now)),
                None => format!("held{resume}"),
            },
            (ItemStatus::Succeeded, _) => word.to_owned(),
            (ItemStatus::Dead(reason), _) => {
                format!("dead letter ({reason}): {}", reason.sentence())
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
                format!("waiting for {what}, due in {left} at {at}")
            }
            Some(due) => {
                let at = undaunted_engine::view::rfc3339(due);
                format!("waiting for {what}, due since {at}")
            }
            None => format!("waiting for a free slot for {what}"),
        }
    }
}
