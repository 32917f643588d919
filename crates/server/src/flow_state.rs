//! The state of a flow, as its clients see it.
//!
//! A fold over the records of its journal, beside the job's own: the job keeps what the next decision
//! needs, and this the times and errors that clients ask for. Every time shown is one that was stored.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use undaunted_engine::catalog::FlowEntry;
use undaunted_engine::decide::cause_in_words;
use undaunted_engine::event::{Ended, Event, ItemEvent, JobEvent, Record, StepEvent};
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::job::{Doing, Item, Job, Plans, Settled, Stage, StepStage, StepState};
use undaunted_engine::task::{as_uuid, receipt_token};
use undaunted_engine::view::rfc3339;
use undaunted_engine::workflow::Role;
use undaunted_policy::{Cause, Reason, Timestamp};
use undaunted_runner::journal::{JournalError, replay};
use undaunted_store::{Store, Version};

use crate::flow_plan::plan;

#[derive(Clone, Debug, Default)]
pub struct FlowState {
    steps: BTreeMap<StepId, StepPast>,
    set_at: BTreeMap<String, Timestamp>,
    ended: Option<Timestamp>,
    error: Option<String>,
    failed: Option<StepId>,
}

#[derive(Clone, Debug, Default)]
struct StepPast {
    started: Option<Timestamp>,
    ended: Option<Timestamp>,
    error: Option<String>,
    inputs: Map<String, Value>,
    items: BTreeMap<u32, ItemPast>,
}

#[derive(Clone, Debug, Default)]
struct ItemPast {
    started: Option<Timestamp>,
    ended: Option<Timestamp>,
    error: Option<String>,
    retries: u32,
    due: Option<Timestamp>,
    round: u32,
}

impl FlowState {
    /// Replays the journal of a flow. The version is that of its last record.
    pub fn read(
        store: &dyn Store,
        flow: &str,
        plans: &Plans,
    ) -> Result<(Self, Job, Version), JournalError> {
        let mut state = Self::default();
        let (job, version) = replay(store, flow, plans, |job, _, record| state.take(job, record))?;
        if job.workflow().flow.is_none() {
            let job = flow.to_owned();
            return Err(JournalError::NotFound { job });
        }
        Ok((state, job, version))
    }

    /// Folds a record, which the job has already applied.
    pub fn take(&mut self, job: &Job, record: &Record) {
        match &record.event {
            Event::Job(event) => self.take_of_job(job, event, record.at),
            Event::Step(event) => self.take_of_step(job, event, record.at),
            Event::Item(event) => self.take_of_item(job, event, record.at),
            Event::Breaker(_) => {}
        }
    }

    fn take_of_job(&mut self, job: &Job, event: &JobEvent, at: Timestamp) {
        match event {
            JobEvent::Completed(_) | JobEvent::Partial(_) => self.ended = Some(at),
            JobEvent::Failed(ended) | JobEvent::Cancelled(ended) => {
                self.ended = Some(at);
                self.error = Some(self.why(job, ended));
            }
            JobEvent::Redriven { .. } => self.reopen(job),
            JobEvent::Submitted(_)
            | JobEvent::Resumed(_)
            | JobEvent::TextKept { .. }
            | JobEvent::Stopping { .. }
            | JobEvent::Suspended
            | JobEvent::PolicyChanged { .. }
            | JobEvent::Paused
            | JobEvent::Unpaused { .. }
            | JobEvent::StateImported { .. }
            | JobEvent::PoolToppedUp { .. } => {}
        }
    }

