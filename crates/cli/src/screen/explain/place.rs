//! The state of an item in one sentence.

use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::job::{Doing, Job};
use undaunted_engine::view::{ItemStanding, holding, rfc3339};
use undaunted_policy::Timestamp;

use crate::screen::duration::short;
use crate::screen::holds;
use crate::screen::words::retry_of;

/// The due time of a retry; `None` if the item only waits for a slot.
pub(super) fn due(job: &Job, item: ItemId) -> Option<Timestamp> {
    match job.active(item)?.doing {
        Doing::Waiting(due) => Some(due).filter(|due| *due > Timestamp::ZERO),
        Doing::Running(_) | Doing::Held | Doing::Undecided => None,
    }
}

/// `is_there` says whether a process runs the job, `story` whether the details of a hold follow.
pub(super) fn sentence(
    job: &Job,
    breakers: &AdmissionControl,
    item: ItemId,
    now: Timestamp,
    is_there: bool,
    story: bool,
) -> String {
    let unless = if is_there || job.stage.has_ended() {
        String::new()
    } else {
        format!("; nobody runs the job: undaunted resume {}", job.id())
    };
    let standing = ItemStanding::of(job, item);
    let word = standing.word();
    match standing {
        ItemStanding::Pending | ItemStanding::Missing(_) if left_out(job, item.step).is_some() => {
            let why = left_out(job, item.step).unwrap_or_default();
            let reason = standing.reason().map(|reason| format!(" ({reason})"));
            format!("not waited for{}: {why}", reason.unwrap_or_default())
        }
        ItemStanding::Pending if job.stage.has_ended() => "it was never started".to_owned(),
        ItemStanding::Pending => format!("it was not started yet{unless}"),
        ItemStanding::Running => {
            let attempt = job.active(item).map(|active| active.attempts);
            format!("attempt {} runs{unless}", attempt.unwrap_or_default())
        }
        ItemStanding::Waiting => format!("{}{unless}", waiting(job, item, now)),
        ItemStanding::Held => match holding(job, breakers, item) {
            Some(held) if story => format!("{}{unless}", holds::shortly(&held, now)),
            Some(held) => format!("{}{unless}", holds::sentence(job, breakers, &held, now)),
            None => format!("held{unless}"),
        },
        ItemStanding::Succeeded => word.to_owned(),
        ItemStanding::Dead(reason) => format!("a dead letter ({reason}): {}", reason.sentence()),
        ItemStanding::Skipped(reason) | ItemStanding::Missing(reason) => {
            format!("{word} ({reason}): {}", reason.sentence())
        }
    }
}

fn waiting(job: &Job, item: ItemId, now: Timestamp) -> String {
    let active = job.active(item);
    let what = match active.map_or(0, |active| active.progress().retries) {
        0 => "the first attempt".to_owned(),
        retry => {
            let command = active.and_then(|active| job.plan().command(active.command));
            let bound = command.map(|it| it.retry.policy.bound());
            retry_of(retry, bound.and_then(undaunted_policy::Attempts::retries))
        }
    };
    match due(job, item) {
        Some(due) if due > now => {
            let left = short(due.since(now));
            format!("waits for {what}, due in {left} at {}", rfc3339(due))
        }
        Some(due) => format!("waits for {what}, due since {}", rfc3339(due)),
        None => format!("waits for a free slot for {what}"),
    }
}

/// Why a step was complete without some of its items, if it was.
fn left_out(job: &Job, step: StepId) -> Option<String> {
    let reached = job.step(step)?.reached?;
    Some(format!(
        "the step was complete without it, {}",
        reached.completion().reason
    ))
}
