//! Everything that happened to some items, put together from their events.
//!
//! A fold over records beside the job's own: the state keeps what the next decision needs, and here
//! is the past. Only the items somebody asks about are kept, so that one item of a million costs
//! what one item costs.

use std::collections::BTreeMap;
use std::time::Duration;

use undaunted_policy::{Cause, Class, Reason, Timestamp};

use crate::event::{AttemptFailed, AttemptId, Event, ItemEvent, JobEvent, Kept, Record, Sum};
use crate::id::ItemId;
use crate::job::Job;
use crate::workflow::StepPhase;

/// The histories of the items that were asked for.
pub struct Histories<'w> {
    wanted: Box<dyn Fn(ItemId) -> bool + 'w>,
    /// By step and place in the input.
    pub items: BTreeMap<ItemId, History>,
}

/// What happened to one item.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Every attempt of every command, in order.
    pub attempts: Vec<PastAttempt>,
    /// Every time a command was tried no further.
    pub stops: Vec<Stop>,
    /// Every time a handler has saved a command.
    pub mends: Vec<Mend>,
    /// Every time a breaker kept it back.
    pub holds: Vec<BreakerHold>,
    pub end: Option<ItemEnd>,
    /// What came of it after its step was complete without it.
    pub late: Option<LateEnd>,
    /// The round it is in, counted from 1.
    pub round: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PastAttempt {
    pub of: AttemptId,
    /// The round it belongs to, counted from 1.
    pub round: u32,
    /// When it was started.
    pub began: Timestamp,
    /// The breaker that let it through, if one was asked.
    pub pass: Option<Passed>,
    /// How it ended, if it has.
    pub outcome: Option<AttemptOutcome>,
    /// The retry that followed from it.
    pub retry: Option<ScheduledRetry>,
}

/// A breaker that let an attempt through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    pub breaker: String,
    /// Whether the attempt was to find out if the target is back.
    pub probe: bool,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptOutcome {
    /// When its end was recorded.
    pub at: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// What went wrong, if anything did.
    pub failure: Option<AttemptFailure>,
    /// Where its output is kept.
    pub stdout: Option<Kept>,
    /// Where its error output is kept.
    pub stderr: Option<Kept>,
}

/// What went wrong with an attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptFailure {
    pub cause: Cause,
    /// The class it was given.
    pub class: Class,
    /// The row of the table of rules that decided, counted from 0.
    pub rule: Option<u32>,
    /// The last lines it wrote, or what else is known.
    pub error: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScheduledRetry {
    /// How its delay came about.
    pub sum: Sum,
    pub delay: Duration,
    /// When it fell due.
    pub due: Timestamp,
}

/// A command that was tried no further.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// The command and its last attempt.
    pub of: AttemptId,
    pub at: Timestamp,
    pub reason: Reason,
    /// What people read about it.
    pub error: String,
    /// The numbers behind the decision.
    pub sum: Option<Sum>,
    /// The row of the table of rules that decided, counted from 0.
    pub rule: Option<u32>,
    /// Whether its handler ran.
    pub handled: bool,
}

/// A handler has saved a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mend {
    /// The command and its last attempt.
    pub of: AttemptId,
    pub at: Timestamp,
    /// Whether the command is tried once more; if not, the item goes on without it.
    pub again: bool,
}

/// A breaker has kept an item back.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakerHold {
    /// The command that would have started, and its last attempt.
    pub of: AttemptId,
    pub at: Timestamp,
    pub breaker: String,
    /// When the breaker was to look again, if that was known.
    pub until: Option<Timestamp>,
    /// When the item was to be held no longer and fail, if there was such a time.
    pub expires: Option<Timestamp>,
    /// How many attempts were left; `None` is any number.
    pub left: Option<u64>,
    /// The numbers of the retry this leads to, if a rule holds it after a failure.
    pub sum: Option<Sum>,
    /// When it was let go, and how long it was held, if it was.
    pub released: Option<(Timestamp, Duration)>,
}