    fn take_of_step(&mut self, job: &Job, event: &StepEvent, at: Timestamp) {
        let step = event.step();
        match event {
            StepEvent::Started { .. } => {
                *self.step(step) = StepPast {
                    started: Some(at),
                    inputs: arguments(job, step),
                    ..StepPast::default()
                };
            }
            StepEvent::InputFailed { error, .. } => {
                let error = job.texts.read(error).to_owned();
                self.fail(step, at, error);
            }
            StepEvent::Unreachable { missing, .. } => {
                let error = format!("`{missing}`, which it requires, can no longer come");
                self.fail(step, at, error);
            }
            StepEvent::Failed { .. } => {
                let dead = |index: u32| {
                    let item = job.item(step.item(index));
                    matches!(item, Some(Item::Settled(Settled::Dead(_))))
                };
                let mut items = self.step(step).items.iter();
                let dead = items.find(|(index, _)| dead(**index));
                let dead = dead.and_then(|(_, past)| past.error.clone());
                let reason = || Some(job.mishaps.stopped?.sentence().to_owned());
                self.fail(step, at, dead.or_else(reason).unwrap_or_default());
            }
            StepEvent::Completed { .. } | StepEvent::Skipped { .. } => {
                self.step(step).ended = Some(at);
            }
            StepEvent::AttributeSet { name, .. } => {
                let _ = self.set_at.insert(name.clone(), at);
            }
            StepEvent::ItemsRead { .. } | StepEvent::CompletionReached(_) => {}
        }
    }

    fn take_of_item(&mut self, job: &Job, event: &ItemEvent, at: Timestamp) {
        let item = event.item();
        match event {
            ItemEvent::AttemptStarted(_) => {
                let round = job.active(item).map(|active| active.round);
                let past = self.item(item);
                past.started = Some(at);
                past.due = None;
                past.round = round.unwrap_or(past.round);
            }
            ItemEvent::AttemptFailed(failed) => {
                let said = failed.error.as_ref().map(|error| job.texts.read(error));
                let cause = cause_in_words(failed.cause);
                let error = match said {
                    None | Some("") => cause,
                    // The service's own error message is shown as it is.
                    Some(said) if failed.cause == Cause::Refused => said.to_owned(),
                    Some(said) => format!("{cause}: {said}"),
                };
                self.item(item).error = Some(error);
            }
            ItemEvent::RetryScheduled(retrying) => {
                let past = self.item(item);
                past.retries = retrying.sum.retry;
                past.due = Some(retrying.due);
            }
            ItemEvent::AttemptSucceeded(done) => {
                if done.next.is_none() {
                    let past = self.item(item);
                    past.error = None;
                    past.ended = Some(at);
                }
            }
            ItemEvent::DeadLettered { reason, error, .. } => {
                // The error of the last attempt, if that and not a limit is the reason.
                let last = self.item(item).error.clone();
                let last = last.filter(|_| matches!(reason, Reason::Permanent | Reason::Attempts));
                let error = last.unwrap_or_else(|| job.texts.read(error).to_owned());
                self.end(item, at, error);
            }
            ItemEvent::Skipped { reason, .. } => self.end(item, at, reason.sentence().to_owned()),
            ItemEvent::Redriven { .. } => {
                let past = self.item(item);
                *past = ItemPast {
                    round: past.round.saturating_add(1),
                    ..ItemPast::default()
                };
            }
            ItemEvent::AttemptAccepted { .. }
            | ItemEvent::CommandStopped(_)
            | ItemEvent::CommandRepeated { .. }
            | ItemEvent::CommandRecovered { .. }
            | ItemEvent::Succeeded { .. }
            | ItemEvent::Dropped { .. }
            | ItemEvent::Held(_)
            | ItemEvent::Released(_)
            | ItemEvent::LateResult(_) => {}
        }
    }

    fn step(&mut self, step: StepId) -> &mut StepPast {
        self.steps.entry(step).or_default()
    }

    fn item(&mut self, item: ItemId) -> &mut ItemPast {
        self.step(item.step).items.entry(item.index).or_default()
    }

    fn end(&mut self, item: ItemId, at: Timestamp, error: String) {
        let item = self.item(item);
        item.due = None;
        item.ended = Some(at);
        item.error = Some(error);
    }

    fn fail(&mut self, step: StepId, at: Timestamp, error: String) {
        let past = self.step(step);
        past.ended = Some(at);
        past.error = Some(error);
        let _ = self.failed.get_or_insert(step);
    }

    /// After a redrive, steps that had ended run again.
    fn reopen(&mut self, job: &Job) {
        self.ended = None;
        self.error = None;
        self.failed = None;
        for (step, past) in &mut self.steps {
            if job.step(*step).is_some_and(is_open) {
                past.ended = None;
                past.error = None;
            }
        }
    }

