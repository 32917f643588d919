//! The histories of items, folded from their events.
//!
//! The fold of the job itself keeps only the state for the next decision. Histories are kept for requested items
//! only, so that one item of a million costs as much as one item.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use undaunted_policy::{FailureCause, FailureClass, Reason, RetryConfig, Timestamp};

use crate::event::{
    AttemptFailed, AttemptId, BreakerPass, CommandStopped, Event, ItemEvent, JobEvent, Record,
    RetryScheduled, SpooledPart, StartHeld, TimeLimit, codec,
};
use crate::id::{CommandId, ItemId};
use crate::job::Job;
use crate::stored::stored;
use crate::workflow::StepPhase;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histories {
    wanted: FollowedItems,
    pub items: BTreeMap<ItemId, History>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum FollowedItems {
    #[default]
    None,
    All,
    Some(BTreeSet<ItemId>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    pub attempts: Vec<PastAttempt>,
    pub stops: Vec<StopRecord>,
    pub mends: Vec<HandlerSuccess>,
    pub holds: Vec<BreakerHold>,
    pub end: Option<ItemEnd>,
    /// The end as a dead letter, if that was dropped since.
    pub letter: Option<ItemEnd>,
    /// The result, if the step was complete without the item.
    pub late: Option<LateEnd>,
    /// The result that arrived while the item waited for a retry.
    pub arrived: Option<OvertakingResult>,
    /// Counted from 1.
    pub round: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PastAttempt {
    pub of: AttemptId,
    pub round: u32,
    pub began: Timestamp,
    pub pass: Option<BreakerPass>,
    pub outcome: Option<AttemptOutcome>,
    pub retry: Option<RetryScheduled>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AttemptOutcome {
    pub at: Timestamp,
    pub took: Duration,
    pub failure: Option<AttemptFailure>,
    pub stdout: Option<SpooledPart>,
    pub stderr: Option<SpooledPart>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AttemptFailure {
    pub cause: FailureCause,
    /// The time limit that was exceeded.
    pub limit: Option<TimeLimit>,
    pub class: FailureClass,
    /// Row of the rule table that decided, from 0.
    pub rule: Option<u32>,
    /// That row at the time, as a workflow would have it.
    pub row: Option<Value>,
    /// The last lines of error output, or another explanation.
    pub error: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StopRecord {
    pub at: Timestamp,
    pub stopped: CommandStopped,
}

/// A handler has succeeded; `of` is the last attempt of its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerSuccess {
    pub of: AttemptId,
    pub at: Timestamp,
    /// Whether the command gets one more attempt; if not, the item continues without it.
    pub again: bool,
}

/// A result that arrived while its item waited for a retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OvertakingResult {
    /// The last attempt made.
    pub of: AttemptId,
    pub at: Timestamp,
    /// `None` if it was a success.
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BreakerHold {
    pub at: Timestamp,
    pub held: StartHeld,
    /// The instant of the release, and the time on hold.
    pub released: Option<(Timestamp, Duration)>,
}

stored! {
    /// The result of an item after its step was complete without it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LateEnd {
        pub at: Timestamp = 0 with "codec::time",
        /// `None` if it succeeded.
        pub reason: Option<Reason> = 1 with "codec::maybe_reason" has_nil,
        pub counted: bool = 2,
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ItemEnd {
    pub at: Timestamp,
    /// `None` if it succeeded.
    pub reason: Option<Reason>,
    pub error: Option<String>,
    pub dead: bool,
    /// The attempts until then. Later ones belong to an item of a flow that was skipped with its step and restarted
    /// by a redrive.
    pub attempts: usize,
}

impl Histories {
    pub fn of_all() -> Self {
        Self { wanted: FollowedItems::All, items: BTreeMap::new() }
    }

    pub fn of(wanted: BTreeSet<ItemId>) -> Self {
        Self { wanted: FollowedItems::Some(wanted), items: BTreeMap::new() }
    }

    fn wants(&self, item: ItemId) -> bool {
        match &self.wanted {
            FollowedItems::None => false,
            FollowedItems::All => true,
            FollowedItems::Some(items) => items.contains(&item),
        }
    }

    /// Folds a record. Only the plan and the texts of the job are read: it may be ahead of the record, unless the
    /// plan has changed since.
    pub fn take(&mut self, job: &Job, record: &Record) {
        if let Event::Job(JobEvent::Redriven { reduce: true }) = &record.event {
            self.begin_again(job);
        }
        let Event::Item(event) = &record.event else {
            return;
        };
        let item = event.item();
        // Only a start that has begun is part of what happened to an item.
        let is_reservation =
            matches!(event, ItemEvent::StartReserved(_) | ItemEvent::ReservationWithdrawn(_));
        if is_reservation || !self.wants(item) {
            return;
        }
        let history = self.items.entry(item).or_insert_with(|| History { round: 1, ..History::default() });
        history.take(job, event, record.at);
    }

    /// The reduce steps run again in a new round.
    fn begin_again(&mut self, job: &Job) {
        for (item, history) in &mut self.items {
            let step = job.plan().step(item.step);
            if step.is_some_and(|step| step.phase == StepPhase::Reduce) {
                history.round = history.round.saturating_add(1);
                history.end = None;
            }
        }
    }
}

impl History {
    fn take(&mut self, job: &Job, event: &ItemEvent, at: Timestamp) {
        match event {
            ItemEvent::AttemptStarted(started) => self.attempts.push(PastAttempt {
                of: started.of,
                round: self.round,
                began: started.began.unwrap_or(at),
                pass: started.pass.clone(),
                outcome: None,
                retry: None,
            }),
            ItemEvent::AttemptSucceeded(done) => self.ended(
                done.of,
                AttemptOutcome {
                    at,
                    took: done.took,
                    failure: None,
                    stdout: done.stdout,
                    stderr: done.stderr,
                },
            ),
            ItemEvent::AttemptFailed(failed) => self.failed(job, failed, at),
            ItemEvent::RetryScheduled(retrying) => {
                if let Some(attempt) = self.attempts.last_mut() {
                    attempt.retry = Some(**retrying);
                }
            }
            ItemEvent::CommandStopped(stopped) => {
                self.stops.push(StopRecord { at, stopped: CommandStopped::clone(stopped) });
            }
            ItemEvent::CommandRepeated { of } => self.mend(*of, at, true),
            ItemEvent::CommandRecovered { of, .. } => self.mend(*of, at, false),
            ItemEvent::Succeeded { .. } => self.end(at, None, None, false),
            ItemEvent::Skipped { reason, .. } => self.end(at, Some(*reason), None, false),
            ItemEvent::Redriven { .. } => {
                self.round = self.round.saturating_add(1);
                self.end = None;
                self.arrived = None;
            }
            ItemEvent::Dropped { .. } => {
                self.letter = self.end.take();
                self.end(at, Some(Reason::NotSelected), None, false);
            }
            ItemEvent::DeadLettered { reason, error, .. } => {
                let error = job.texts.read(error).to_owned();
                self.end(at, Some(*reason), Some(error), true);
            }
            ItemEvent::Held(held) => {
                self.holds.push(BreakerHold { at, held: StartHeld::clone(held), released: None });
            }
            ItemEvent::Released(released) => {
                if let Some(hold) = self.holds.last_mut() {
                    hold.released = Some((at, released.held));
                }
            }
            ItemEvent::LateResult(late) => {
                self.late = Some(LateEnd { at, reason: late.reason, counted: late.counted });
            }
            ItemEvent::ResultArrived(arrived) => {
                let error = arrived.error.as_ref().map(|error| job.texts.read(error).to_owned());
                self.arrived = Some(OvertakingResult { of: arrived.of, at, error });
            }
            // Views show the start of the attempt.
            ItemEvent::AttemptAccepted { .. }
            | ItemEvent::StartReserved(_)
            | ItemEvent::ReservationWithdrawn(_) => {}
        }
    }

    fn failed(&mut self, job: &Job, failed: &AttemptFailed, at: Timestamp) {
        let error = failed.error.as_ref();
        let error = error.map(|error| job.texts.read(error).to_owned());
        let failure = AttemptFailure {
            cause: failed.cause,
            limit: failed.limit,
            class: failed.class,
            rule: failed.rule,
            row: failed.rule.and_then(|row| rule(job, failed.of.command, row)),
            error: error.unwrap_or_default(),
        };
        let outcome = AttemptOutcome {
            at,
            took: failed.took,
            failure: Some(failure),
            stdout: failed.stdout,
            stderr: failed.stderr,
        };
        self.ended(failed.of, outcome);
    }

    fn ended(&mut self, of: AttemptId, outcome: AttemptOutcome) {
        let mut attempts = self.attempts.iter_mut().rev();
        if let Some(attempt) = attempts.find(|attempt| attempt.of == of) {
            attempt.outcome = Some(outcome);
        }
    }

    fn mend(&mut self, of: AttemptId, at: Timestamp, again: bool) {
        self.mends.push(HandlerSuccess { of, at, again });
    }

    fn end(&mut self, at: Timestamp, reason: Option<Reason>, error: Option<String>, dead: bool) {
        self.end = Some(ItemEnd { at, reason, error, dead, attempts: self.attempts.len() });
    }
}

/// A row of the rule table of a command, as a workflow would have it.
fn rule(job: &Job, command: CommandId, row: u32) -> Option<Value> {
    let policy = &job.plan().command(command)?.retry.policy;
    let config = serde_json::to_value(RetryConfig::from(policy)).ok()?;
    let row = usize::try_from(row).ok()?;
    config.get("rules")?.get(row).cloned()
}