/// What came of an item after its step was complete without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateEnd {
    pub at: Timestamp,
    /// Why it did not succeed, if it did not.
    pub reason: Option<Reason>,
    /// Whether it counts all the same.
    pub counted: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ItemEnd {
    pub at: Timestamp,
    /// Why, if it did not succeed.
    pub reason: Option<Reason>,
    /// What people read about it.
    pub error: Option<String>,
    /// Whether it is a dead letter.
    pub dead: bool,
}

impl<'w> Histories<'w> {
    /// Keeps the histories of the items for which `wanted` is true, by step and place.
    pub fn of(wanted: impl Fn(ItemId) -> bool + 'w) -> Self {
        Self {
            wanted: Box::new(wanted),
            items: BTreeMap::new(),
        }
    }

    /// Takes note of a record. The job is as it is after it.
    pub fn take(&mut self, job: &Job, record: &Record) {
        if let Event::Job(JobEvent::Redriven { reduce: true }) = &record.event {
            self.begin_again(job);
        }
        let Event::Item(event) = &record.event else {
            return;
        };
        let item = event.item();
        if !(self.wanted)(item) {
            return;
        }
        let history = self.items.entry(item).or_insert_with(|| History {
            round: 1,
            ..History::default()
        });
        history.take(job, event, record.at);
    }
}

impl Histories<'_> {
    /// What comes after the map is done again, in a new round.
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
                began: at,
                pass: started.pass.as_ref().map(|pass| Passed {
                    breaker: job.texts.read(&pass.breaker).to_owned(),
                    probe: pass.probe,
                }),
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
                let planned = ScheduledRetry {
                    sum: retrying.sum,
                    delay: retrying.delay,
                    due: retrying.due,
                };
                if let Some(attempt) = self.attempts.last_mut() {
                    attempt.retry = Some(planned);
                }
            }
            ItemEvent::CommandStopped(stopped) => self.stops.push(Stop {
                of: stopped.of,
                at,
                reason: stopped.reason,
                error: job.texts.read(&stopped.error).to_owned(),
                sum: stopped.sum,
                rule: stopped.rule,
                handled: stopped.handler.is_some(),
            }),
            ItemEvent::CommandRepeated { of } => self.mend(*of, at, true),
            ItemEvent::CommandRecovered { of, .. } => self.mend(*of, at, false),
            ItemEvent::Succeeded { .. } => self.end(at, None, None, false),
            ItemEvent::Skipped { reason, .. } => self.end(at, Some(*reason), None, false),
            ItemEvent::Redriven { .. } => {
                self.round = self.round.saturating_add(1);
                self.end = None;
            }
            ItemEvent::Dropped { .. } => self.end(at, Some(Reason::NotSelected), None, false),
            ItemEvent::DeadLettered { reason, error, .. } => {
                let error = job.texts.read(error).to_owned();
                self.end(at, Some(*reason), Some(error), true);
            }
            ItemEvent::Held(held) => self.holds.push(BreakerHold {
                of: held.of,
                at,
                breaker: job.texts.read(&held.breaker).to_owned(),
                until: held.until,
                expires: held.expires,
                left: held.left,
                sum: held.sum,
                released: None,
            }),
            ItemEvent::Released(released) => {
                if let Some(hold) = self.holds.last_mut() {
                    hold.released = Some((at, released.held));
                }
            }
            ItemEvent::LateResult(late) => {
                self.late = Some(LateEnd {
                    at,
                    reason: late.reason,
                    counted: late.counted,
                });
            }
            // Its start is what is shown of it.
            ItemEvent::AttemptAccepted { .. } => {}
        }
    }

    fn failed(&mut self, job: &Job, failed: &AttemptFailed, at: Timestamp) {
        let error = failed.error.as_ref();
        let error = error.map(|error| job.texts.read(error).to_owned());
        let failure = AttemptFailure {
            cause: failed.cause,
            class: failed.class,
            rule: failed.rule,
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
        self.mends.push(Mend { of, at, again });
    }

    fn end(&mut self, at: Timestamp, reason: Option<Reason>, error: Option<String>, dead: bool) {
        self.end = Some(ItemEnd {
            at,
            reason,
            error,
            dead,
        });
    }
}
