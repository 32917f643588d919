//! An event as JSON.

use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use undaunted_policy::{Reason, Timestamp};

use crate::event::{
    AttemptFailed, AttemptId, AttemptSucceeded, BreakerEvent, CommandStopped, CompletionReached, Event,
    ImportedCommand, ItemEvent, JobEnded, JobEvent, PolicyChange, Record, ReservationWithdrawn,
    RetryArithmetic, RetryScheduled, SpooledPart, StartHeld, StartReserved, StepEvent, StoredText,
    cause_parts, class_word,
};
use crate::id::ItemId;
use crate::job::{Job, JobStage};
use crate::task::correlation_id;
use crate::view::report::{ItemCounts, JobStatus};
use crate::view::time::{exact_millis, millis, rfc3339};

#[derive(Clone, Debug, PartialEq)]
pub struct EventView {
    fields: Vec<(&'static str, Value)>,
}

/// A reserved start is recorded a little after it has begun.
fn happened_at(record: &Record) -> Timestamp {
    match &record.event {
        Event::Item(ItemEvent::AttemptStarted(started)) => started.began.unwrap_or(record.at),
        Event::Job(_) | Event::Step(_) | Event::Item(_) | Event::Breaker(_) => record.at,
    }
}

/// `job` is the state after the record.
pub fn event(job: &Job, seq: u64, record: &Record) -> EventView {
    let mut view = EventView::of(vec![
        ("seq", seq.into()),
        ("at", time(happened_at(record))),
        ("type", record.event.word().into()),
    ]);
    match &record.event {
        Event::Job(event) => view.add_job(job, event),
        Event::Step(event) => view.add_step(job, event),
        Event::Item(event) => view.add_item(job, event),
        Event::Breaker(event) => view.add_breaker(job, event),
    }
    view
}

impl EventView {
    pub(super) const fn of(fields: Vec<(&'static str, Value)>) -> Self {
        Self { fields }
    }

    pub fn fields(&self) -> &[(&'static str, Value)] {
        &self.fields
    }

    fn put(&mut self, name: &'static str, value: impl Into<Value>) {
        self.fields.push((name, value.into()));
    }

    fn put_some(&mut self, name: &'static str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    fn add_job(&mut self, job: &Job, event: &JobEvent) {
        match event {
            JobEvent::Submitted(submitted) => {
                self.put("job", submitted.job.as_str());
                self.put_some("name", job.workflow().name.as_deref());
                self.put("workflow", submitted.file.as_str());
                self.put("working_dir", submitted.working_dir.as_str());
                // A string, because JSON readers would round the number.
                self.put("seed", submitted.seed.to_string());
            }
            JobEvent::Resumed(resumed) => {
                self.put("run", resumed.run);
                self.put("downtime_ms", millis(resumed.away));
                self.put("planned", resumed.planned);
                let found = resumed.work;
                self.put(
                    "restored",
                    json!({
                        "running": found.running, "waiting": found.waiting,
                        "settled": found.settled, "pending": found.pending,
                        "attempts": found.attempts, "held": found.held.unwrap_or_default(),
                    }),
                );
            }
            JobEvent::TextKept { text } => self.put("text", text.as_str()),
            JobEvent::Stopping { reason } => self.put("reason", reason.word()),
            JobEvent::Completed(ended) => self.ended(job, JobStage::Completed, ended),
            JobEvent::Partial(ended) => self.ended(job, JobStage::Partial, ended),
            JobEvent::Failed(ended) => self.ended(job, JobStage::Failed, ended),
            JobEvent::Cancelled(ended) => self.ended(job, JobStage::Cancelled, ended),
            JobEvent::Suspended => self.put("status", JobStatus::Suspended.word()),
            JobEvent::Redriven { reduce } => self.put("reduce", *reduce),
            JobEvent::StartsSpaced { every } => self.put("every_ms", every.map(millis)),
            JobEvent::Paused => {}
            JobEvent::Unpaused { away } => self.put("paused_ms", millis(*away)),
            JobEvent::PolicyChanged { changes, .. } => self.changes(changes),
            JobEvent::StateImported { commands, .. } => self.imported(job, commands),
            JobEvent::PoolToppedUp { asked, added, total, per_item } => {
                self.put("asked", *asked);
                self.put("added", *added);
                self.put("total_budget", *total);
                self.put_some("per_workflow_max", *per_item);
            }
        }
    }

    fn add_step(&mut self, job: &Job, event: &StepEvent) {
        let name = job.plan().step(event.step());
        self.put("step", name.map(|step| step.name.as_str()));
        match event {
            StepEvent::Started { .. }
            | StepEvent::Skipped { .. }
            | StepEvent::Completed { .. }
            | StepEvent::Failed { .. } => {}
            StepEvent::ItemsRead { items, last, warning, .. } => {
                self.put("items", items.len());
                self.put("last", *last);
                self.put_some("warning", warning.as_deref());
            }
            StepEvent::InputFailed { reason, error, stderr, .. } => {
                self.why(job, *reason, error);
                self.put_some("stderr", stderr.as_deref().copied().map(kept));
            }
            StepEvent::Unreachable { missing, .. } => self.put("missing", missing.as_str()),
            StepEvent::AttributeSet { name, value, unused, .. } => {
                self.put("name", name.as_str());
                self.put("value", serde_json::from_str::<Value>(value).unwrap_or_default());
                self.put("used", *unused != Some(true));
            }
            StepEvent::CompletionReached(reached) => self.reached(reached),
        }
    }

    fn add_breaker(&mut self, job: &Job, event: &BreakerEvent) {
        match event {
            BreakerEvent::Opened(opened) => {
                self.put("breaker", job.texts.read(&opened.breaker));
                self.put("until", time(opened.until));
                let why = match (opened.by_rule, opened.failures) {
                    (true, _) => "rule",
                    (false, 0) => "probe",
                    (false, _) => "failures",
                };
                self.put("why", why);
                self.put("failures", opened.failures);
            }
            BreakerEvent::HalfOpened { breaker } | BreakerEvent::Closed { breaker } => {
                self.put("breaker", job.texts.read(breaker));
            }
            BreakerEvent::Configured { breaker, changes } => {
                self.put("breaker", job.texts.read(breaker));
                self.changes(changes);
            }
        }
    }

    fn imported(&mut self, job: &Job, commands: &[ImportedCommand]) {
        let commands = commands.iter().map(|it| {
            let command = job.plan().command(it.command);
            json!({
                "item": it.item, "command": command.map(|command| command.id.as_str()),
                "attempts": it.attempts, "retries": it.retries, "succeeded": it.has_succeeded(),
                "spent_ms": exact_millis(it.spent), "due_at": it.due.map(rfc3339),
            })
        });
        self.put("commands", commands.collect::<Vec<_>>());
    }

    fn changes(&mut self, changes: &[PolicyChange]) {
        let changes = changes.iter().map(|change| {
            json!({
                "of": change.of, "setting": change.setting,
                "old": change.old, "new": change.new,
            })
        });
        self.put("changes", changes.collect::<Vec<_>>());
    }

    fn add_item(&mut self, job: &Job, event: &ItemEvent) {
        self.item(job, event.item());
        match event {
            ItemEvent::AttemptStarted(started) => {
                self.attempt(job, started.of);
                self.put("start", started.start.0);
                if let Some(pass) = &started.pass {
                    self.put("breaker", job.texts.read(&pass.breaker));
                    self.put("probe", pass.probe);
                }
                self.put_some("began_at", started.began.map(time));
            }
            ItemEvent::AttemptSucceeded(done) => self.succeeded(job, done),
            ItemEvent::AttemptFailed(failed) => self.failed(job, failed),
            ItemEvent::RetryScheduled(retrying) => self.retrying(job, retrying),
            ItemEvent::CommandStopped(stopped) => self.stopped(job, stopped),
            ItemEvent::CommandRepeated { of } | ItemEvent::CommandRecovered { of, .. } => {
                self.attempt(job, *of);
            }
            ItemEvent::Succeeded { .. } | ItemEvent::Redriven { .. } | ItemEvent::Dropped { .. } => {}
            ItemEvent::DeadLettered { of, reason, error } => {
                self.attempt(job, *of);
                self.why(job, *reason, error);
            }
            ItemEvent::Skipped { reason, .. } => self.put("reason", reason.word()),
            ItemEvent::Held(held) => self.held(job, held),
            ItemEvent::AttemptAccepted { of, until } => {
                self.attempt(job, *of);
                self.put("until", time(*until));
            }
            ItemEvent::ResultArrived(arrived) => {
                self.attempt(job, arrived.of);
                self.put("result", if arrived.error.is_some() { "failed" } else { "succeeded" });
                self.put_some("output", arrived.output.as_deref());
                self.put_some("error", arrived.error.as_ref().map(|error| job.texts.read(error)));
            }
            ItemEvent::Released(released) => {
                self.attempt(job, released.of);
                self.put("breaker", job.texts.read(&released.breaker));
                self.put("held_ms", millis(released.held));
            }
            ItemEvent::StartReserved(StartReserved { of, start })
            | ItemEvent::ReservationWithdrawn(ReservationWithdrawn { of, start }) => {
                self.attempt(job, *of);
                self.put("start", start.0);
            }
            ItemEvent::LateResult(late) => {
                self.put("result", late.reason.map_or("succeeded", |_| "failed"));
                self.put_some("reason", late.reason.map(Reason::word));
                let policy = if late.counted { "update_result" } else { "log_only" };
                self.put("policy", policy);
                self.put_some("output", late.output.as_deref());
                self.put_some("error", late.error.as_ref().map(|error| job.texts.read(error)));
            }
        }
    }

    fn held(&mut self, job: &Job, held: &StartHeld) {
        self.attempt(job, held.of);
        self.put("breaker", job.texts.read(&held.breaker));
        self.put("why", if held.arithmetic.is_some() { "rule" } else { "open" });
        self.put("until", held.until.map(time));
        self.put_some("expires_at", held.expires.map(time));
        self.put("attempts_left", held.left);
        if let Some(sum) = &held.arithmetic {
            self.sum(sum, sum.spent_before);
        }
    }

    fn reached(&mut self, reached: &CompletionReached) {
        let completion = reached.completion();
        self.put("reason", completion.reason.to_string());
        self.put("success", completion.success);
        self.put("best_effort", reached.is_best_effort());
        self.put("min", reached.min);
        self.put("deadline", time(reached.deadline));
        self.put("total", reached.target);
        self.put("completed", reached.completed);
        self.put("failed", reached.failed);
        let reported = reached.completed.saturating_add(reached.failed);
        self.put("missing", reached.target.saturating_sub(reported));
    }

    fn item(&mut self, job: &Job, item: ItemId) {
        let step = job.step(item.step);
        self.put("item", step.map(|state| state.items.identity(item.index)));
        self.put("index", item.index);
        self.put("correlation_id", correlation_id(job, item));
    }

    fn attempt(&mut self, job: &Job, of: AttemptId) {
        let command = job.plan().command(of.command);
        self.put("command", command.map(|command| command.id.as_str()));
        self.put("attempt", of.attempt.0);
    }

    fn why(&mut self, job: &Job, reason: Reason, error: &StoredText) {
        self.put("reason", reason.word());
        self.put("error", job.texts.read(error));
    }

    fn succeeded(&mut self, job: &Job, done: &AttemptSucceeded) {
        self.attempt(job, done.of);
        self.put("duration_ms", millis(done.took));
        self.put_some("output", done.output.as_deref());
        self.put_some("stdout", done.stdout.map(kept));
        self.put_some("stderr", done.stderr.map(kept));
        self.put_some("left_running", done.left);
    }

    fn failed(&mut self, job: &Job, failed: &AttemptFailed) {
        self.attempt(job, failed.of);
        self.put("duration_ms", millis(failed.took));
        let (cause, number) = cause_parts(failed.cause);
        self.put("cause", cause);
        match cause {
            "exit" => self.put("exit_code", number),
            "signal" => self.put("signal", number),
            "status" => self.put("status", number),
            _ => {}
        }
        self.put_some("limit", failed.limit.map(|limit| limit.kind.word()));
        self.put_some("limit_ms", failed.limit.map(|limit| millis(limit.allowed)));
        self.put("class", class_word(failed.class));
        self.put_some("rule", failed.rule);
        let error = failed.error.as_ref().map(|error| job.texts.read(error));
        self.put("error", error);
        self.put_some("stdout", failed.stdout.map(kept));
        self.put_some("stderr", failed.stderr.map(kept));
    }

    fn retrying(&mut self, job: &Job, retrying: &RetryScheduled) {
        self.attempt(job, retrying.of);
        self.sum(&retrying.arithmetic, retrying.arithmetic.spent_after);
        self.put("delay_ms", exact_millis(retrying.delay));
        self.put("due_at", time(retrying.due));
    }

    fn stopped(&mut self, job: &Job, stopped: &CommandStopped) {
        self.attempt(job, stopped.of);
        self.why(job, stopped.reason, &stopped.error);
        self.put_some("rule", stopped.rule);
        self.put("handled", stopped.handler.is_some());
        if let Some(sum) = &stopped.arithmetic {
            // The refused delay was not spent.
            self.sum(sum, sum.spent_before);
            self.put_some("delay_ms", sum.drawn.map(exact_millis));
            let expired = stopped.reason == Reason::RetryBudgetExpired;
            self.put_some("overdue_ms", expired.then(|| millis(sum.overdue())));
        }
    }

    fn sum(&mut self, sum: &RetryArithmetic, spent: Duration) {
        self.put("retry", sum.retry);
        self.put("retries_allowed", sum.allowed);
        self.put_some("computed_ms", sum.computed.map(exact_millis));
        self.put_some("capped_ms", sum.capped.map(exact_millis));
        self.put("spent_ms", exact_millis(spent));
        self.put("spent_before_ms", exact_millis(sum.spent_before));
        self.put_some("retry_budget_ms", sum.budget.map(exact_millis));
        self.put_some("retry_budget_expires_at", sum.expires.map(time));
        self.put_some("retry_after_ms", sum.retry_after.map(exact_millis));
        self.put_some("deadline", sum.deadline.map(time));
        let balance = |(used, allowed): (u32, u32)| json!({ "used": used, "allowed": allowed });
        self.put_some("pool", sum.pool.map(balance));
        self.put_some("share", sum.share.map(balance));
    }

    fn ended(&mut self, job: &Job, stage: JobStage, ended: &JobEnded) {
        self.put("status", JobStatus::from(stage).word());
        self.put("reason", ended.reason.map(Reason::word));
        let error = ended.error.as_ref().map(|error| job.texts.read(error));
        self.put("error", error);
        let counts = &ended.counts;
        self.put("items", json!(ItemCounts::from(counts)));
        self.put("attempts", counts.attempts);
        self.put("retries", counts.retries);
        self.put("delay_ms", exact_millis(counts.delay));
    }
}

impl Serialize for EventView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

fn kept(kept: SpooledPart) -> Value {
    json!({ "bytes": kept.length, "kept": kept.head.saturating_add(kept.tail) })
}

pub(super) fn time(at: Timestamp) -> Value {
    rfc3339(at).into()
}
