//! Running sub-flows: flows that items of other flows wait for.
//!
//! Each is a job of its own, with a name derived from the item. A process that resumes the outer flow
//! requests the sub-flow again under that name: if it exists, the item waits for it; if it has ended, its
//! result is used; otherwise it begins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};
use undaunted_engine::id::StartId;
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::{Job, JobStage, Plans};
use undaunted_engine::task::SubFlow;
use undaunted_policy::{FailureCause, FailureClass, Reason};
use undaunted_store::{AggregateId, ClaimError};

use super::{EventLoop, JobMessage, Message};
use crate::executor::{SubFlowRequest, failed};
use crate::request::{self, JobRequest};
use crate::{ClaimedJob, ExecutorMessage, JournalError, Secrets, journal, with_causes};

#[derive(Default)]
pub(super) struct SubFlows {
    /// The outer flow and its start, by the name of the sub-flow.
    waiting: BTreeMap<Arc<str>, (Arc<str>, StartId)>,
    /// Run by another process, or not claimed because of an outage.
    elsewhere: BTreeMap<Arc<str>, Arc<SubFlow>>,
    /// Flows that are being cancelled, with the attempts that end when the cancellation is on disk.
    cancelling: BTreeMap<Arc<str>, (Arc<str>, StartId)>,
    /// Flows to cancel when the outage ends.
    uncancelled: BTreeSet<Arc<str>>,
    /// Shared, since many flows have the same plan.
    pub(super) plans: Arc<Plans>,
}

