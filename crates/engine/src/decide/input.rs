//! [`decide`]: answers each kind of input in its own file.

use undaunted_policy::{Reason, Timestamp};

use super::{draft::EventDraft, ended, hold, inputs, late, redrive, reserve, resume, start, update};
use crate::event::{Event, JobEvent};
use crate::input::Input;
use crate::job::{Job, JobStage};
use crate::workflow::PoolRequest;

/// State, input and time in; events out. A late or repeated input gives no events.
pub fn decide(job: &Job, input: &Input, now: Timestamp) -> Vec<Event> {
    if job.stage.has_ended() && !input.is_for_ended_jobs() {
        return Vec::new();
    }
    let mut draft = EventDraft::new(job, now);
    match input {
        Input::Redrive { items, reduce, every } => redrive::redrive(&mut draft, items, *reduce, *every),
        Input::Drop { items } => redrive::forget(&mut draft, items),
        Input::TopUp { retries } => top_up(&mut draft, *retries),
        Input::Resume { last_seen: seen } => resume::resume(&mut draft, *seen),
        Input::Start { item, refused, gate } => start::start(&mut draft, *item, refused.as_deref(), gate),
        Input::Reserve { item } => reserve::reserve(&mut draft, *item),
        Input::Begun { start, at } => reserve::begun(&mut draft, *start, *at),
        Input::NotBegun { start } => reserve::not_begun(&mut draft, *start),
        Input::Ended(end) => ended::ended(&mut draft, end),
        Input::Accepted { start } => ended::accepted(&mut draft, *start),
        Input::ResultArrived { item, result } => ended::result_arrived(&mut draft, *item, result),
        Input::ItemsRead { step, items, warning } => {
            inputs::read(&mut draft, *step, items, warning.as_deref());
        }
        Input::InputFailed { step, reason, error, stderr } => {
            inputs::failed(&mut draft, *step, *reason, error, *stderr);
        }
        Input::Late { item, result } => late::arrived(&mut draft, *item, result),
        Input::Woke => woke(&mut draft),
        Input::Cancel => {
            if job.is_stopping() != Some(Reason::Cancelled) {
                draft.push(JobEvent::Stopping { reason: Reason::Cancelled });
            }
        }
        Input::Suspend => {
            if job.stage == JobStage::Running && !job.has_running_here() {
                draft.push(JobEvent::Suspended);
            }
        }
        Input::Pause => {
            if job.times.paused.is_none() {
                draft.push(JobEvent::Paused);
            }
        }
        Input::Unpause => {
            if let Some(since) = job.times.paused {
                // The clock of a suspended job already stands still.
                let until = if job.stage == JobStage::Suspended { job.times.run_until } else { now };
                let away = until.since(since);
                draft.push(JobEvent::Unpaused { away });
            }
        }
        Input::Update { text, changes } => update::update(&mut draft, text, changes),
    }
    draft.into_events()
}

/// The deadline of the job, of an accepted attempt or of a hold may have passed.
fn woke(draft: &mut EventDraft<'_>) {
    let (job, now) = (draft.job, draft.now);
    if job.stage != JobStage::Running {
        return;
    }
    if job.deadline().is_some_and(|end| end <= now) {
        return draft.push(JobEvent::Stopping { reason: Reason::Deadline });
    }
    ended::expire(draft);
    if job.times.paused.is_none() {
        hold::expire(draft);
    }
}

fn top_up(draft: &mut EventDraft<'_>, retries: u32) {
    let Some(mut pool) = draft.job.pool else { return };
    let ceilings = draft.job.ceilings();
    let added = pool.top_up(retries, &ceilings);
    // A small pool limits the item cap; a larger pool allows the cap that the workflow asks for.
    let declared = draft.job.workflow().pool.unwrap_or_default();
    let topped_up = PoolRequest { total: pool.limits.total.into(), ..declared };
    let share = topped_up.limits(&ceilings).per_item;
    if added > 0 {
        draft.push(JobEvent::PoolToppedUp {
            asked: retries,
            added,
            total: pool.limits.total,
            per_item: Some(share.max(pool.limits.per_item)),
        });
    }
}
