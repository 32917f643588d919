//! The one entrance: each input to its own file.

use undaunted_policy::{PoolLimits, Reason, Timestamp};

use super::{ended, facts::Facts, hold, items, redrive, resume, start};
use crate::event::Event;
use crate::input::Input;
use crate::job::{Job, Stage};

/// What happens because of an input. Reads nothing else; what comes too late or twice has no
/// consequence.
#[must_use]
pub fn decide(job: &Job, input: &Input, now: Timestamp) -> Vec<Event> {
    let mut facts = Facts::new(job, now);
    match input {
        Input::Redrive { items, reduce } => redrive::redrive(&mut facts, items, *reduce),
        Input::Drop { items } => redrive::forget(&mut facts, items),
        Input::TopUp { retries } => top_up(&mut facts, *retries),
        // Nothing else happens to a job that has ended.
        _ if job.stage.has_ended() => {}
        Input::Resume { seen } => resume::resume(&mut facts, *seen),
        Input::Start {
            step,
            item,
            refused,
            gate,
        } => start::start(&mut facts, (*step, *item), refused.as_deref(), gate),
        Input::Ended(end) => ended::ended(&mut facts, end),
        Input::Accepted { start } => ended::accepted(&mut facts, *start),
        Input::ItemsRead { step, items } => items::read(&mut facts, *step, items),
        Input::InputFailed {
            step,
            reason,
            error,
            stderr,
        } => items::failed(&mut facts, *step, *reason, error, *stderr),
        Input::Woke => woke(&mut facts),
        Input::Cancel => {
            if job.is_stopping() != Some(Reason::Cancelled) {
                facts.push(Event::JobStopping {
                    reason: Reason::Cancelled,
                });
            }
        }
        Input::Suspend => {
            if job.stage == Stage::Running && !job.has_running_here() {
                facts.push(Event::JobSuspended);
            }
        }
        Input::Pause => {
            if job.paused.is_none() {
                facts.push(Event::JobPaused);
            }
        }
        Input::Unpause => {
            if let Some(since) = job.paused {
                // The time of a suspended job stands still already.
                let until = match job.stage {
                    Stage::Suspended => job.run_until,
                    _ => now,
                };
                let away = until.since(since);
                facts.push(Event::JobUnpaused { away });
            }
        }
        Input::Update { text, changes } => facts.push(Event::PolicyChanged {
            text: text.clone(),
            changes: changes.clone(),
        }),
    }
    facts.into_events()
}

/// Time has passed: the job's may be up, or that of a result or a hold.
fn woke(facts: &mut Facts<'_>) {
    let (job, now) = (facts.job, facts.now);
    if job.stage != Stage::Running {
        return;
    }
    if job.deadline().is_some_and(|end| end <= now) {
        let reason = Reason::Deadline;
        return facts.push(Event::JobStopping { reason });
    }
    ended::expire(facts);
    if job.paused.is_none() {
        hold::expire(facts);
    }
}

fn top_up(facts: &mut Facts<'_>, retries: u32) {
    let Some(mut pool) = facts.job.pool else {
        return;
    };
    let ceilings = facts.job.ceilings();
    let added = pool.top_up(retries, &ceilings);
    // An item's share of a small pool is small; of a larger one it is what was asked for.
    let asked = facts.job.workflow().pool.map_or(0, |asked| asked.per_item);
    let share = PoolLimits::effective(pool.limits.total, asked, &ceilings).per_item;
    if added > 0 {
        facts.push(Event::PoolToppedUp {
            asked: retries,
            added,
            total: pool.limits.total,
            per_item: Some(share.max(pool.limits.per_item)),
        });
    }
}