impl EventLoop<'_> {
    pub(super) fn handle_sub_flow_request(&mut self, parent: &Arc<str>, request: SubFlowRequest) {
        match request {
            SubFlowRequest::Run { start, flow } => {
                let name: Arc<str> = flow.id.as_str().into();
                let waits = (Arc::clone(parent), start);
                self.sub_flows.waiting.insert(Arc::clone(&name), waits);
                self.send(parent, JobMessage::Executor(vec![ExecutorMessage::Accepted(start)]));
                self.begin_sub_flow(&name, &flow);
            }
            SubFlowRequest::Cancel { start, flow } => {
                let name: Arc<str> = flow.id.as_str().into();
                self.sub_flows.waiting.remove(&name);
                self.sub_flows.elsewhere.remove(&name);
                self.sub_flows.cancelling.insert(Arc::clone(&name), (Arc::clone(parent), start));
                self.cancel_sub_flow(&name);
            }
        }
    }

    /// Cancels a flow, and reports the end of the attempt that waits for it when that is on disk. A flow without
    /// an owner is run until it is cancelled.
    fn cancel_sub_flow(&mut self, name: &Arc<str>) {
        if self.jobs.contains_key(name) {
            return self.send(name, JobMessage::Cancel);
        }
        match journal::claim(&*self.services.store, name, &self.sub_flows.plans) {
            Ok(claimed) if claimed.job.stage.has_ended() => {
                self.services.store.unclaim_in_background(&claimed.claim);
                self.sub_flow_cancelled(name);
            }
            Ok(mut claimed) => {
                claimed.first = Some(Input::Cancel);
                // Nothing starts, so no command needs a secret.
                let secrets = Secrets::of_job(&claimed.job).unwrap_or_default();
                self.add_watched(claimed, secrets);
            }
            Err(JournalError::Claim(ClaimError::OwnedBy { .. })) => self.cancel_elsewhere(name),
            Err(error) if error.outage().is_some() => {
                self.sub_flows.uncancelled.insert(Arc::clone(name));
            }
            // It was never begun, or no process can run it.
            Err(_) => self.sub_flow_cancelled(name),
        }
    }

    /// Requests the owner of a flow, now or when it is resumed, to cancel it. A flow that has ended takes no
    /// requests, and needs none.
    fn cancel_elsewhere(&mut self, name: &Arc<str>) {
        let asked = request::ask(&*self.services.store, name, JobRequest::Cancel);
        if asked.is_err_and(|error| error.outage().is_some()) {
            self.sub_flows.uncancelled.insert(Arc::clone(name));
        } else {
            self.sub_flow_cancelled(name);
        }
    }

    /// The cancellation of a flow is on disk: ends the attempt that waits for that.
    fn sub_flow_cancelled(&mut self, name: &Arc<str>) {
        if let Some((parent, start)) = self.sub_flows.cancelling.remove(name) {
            let error = "cancelled while waiting for the result";
            let end = Box::new(failed(start, FailureCause::Interrupted, error));
            self.send(&parent, JobMessage::Executor(vec![ExecutorMessage::Ended(end)]));
        }
    }

    /// Called for every flow after its turn: the one that is being cancelled may be now.
    pub(super) fn check_cancelled(&mut self, name: &Arc<str>) {
        if !self.sub_flows.cancelling.contains_key(name) {
            return;
        }
        let is_cancelled = self.jobs.get(name).is_some_and(|entry| {
            let job = &entry.drive.job;
            let is_decided = job.is_stopping() == Some(Reason::Cancelled) || job.stage.has_ended();
            is_decided && entry.drive.journal.is_written()
        });
        if is_cancelled {
            self.sub_flow_cancelled(name);
        }
    }

    /// Called for every flow that the loop no longer runs. One that was not cancelled before that (it was
    /// suspended, or could not continue) is cancelled by the process that resumes it.
    pub(super) fn check_left(&mut self, name: &Arc<str>, has_ended: bool) {
        if !self.sub_flows.cancelling.contains_key(name) {
            return;
        }
        if has_ended {
            self.sub_flow_cancelled(name);
        } else {
            self.cancel_elsewhere(name);
        }
    }

    fn send(&self, job: &Arc<str>, message: JobMessage) {
        // Cannot fail: the loop owns the receiver.
        drop(self.sender.send(Message::Job(Arc::clone(job), message)));
    }

    fn begin_sub_flow(&mut self, name: &Arc<str>, flow: &Arc<SubFlow>) {
        if self.jobs.contains_key(name) {
            return;
        }
        let waiting = self.sub_flows.waiting.get(name);
        let Some(entry) = waiting.and_then(|(parent, _)| self.jobs.get(parent)) else {
            return;
        };
        let secrets = entry.drive.context.secrets.clone();
        match self.claim_sub_flow(flow, &entry.drive.job) {
            Ok(claimed) if claimed.job.stage.has_ended() => {
                self.services.store.unclaim_in_background(&claimed.claim);
                self.report_to_parent(name, &claimed.job);
            }
            Ok(claimed) => self.add_watched(claimed, secrets),
            Err(JournalError::Claim(ClaimError::OwnedBy { .. })) => self.await_flow(name, flow),
            Err(error) if error.outage().is_some() => self.await_flow(name, flow),
            Err(error) => {
                let class = match error {
                    JournalError::Job { .. } => FailureClass::Permanent,
                    _ => FailureClass::Transient,
                };
                let why = format!("cannot run the sub-flow: {}", with_causes(&error));
                self.end_waiting(name, Err((FailureCause::Other(class), why)));
            }
        }
    }

    fn await_flow(&mut self, name: &Arc<str>, flow: &Arc<SubFlow>) {
        let (name, flow) = (Arc::clone(name), Arc::clone(flow));
        self.sub_flows.elsewhere.insert(name, flow);
    }

    fn claim_sub_flow(&self, flow: &SubFlow, parent: &Job) -> Result<ClaimedJob, JournalError> {
        let store = &*self.services.store;
        let plans = &self.sub_flows.plans;
        match journal::claim(store, &flow.id, plans) {
            Err(JournalError::NotFound { .. }) => {
                let (now, _) = self.services.machine.clocks();
                let submitted = flow.submission(parent, plans);
                let submitted = submitted.map_err(|why| JournalError::Job { job: flow.id.clone(), why })?;
                journal::submit(store, submitted, plans, now)
            }
            claimed => claimed,
        }
    }

    pub(super) fn sub_flows_elsewhere(&self) -> BTreeSet<AggregateId> {
        self.sub_flows.elsewhere.keys().filter_map(|name| journal::aggregate(name).ok()).collect()
    }

    /// Claims flows that have lost their owner. Returns whether there was one.
    pub(super) fn look_for_sub_flows(&mut self, unowned: &BTreeSet<AggregateId>) -> bool {
        for name in std::mem::take(&mut self.sub_flows.uncancelled) {
            self.cancel_sub_flow(&name);
        }
        let elsewhere = &mut self.sub_flows.elsewhere;
        let is_free = |name: &Arc<str>| {
            let of = journal::aggregate(name);
            of.is_ok_and(|of| unowned.contains(&of))
        };
        let free: Vec<_> = elsewhere.extract_if(.., |name, _| is_free(name)).collect();
        for (name, flow) in &free {
            self.begin_sub_flow(name, flow);
        }
        !free.is_empty()
    }

    /// Reports the result of a flow that has ended to the flow that waits for it.
    pub(super) fn report_to_parent(&mut self, name: &Arc<str>, job: &Job) {
        let result = match job.stage {
            JobStage::Completed => {
                let given = job.attributes.iter();
                let given = given.filter(|(_, given)| given.step.is_some());
                let given = given.map(|(name, given)| (name.clone(), given.value.clone()));
                Ok(Value::Object(given.collect::<Map<_, _>>()).to_string())
            }
            JobStage::Partial | JobStage::Failed | JobStage::Cancelled => {
                let failure = job.first_failure();
                let error = failure.as_ref().map_or("cancelled", |failure| job.texts.read(&failure.error));
                Err((FailureCause::Refused, format!("sub-flow `{name}` failed: {error}")))
            }
            JobStage::Running | JobStage::Stopping(_) | JobStage::Suspended => return,
        };
        self.end_waiting(name, result);
    }

    fn end_waiting(&mut self, name: &Arc<str>, result: Result<String, (FailureCause, String)>) {
        let Some((parent, start)) = self.sub_flows.waiting.remove(name) else {
            return;
        };
        let (output, failure, error) = match result {
            Ok(output) => (Some(output), None, String::new()),
            Err((cause, error)) => (None, Some(cause), error),
        };
        let end = AttemptEnd { start, output, failure, error, ..AttemptEnd::default() };
        let ended = ExecutorMessage::Ended(Box::new(end));
        self.send(&parent, JobMessage::Executor(vec![ended]));
    }
}
