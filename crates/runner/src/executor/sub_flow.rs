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
    /// Cancels a flow that is no longer needed.
    Cancel(Arc<SubFlow>),
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

    /// Cancels the flow with the attempt that waits for it. If the engine is only shutting down, the flow
    /// stays, and the next engine waits for it.
    fn cancel(&mut self, start: StartId, context: &JobContext<'_>) -> Option<AttemptEnd> {
        let flow = self.awaited.remove(&start)?;
        if !context.shutdown.is_immediate() {
            self.requests.push(SubFlowRequest::Cancel(flow));
        }
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
