//! [`decide`]: answers each kind of input in its own file.

use undaunted_policy::{PoolLimits, Reason, Timestamp};

use super::{builder::DecisionBuilder, ended, hold, inputs, redrive, resume, start};
use crate::event::{Event, JobEvent};
use crate::input::Input;
use crate::job::{Job, JobStage};

/// State, input and time in; events out. A late or repeated input gives no events.
pub fn decide(job: &Job, input: &Input, now: Timestamp) -> Vec<Event> {
    if job.stage.has_ended() && !input.is_for_ended_jobs() {
        return Vec::new();
    }
    let mut decision = DecisionBuilder::new(job, now);
    match input {
        Input::Redrive { items, reduce } => redrive::redrive(&mut decision, items, *reduce),
        Input::Drop { items } => redrive::forget(&mut decision, items),
        Input::TopUp { retries } => top_up(&mut decision, *retries),
        Input::Resume { seen } => resume::resume(&mut decision, *seen),
        Input::Start { item, refused, gate } => start::start(&mut decision, *item, refused.as_deref(), gate),
        Input::Ended(end) => ended::ended(&mut decision, end),
        Input::Accepted { start } => ended::accepted(&mut decision, *start),
        Input::ItemsRead { step, items } => inputs::read(&mut decision, *step, items),
        Input::InputFailed { step, reason, error, stderr } => {
            inputs::failed(&mut decision, *step, *reason, error, *stderr);
        }
        Input::Woke => woke(&mut decision),
        Input::Cancel => {
            if job.is_stopping() != Some(Reason::Cancelled) {
                decision.push(JobEvent::Stopping { reason: Reason::Cancelled });
            }
        }
        Input::Suspend => {
            if job.stage == JobStage::Running && !job.has_running_here() {
                decision.push(JobEvent::Suspended);
            }
        }
        Input::Pause => {
            if job.times.paused.is_none() {
                decision.push(JobEvent::Paused);
            }
        }
        Input::Unpause => {
            if let Some(since) = job.times.paused {
                // The clock of a suspended job already stands still.
                let until = if job.stage == JobStage::Suspended { job.times.run_until } else { now };
                let away = until.since(since);
                decision.push(JobEvent::Unpaused { away });
            }
        }
        Input::Update { text, changes } => {
            decision.push(JobEvent::PolicyChanged { text: text.clone(), changes: changes.clone() });
        }
    }
    decision.into_events()
}

/// The deadline of the job, of an accepted attempt or of a hold may have passed.
fn woke(decision: &mut DecisionBuilder<'_>) {
    let (job, now) = (decision.job, decision.now);
    if job.stage != JobStage::Running {
        return;
    }
    if job.deadline().is_some_and(|end| end <= now) {
        return decision.push(JobEvent::Stopping { reason: Reason::Deadline });
    }
    ended::expire(decision);
    if job.times.paused.is_none() {
        hold::expire(decision);
    }
}

fn top_up(decision: &mut DecisionBuilder<'_>, retries: u32) {
    let Some(mut pool) = decision.job.pool else { return };
    let ceilings = decision.job.ceilings();
    let added = pool.top_up(retries, &ceilings);
    // A small pool limits the item cap; a larger pool allows the cap that the workflow asks for.
    let declared = decision.job.workflow().pool.map_or(0, |pool| pool.per_item);
    let share = PoolLimits::effective(pool.limits.total, declared, &ceilings).per_item;
    if added > 0 {
        decision.push(JobEvent::PoolToppedUp {
            asked: retries,
            added,
            total: pool.limits.total,
            per_item: Some(share.max(pool.limits.per_item)),
        });
    }
}