    fn why(&self, job: &Job, ended: &Ended) -> String {
        let failed = self.failed.filter(|_| job.mishaps.stopped.is_none());
        let failed = failed.and_then(|step| Some((job.plan().step(step)?, self.error_of(step)?)));
        if let Some((step, error)) = failed {
            return format!("step {} failed: {error}", step.name);
        }
        let reason = ended.reason.map(Reason::sentence);
        let error = ended.error.as_ref().map(|error| job.texts.read(error));
        reason.or(error).unwrap_or_default().to_owned()
    }

    pub(crate) fn error_of(&self, step: StepId) -> Option<&str> {
        self.steps.get(&step)?.error.as_deref()
    }

    pub(crate) fn error_of_item(&self, item: ItemId) -> Option<&str> {
        let item = self.steps.get(&item.step)?.items.get(&item.index)?;
        item.error.as_deref()
    }

    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// All inputs of a step, before they are split into items.
    pub(crate) fn inputs_of(&self, step: StepId) -> Map<String, Value> {
        let past = self.steps.get(&step);
        past.map(|past| past.inputs.clone()).unwrap_or_default()
    }

    /// In milliseconds, once the step has ended.
    pub(crate) fn duration_of(&self, step: StepId) -> Option<u64> {
        let past = self.steps.get(&step)?;
        let took = past.ended?.since(past.started?);
        Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
    }

    /// The receipt token of an item in its current round.
    pub(crate) fn token(&self, job: &Job, item: ItemId) -> String {
        let past = self.steps.get(&item.step);
        let past = past.and_then(|past| past.items.get(&item.index));
        let again = job.step(item.step).map_or(0, |state| state.again);
        let round = match job.item(item) {
            Some(Item::Active(active)) => active.round,
            Some(Item::Pending) => again.saturating_add(1),
            Some(Item::Settled(_)) | None => {
                let dead = job.dead.get(&item).map(|dead| dead.round);
                let past = past.map(|past| past.round).filter(|round| *round > 0);
                dead.or(past).unwrap_or(again.saturating_add(1))
            }
        };
        let command = job.plan().first(item.step).unwrap_or_default();
        as_uuid(&receipt_token(job, item, command, round))
    }

    /// The flow as JSON; labels and parent come from its catalog entry.
    pub fn json(&self, job: &Job, entry: Option<&FlowEntry>) -> Value {
        let attributes = job.attributes.iter().map(|(name, given)| {
            let step = given.step.and_then(|step| job.plan().step(step));
            let set_at = self.set_at.get(name).copied();
            let value = json!({
                "value": given.value,
                "step": step.map(|step| step.name.as_str()),
                "set_at": rfc3339(set_at.unwrap_or(job.times.submitted_at)),
            });
            (name.clone(), value)
        });
        let flow = job.workflow().flow.as_ref();
        let planned = flow.into_iter().flat_map(|flow| &flow.plan);
        let executions = planned.filter_map(|place| {
            let step = StepId::at(*place);
            let name = job.plan().step(step)?.name.clone();
            Some((name, self.execution(job, step)))
        });
        let parent = entry.and_then(|entry| entry.parent.as_deref());
        let mut json = json!({
            "id": job.id(),
            "status": status(job),
            "created_at": rfc3339(job.times.submitted_at),
            "completed_at": self.ended.map(rfc3339),
            "last_updated": rfc3339(job.times.last_at),
            "plan": plan(job).json(),
            "metadata": parent.map_or_else(|| json!({}), |it| json!({ "parent_flow_id": it })),
            "labels": entry.map_or_else(|| json!({}), |entry| json!(entry.labels)),
            "attributes": Value::Object(attributes.collect()),
            "executions": Value::Object(executions.collect()),
        });
        put(&mut json, "error", self.error.as_deref());
        json
    }

