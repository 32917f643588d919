//! Drives a job with every input, whatever its journal was.
//!
//! Inputs come now and at the end of time. What follows from an input ends, is written as it was decided, and
//! leaves a job that accepts the next input.

use undaunted_engine::breaker::{AdmissionControl, BreakerAnswer};
use undaunted_engine::decide::{advance, decide, react};
use undaunted_engine::effect::{ask_breaker, awaits_rule, next_wake, ready, wanted};
use undaunted_engine::event::{NewItem, Record};
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::{Job, Plans};
use undaunted_engine::law::{violations_by_record, violations_in_state};
use undaunted_engine::task::{
    TaskWork, TokenStatus, ValueFiles, as_uuid, correlation_id, find_token, input_task, task,
};
use undaunted_policy::{FailureCause, Reason, Timestamp};

use super::byte_source::LONGEST;
use super::law::uphold;
use super::record::reread;

const FEW: usize = 4;

/// Applies every input, first each on its own, then all in sequence.
pub(super) fn drive(job: &Job) {
    for now in [job.times.last_at, Timestamp::MAX] {
        ask(job, now);
        for input in inputs(job, now) {
            let next = feed(job, &input, now);
            ask(&next, now);
        }
        let mut all = job.clone();
        for input in inputs(job, now) {
            all = feed(&all, &input, now);
        }
    }
}

/// Unused breakers of a job.
pub(super) fn admission_of(job: &Job, now: Timestamp) -> AdmissionControl {
    let mut breakers = AdmissionControl::with_breakers(job.plan().breakers());
    breakers.tick(now);
    breakers
}

/// The answer of the breaker before the next command of an item. The origin of a request is not resolved.
pub(super) fn gate_of(job: &Job, breakers: &mut AdmissionControl, place: ItemId) -> BreakerAnswer {
    let active = job.active(place).map(|it| it.command);
    let command = active.or_else(|| job.plan().first(place.step));
    let command = command.and_then(|it| job.plan().command(it));
    let Some(breaker) = command.and_then(|it| it.breaker.as_deref()) else {
        return BreakerAnswer::NoBreaker;
    };
    let name = breaker.name.as_deref().unwrap_or("http://here.test");
    ask_breaker(job, breakers, place, &name.into())
}

fn started(job: &Job, now: Timestamp) -> Vec<ItemId> {
    ready(job, &admission_of(job, now), now)
}

fn ask(job: &Job, now: Timestamp) {
    let _ = wanted(job);
    let _ = awaits_rule(job);
    let _ = next_wake(job, now);
    let _ = violations_in_state(job);
    let running = job.starts.running.values().copied();
    let asked = running.take(FEW).chain(started(job, now).into_iter().take(FEW));
    for item in asked {
        let _ = correlation_id(job, item);
        let Ok(Some(task)) = task(job, item, ValueFiles::default(), now) else {
            continue;
        };
        match task.work {
            TaskWork::Flow(flow) => {
                let _ = flow.submission(job, &Plans::default());
            }
            TaskWork::Run { argv } => uphold("a program has a name", !argv.is_empty(), &argv),
            TaskWork::Call(_) | TaskWork::Function(_) | TaskWork::Write { .. } => {}
        }
    }
    for step in StepId::all().zip(&job.steps).map(|(step, _)| step).take(FEW) {
        // It may be refused, but must not panic.
        drop(input_task(job, step, ValueFiles::default()));
        let name = job.plan().step(step).map_or("", |step| &step.name);
        let found = find_token(job, name, &as_uuid("0123"));
        uphold("a token that was not given out is unknown", found == TokenStatus::Unknown, &found);
    }
}

fn inputs(job: &Job, now: Timestamp) -> Vec<Input> {
    let dead: Vec<ItemId> = job.dead.keys().copied().collect();
    let mut inputs = vec![
        Input::Resume { last_seen: None },
        Input::Resume { last_seen: Some(now) },
        Input::Woke,
        Input::Pause,
        Input::Unpause,
        Input::TopUp { retries: u32::MAX },
    ];
    let mut breakers = admission_of(job, now);
    for item in started(job, now).into_iter().take(FEW) {
        inputs.push(Input::Start { item, refused: None, gate: gate_of(job, &mut breakers, item) });
    }
    for &start in job.starts.running.keys().take(FEW) {
        inputs.push(Input::Accepted { start });
        for failure in [None, Some(FailureCause::Timeout), Some(FailureCause::Exit(127))] {
            inputs.push(Input::Ended(Box::new(AttemptEnd {
                start,
                failure,
                took: LONGEST,
                output: Some("{\"a\": 1}".to_owned()),
                retry_after: Some(LONGEST),
                ..AttemptEnd::default()
            })));
        }
    }
    for step in StepId::all().zip(&job.steps).map(|(step, _)| step).take(FEW) {
        let item = NewItem { identity: "again".to_owned(), input: "7".to_owned() };
        let items = vec![item.clone(), item];
        inputs.push(Input::ItemsRead { step, items, warning: None });
        inputs.push(Input::InputFailed {
            step,
            reason: Reason::Permanent,
            error: String::new(),
            stderr: None,
        });
    }
    inputs.extend([
        Input::Redrive { items: dead.clone(), reduce: true, every: None },
        Input::Drop { items: dead },
        Input::Suspend,
        Input::Cancel,
    ]);
    inputs
}

fn feed(job: &Job, input: &Input, now: Timestamp) -> Job {
    check_termination(job, input, now);
    let mut next = job.clone();
    let records = react(&mut next, input, now).records;
    let mut folded = job.clone();
    for record in &records {
        // A journal that was broken before may break laws here; asking must not panic.
        let _ = violations_by_record(&folded, record);
        // Sums of more than 584 years saturate, so bytes are compared.
        let written = record.encode();
        let read = reread(&written, Record::decode, Record::encode);
        uphold("a decided event can be written", read.is_some_and(|read| read.encode() == written), record);
        folded.apply(record);
    }
    uphold(
        "folding the records gives the state that was decided",
        folded.stage == next.stage && folded.starts.running == next.starts.running,
        &(input, &records),
    );
    next
}

/// Follow-up events are bounded by the number of items and steps.
fn check_termination(job: &Job, input: &Input, now: Timestamp) {
    let items: usize = job.steps.iter().map(|step| step.items.iter().count()).sum();
    let most = items.saturating_add(job.steps.len()).saturating_add(8).saturating_mul(8);
    let mut job = job.clone();
    let mut events = decide(&job, input, now);
    let mut rounds = 0_usize;
    while !events.is_empty() {
        rounds += 1;
        uphold("follow-up events end", rounds <= most, &(input, &events));
        for event in events {
            job.apply(&Record { at: now, event });
        }
        events = advance(&job, now);
    }
}
