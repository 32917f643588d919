//! Dispatches each input to its own file.

use undaunted_policy::{PoolLimits, Reason, Timestamp};

use super::{ended, facts::Facts, hold, items, redrive, resume, start};
use crate::event::{Event, JobEvent};
use crate::input::Input;
use crate::job::{Job, JobStage};

/// State, input and time in; events out. A late or repeated input has no consequence.
pub fn decide(job: &Job, input: &Input, now: Timestamp) -> Vec<Event> {
    let mut facts = Facts::new(job, now);
    if job.stage.has_ended() && !input.is_for_ended_jobs() {
        return Vec::new();
    }
    match input {
        Input::Redrive { items, reduce } => redrive::redrive(&mut facts, items, *reduce),
        Input::Drop { items } => redrive::forget(&mut facts, items),
        Input::TopUp { retries } => top_up(&mut facts, *retries),
        Input::Resume { seen } => resume::resume(&mut facts, *seen),
        Input::Start { item, refused, gate } => start::start(&mut facts, *item, refused.as_deref(), gate),
        Input::Ended(end) => ended::ended(&mut facts, end),
        Input::Accepted { start } => ended::accepted(&mut facts, *start),
        Input::ItemsRead { step, items } => items::read(&mut facts, *step, items),
        Input::InputFailed { step, reason, error, stderr } => {
            items::failed(&mut facts, *step, *reason, error, *stderr);
        }
        Input::Woke => woke(&mut facts),
        Input::Cancel => {
            if job.is_stopping() != Some(Reason::Cancelled) {
                facts.push(JobEvent::Stopping { reason: Reason::Cancelled });
            }
        }
        Input::Suspend => {
            if job.stage == JobStage::Running && !job.has_running_here() {
                facts.push(JobEvent::Suspended);
            }
        }
        Input::Pause => {
            if job.times.paused.is_none() {
                facts.push(JobEvent::Paused);
            }
        }
        Input::Unpause => {
            if let Some(since) = job.times.paused {
                // The clock of a suspended job already stands still.
                let until = if job.stage == JobStage::Suspended { job.times.run_until } else { now };
                let away = until.since(since);
                facts.push(JobEvent::Unpaused { away });
            }
        }
        Input::Update { text, changes } => {
            facts.push(JobEvent::PolicyChanged { text: text.clone(), changes: changes.clone() });
        }
    }
    facts.into_events()
}

/// The deadline of the job, of an accepted attempt or of a hold may have passed.
fn woke(facts: &mut Facts<'_>) {
    let (job, now) = (facts.job, facts.now);
    if job.stage != JobStage::Running {
        return;
    }
    if job.deadline().is_some_and(|end| end <= now) {
        let reason = Reason::Deadline;
        return facts.push(JobEvent::Stopping { reason });
    }
    ended::expire(facts);
    if job.times.paused.is_none() {
        hold::expire(facts);
    }
}

fn top_up(facts: &mut Facts<'_>, retries: u32) {
    let Some(mut pool) = facts.job.pool else {
        return;
    };
    let ceilings = facts.job.ceilings();
    let added = pool.top_up(retries, &ceilings);
    // An item's share of a small pool is small; of a larger one it is what the workflow asked for.
    let asked = facts.job.workflow().pool.map_or(0, |asked| asked.per_item);
    let share = PoolLimits::effective(pool.limits.total, asked, &ceilings).per_item;
    if added > 0 {
        facts.push(JobEvent::PoolToppedUp {
            asked: retries,
            added,
            total: pool.limits.total,
            per_item: Some(share.max(pool.limits.per_item)),
        });
    }
}