    fn execution(&self, job: &Job, step: StepId) -> Value {
        let none = StepPast::default();
        let past = self.steps.get(&step).unwrap_or(&none);
        let Some(state) = job.step(step) else {
            return Value::Null;
        };
        let items = state.items.iter().map(|(item, found)| {
            let shown = work_item(past, state, item, found);
            (self.token(job, step.item(item)), shown)
        });
        let mut json = json!({
            "status": stage(state.stage),
            "started_at": past.started.map(rfc3339),
            "completed_at": past.ended.map(rfc3339),
            "inputs": past.inputs,
            "work_items": Value::Object(items.collect()),
        });
        if state.stage == StepStage::Completed {
            put(&mut json, "outputs", Some(Value::Object(given(job, step))));
        }
        put(&mut json, "error", past.error.as_deref());
        put(&mut json, "duration", self.duration_of(step));
        json
    }
}

pub(crate) fn given(job: &Job, step: StepId) -> Map<String, Value> {
    let attributes = job.attributes.iter();
    attributes
        .filter(|(_, given)| given.step == Some(step))
        .map(|(name, given)| (name.clone(), given.value.clone()))
        .collect()
}

/// The inputs or outputs of an item; `{}` if the text is not JSON.
pub(crate) fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!({}))
}

pub(crate) const fn status(job: &Job) -> &'static str {
    match job.stage {
        Stage::Completed | Stage::Partial => "completed",
        Stage::Failed | Stage::Cancelled => "failed",
        Stage::Running | Stage::Stopping(_) | Stage::Suspended => "active",
    }
}

const fn stage(stage: StepStage) -> &'static str {
    match stage {
        StepStage::Waiting => "pending",
        StepStage::Reading(_) | StepStage::Running => "active",
        StepStage::Completed => "completed",
        StepStage::Failed => "failed",
        StepStage::Skipped => "skipped",
    }
}

const fn is_open(state: &StepState) -> bool {
    matches!(
        state.stage,
        StepStage::Waiting | StepStage::Reading(_) | StepStage::Running
    )
}

fn work_item(past: &StepPast, state: &StepState, item: u32, found: Item<'_>) -> Value {
    let none = ItemPast::default();
    let past = past.items.get(&item).unwrap_or(&none);
    let status = match found {
        Item::Pending => "pending",
        Item::Active(active) => match active.doing {
            Doing::Running(_) => "active",
            Doing::Waiting(_) | Doing::Held => "pending",
            Doing::Undecided => "not_completed",
        },
        Item::Settled(Settled::Succeeded) => "succeeded",
        // A dropped dead letter has failed all the same.
        Item::Settled(Settled::Dead(_) | Settled::Skipped(Reason::NotSelected)) => "failed",
        Item::Settled(Settled::Skipped(_) | Settled::Missing(_)) => "not_completed",
    };
    let mut json = json!({
        "status": status,
        "started_at": past.started.map(rfc3339),
        "completed_at": past.ended.map(rfc3339),
        "inputs": object(state.items.input(item)),
        "retry_count": past.retries,
        "next_retry_at": past.due.map(rfc3339),
    });
    if matches!(found, Item::Settled(Settled::Succeeded)) {
        let outputs = state.outputs.get(&item).map_or("{}", String::as_str);
        put(&mut json, "outputs", Some(object(outputs)));
    }
    put(&mut json, "error", past.error.as_deref());
    json
}

/// All inputs of a step; a `for_each` attribute has its whole list.
fn arguments(job: &Job, step: StepId) -> Map<String, Value> {
    let call = job.plan().call(step);
    let taken = call.into_iter().flat_map(|call| &call.attributes);
    let taken = taken.filter_map(|(name, taken)| {
        let known = match taken.role {
            Role::Output => return None,
            Role::Const => None,
            Role::Required | Role::Optional => job.attributes.get(name).map(|it| &it.value),
        };
        let value = known.or(taken.default.as_ref())?.clone();
        let inner = taken.mapping.as_ref().unwrap_or(name).clone();
        Some((inner, value))
    });
    taken.collect()
}

/// Adds a field, if there is a value for it.
pub(crate) fn put(json: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let (Some(fields), Some(value)) = (json.as_object_mut(), value) {
        let _ = fields.insert(name.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests;
