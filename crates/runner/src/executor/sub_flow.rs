//! Sub-flows: flows that items of another flow wait for. Each is a job of its own, run by the event loop.
//!
//! The name of a sub-flow is derived from its item, so requesting it again after a crash does not begin it
//! twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use undaunted_engine::id::StartId;
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::{SubFlow, Task, TaskWork};
use undaunted_policy::{FailureCause, FailureClass};

use super::{AttemptFate, Executor, StartedAttempt, failed};
use crate::JobContext;

/// A request of a job to the event loop.
pub(crate) enum SubFlowRequest {
    /// Runs a flow, or waits for one that exists already.
    Run { start: StartId, flow: Arc<SubFlow> },
    /// Cancels the flow of an attempt that must not continue. The attempt ends once that is on disk, so that no
    /// crash can leave the flow running for an item that no longer waits for it.
    Cancel { start: StartId, flow: Arc<SubFlow> },
}

#[derive(Default)]
pub(crate) struct InnerFlows {
    awaited: BTreeMap<StartId, Arc<SubFlow>>,
    requests: Vec<SubFlowRequest>,
}

impl InnerFlows {
    pub(crate) fn take_requests(&mut self) -> Vec<SubFlowRequest> {
        std::mem::take(&mut self.requests)
    }

    /// Cancels the flow that an attempt waits for. The end of the attempt is reported later.
    pub(crate) fn abandon(&mut self, start: StartId) {
        if let Some(flow) = self.awaited.remove(&start) {
            self.requests.push(SubFlowRequest::Cancel { start, flow });
        }
    }

    /// As [`Self::abandon`], for an attempt that has not begun in this process. An earlier process may have
    /// begun it, so the flow may exist.
    pub(crate) fn abandon_unbegun(&mut self, start: StartId, flow: Box<SubFlow>) {
        self.requests.push(SubFlowRequest::Cancel { start, flow: Arc::from(flow) });
    }
}

impl Executor for InnerFlows {
    fn begin(&mut self, start: StartId, task: Task, context: &JobContext<'_>) {
        let TaskWork::Flow(flow) = task.work else {
            return context.cannot_begin(start);
        };
        if flow.is_too_deep() {
            let why = "sub-flows are nested too deeply; check whether two flow steps refer to each other";
            return context.fail(start, FailureCause::Other(FailureClass::Permanent), why);
        }
        let flow = Arc::from(flow);
        self.awaited.insert(start, Arc::clone(&flow));
        self.requests.push(SubFlowRequest::Run { start, flow });
    }

    /// Ends the attempt because the engine is shutting down. The flow stays, and the next engine waits for it;
    /// see [`InnerFlows::abandon`] for an attempt that must not continue.
    fn cancel(&mut self, start: StartId, _: &JobContext<'_>) -> Option<AttemptEnd> {
        self.awaited.remove(&start)?;
        let error = "cancelled while waiting for the result";
        Some(failed(start, FailureCause::Interrupted, error))
    }

    fn fate_after_crash(&mut self, _: &StartedAttempt<'_>) -> AttemptFate {
        AttemptFate::Begin
    }

    fn ended(&mut self, start: StartId) {
        self.awaited.remove(&start);
    }
}
