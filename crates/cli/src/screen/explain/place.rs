//! Where an item stands, in one word and in one sentence.

use undaunted_engine::breaker::Admission;
use undaunted_engine::job::{Doing, Item, Job, Settled};
use undaunted_engine::view::{holding, rfc3339};
use undaunted_policy::{Reason, Timestamp};

use crate::screen::duration::short;
use crate::screen::holds;
use crate::screen::words::retry_of;
use crate::target::ItemPlace;

/// `pending`, `running`, `waiting`, `held`, `succeeded`, `dead`, `skipped` or `missing`; and why, if it ended so.
pub(super) fn word(job: &Job, (step, item): ItemPlace) -> (&'static str, Option<Reason>) {
    match job.item(step, item) {
        None | Some(Item::Pending) => ("pending", None),
        Some(Item::Active(active)) => match active.doing {
            Doing::Running(_) => ("running", None),
            Doing::Waiting(_) | Doing::Undecided => ("waiting", None),
            Doing::Held => ("held", None),
        },
        Some(Item::Settled(Settled::Succeeded)) => ("succeeded", None),
        Some(Item::Settled(Settled::Dead(reason))) => ("dead", Some(reason)),
        Some(Item::Settled(Settled::Skipped(reason))) => ("skipped", Some(reason)),
        Some(Item::Settled(Settled::Missing(reason))) => ("missing", Some(reason)),
    }
}

/// When an item that waits goes on; nothing if it waits for a slot only.
pub(super) fn due(job: &Job, (step, item): ItemPlace) -> Option<Timestamp> {
    match job.active(step, item)?.doing {
        Doing::Waiting(due) if due > Timestamp::ZERO => Some(due),
        _ => None,
    }
}

/// The same in a sentence. `is_there` says whether somebody runs the job, `story` whether what is to
/// be said of a hold follows.
pub(super) fn sentence(
    job: &Job,
    breakers: &Admission,
    place: ItemPlace,
    now: Timestamp,
    is_there: bool,
    story: bool,
) -> String {
    let (step, item) = place;
    let unless = if is_there || job.stage.has_ended() {
        String::new()
    } else {
        format!("; nobody runs the job: undaunted resume {}", job.id())
    };
    let active = job.active(step, item);
    match (word(job, place), active) {
        (("pending" | "missing", reason), _) if left_out(job, step).is_some() => {
            let why = left_out(job, step).unwrap_or_default();
            let reason = reason.map(|reason| format!(" ({reason})"));
            format!("not waited for{}: {why}", reason.unwrap_or_default())
        }
        (("pending", _), _) if job.stage.has_ended() => "it was never started".to_owned(),
        (("pending", _), _) => format!("it was not started yet{unless}"),
        (("running", _), Some(active)) => {
            format!("attempt {} runs{unless}", active.attempts)
        }
        (("waiting", _), Some(active)) => {
            let what = match active.progress().retries {
                0 => "the first attempt".to_owned(),
                retry => {
                    let command = job.plan().command(active.command);
                    let bound = command.map(|it| it.retry.policy.bound());
                    retry_of(retry, bound.and_then(undaunted_policy::Attempts::retries))
                }
            };
            match due(job, place) {
                Some(due) if due > now => {
                    format!(
                        "waits for {what}, due in {} at {}{unless}",
                        short(due.since(now)),
                        rfc3339(due)
                    )
                }
                Some(due) => format!("waits for {what}, due since {}{unless}", rfc3339(due)),
                None => format!("waits for a free slot for {what}{unless}"),
            }
        }
        (("held", _), Some(_)) => match holding(job, breakers, step, item) {
            Some(held) if story => format!("{}{unless}", holds::shortly(&held, now)),
            Some(held) => format!("{}{unless}", holds::sentence(job, breakers, &held, now)),
            None => format!("held{unless}"),
        },
        ((word, Some(reason)), _) => {
            let word = match word {
                "dead" => "a dead letter",
                word => word,
            };
            format!("{word} ({reason}): {}", reason.sentence())
        }
        ((word, None), _) => word.to_owned(),
    }
}

/// Why a step was complete without some of its items, if it was.
fn left_out(job: &Job, step: u32) -> Option<String> {
    let reached = job.step(step)?.reached?;
    Some(format!(
        "the step was complete without it, {}",
        reached.completion().reason
    ))
}
