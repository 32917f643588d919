//! What follows from the state of a flow: steps start when their required attributes are known, set their
//! outputs, and reach the goals or become unreachable.

use undaunted_policy::{Reason, Timestamp};

use super::advance::{completed, dropped, ending, reached};
use super::inputs::records_of;
use crate::event::{CompletionReached, Event, JobEvent, StepEvent, StoredText};
use crate::flow::{Readiness, items, outputs, predicate_arguments, readiness};
use crate::id::StepId;
use crate::job::{Job, StepStage, StepState};

pub(super) fn advance(job: &Job, now: Timestamp) -> Vec<Event> {
    if job.has_missed_a_goal() {
        return give_up(job, now);
    }
    for (step, state) in job.open_steps() {
        let events = match state.stage {
            StepStage::Waiting => start(job, step),
            StepStage::Reading(_) => read(job, step),
            StepStage::Running => settle(job, step, state, now),
            StepStage::Completed | StepStage::Failed | StepStage::Skipped => Vec::new(),
        };
        if !events.is_empty() {
            return events;
        }
    }
    let done = |step: StepId| {
        let stage = job.step(step).map(|state| state.stage);
        matches!(stage, Some(StepStage::Completed | StepStage::Skipped))
    };
    let busy = job.busy_steps().next().is_some();
    if job.goals().all(done) && !busy {
        return vec![completed(job)];
    }
    Vec::new()
}

/// Ends a flow that has missed a goal: starts nothing new and lets attempts finish. A step whose items all
/// succeed until then is completed and sets its attributes.
fn give_up(job: &Job, now: Timestamp) -> Vec<Event> {
    let dropped: Vec<Event> = job.busy_steps().flat_map(|(step, state)| dropped(job, step, state)).collect();
    if !dropped.is_empty() {
        return dropped;
    }
    let running = job.open_steps().filter(|(_, state)| state.stage == StepStage::Running);
    let mut settled = running.map(|(step, state)| settle(job, step, state, now));
    if let Some(events) = settled.find(|events| !events.is_empty()) {
        return events;
    }
    if job.has_running() {
        return Vec::new();
    }
    let is_open = |stage| matches!(stage, StepStage::Running | StepStage::Reading(_));
    let open = job.open_steps().filter(|(_, state)| is_open(state.stage));
    let mut events: Vec<Event> = open.map(|(step, _)| Event::Step(StepEvent::Failed { step })).collect();
    events.push(Event::Job(JobEvent::Failed(Box::new(ending(job)))));
    events
}

fn start(job: &Job, step: StepId) -> Vec<Event> {
    match readiness(job, step) {
        Readiness::Waits => Vec::new(),
        Readiness::Unreachable(missing) => {
            vec![Event::Step(StepEvent::Unreachable { step, missing })]
        }
        Readiness::Ready => {
            let call = job.plan().call(step);
            let predicate = call.and_then(|call| call.predicate.as_ref());
            let started = Event::Step(StepEvent::Started { step, start: None });
            match predicate.map(|predicate| predicate.holds(&predicate_arguments(job, step))) {
                Some(Ok(false)) => vec![Event::Step(StepEvent::Skipped { step })],
                Some(Err(error)) => vec![started, failed(step, error)],
                None | Some(Ok(true)) => vec![started],
            }
        }
    }
}

fn read(job: &Job, step: StepId) -> Vec<Event> {
    match items(job, step) {
        Ok(items) => records_of(step, &items, None),
        Err(error) => vec![failed(step, error)],
    }
}

fn failed(step: StepId, error: String) -> Event {
    Event::Step(StepEvent::InputFailed {
        step,
        reason: Reason::Permanent,
        error: StoredText::Itself(error),
        stderr: None,
    })
}

fn settle(job: &Job, step: StepId, state: &StepState, now: Timestamp) -> Vec<Event> {
    let rule = job.plan().rule(step).filter(|_| state.reached.is_none());
    if let Some(rule) = rule {
        let completion = reached(step, state, rule, now);
        if rule.best_effort || completion.is_some() {
            return completion.into_iter().collect();
        }
    }
    let dropped: Vec<Event> = dropped(job, step, state).collect();
    let left = state.redriven.is_empty() && job.leaves(step);
    let (done, met) = match state.reached.filter(CompletionReached::is_best_effort) {
        // Below its minimum the step gives what is there, and the job is partial.
        Some(_) => (left || !state.is_busy(), true),
        None if state.dead > state.forgiven => (state.running == 0, false),
        // After a redrive some items may still be dead or dropped.
        None => {
            let all = state.items.len();
            (state.settled() >= all, state.succeeded >= all)
        }
    };
    match (dropped.is_empty() && done, met) {
        (true, true) => complete(job, step),
        (true, false) => vec![Event::Step(StepEvent::Failed { step })],
        (false, _) => dropped,
    }
}

fn complete(job: &Job, step: StepId) -> Vec<Event> {
    // An attribute keeps its first value. Only the step that set it may replace it: after a redrive it has more.
    let is_taken = |name: &str| job.attributes.get(name).is_some_and(|known| known.step != Some(step));
    let attributes = outputs(job, step).into_iter().map(|(name, value)| {
        let unused = is_taken(&name).then_some(true);
        Event::Step(StepEvent::AttributeSet { step, name, value: value.to_string(), unused })
    });
    attributes.chain([Event::Step(StepEvent::Completed { step })]).collect()
}
