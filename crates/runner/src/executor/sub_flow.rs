//! Flows that items of a flow wait for. They are jobs of their own, which the event loop runs.
//!
//! The name of a flow follows from its item, so asking for it twice begins it once: after a crash it
//! is asked for again.

use std::collections::BTreeMap;
use std::sync::Arc;

use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::{SubFlow, Task, TaskWork};
use undaunted_policy::{Cause, Class};

use super::{AttemptFate, Executor, Started, failed};
use crate::drive::JobContext;

/// What a job asks of the loop that runs it.
pub(crate) enum Ask {
    /// To run a flow that an item waits for, or to wait for one that is there already.
    Run { start: u64, flow: Arc<SubFlow> },
    /// To end one that nobody waits for any more.
    Cancel(Arc<SubFlow>),
}

/// The flows that items of one job wait for.
#[derive(Default)]
pub(crate) struct InnerFlows {
    awaited: BTreeMap<u64, Arc<SubFlow>>,
    asks: Vec<Ask>,
}

impl InnerFlows {
    /// What is asked of the loop since this was last called.
    pub(crate) fn take_asks(&mut self) -> Vec<Ask> {
        std::mem::take(&mut self.asks)
    }
}

impl Executor for InnerFlows {
    fn begin(&mut self, start: u64, task: Task, context: &JobContext<'_>) {
        let TaskWork::Flow(flow) = task.work else {
            return context.cannot_begin(start);
        };
        if flow.is_too_deep() {
            let why =
                "too many flows are inside each other; do steps stand for each other's flows?";
            return context.end(failed(start, Cause::Other(Class::Permanent), why));
        }
        let flow = Arc::from(flow);
        self.awaited.insert(start, Arc::clone(&flow));
        self.asks.push(Ask::Run { start, flow });
    }

    /// A flow is ended with the attempt that waits for it. If the engine only leaves, the next one waits
    /// for it.
    fn cancel(&mut self, start: u64, context: &JobContext<'_>) -> Option<AttemptEnd> {
        let flow = self.awaited.remove(&start)?;
        if !context.leaving.is_at_once() {
            self.asks.push(Ask::Cancel(flow));
        }
        let error = "it was ended while its result was waited for";
        Some(failed(start, Cause::Interrupted, error))
    }

    fn fate_after_crash(&mut self, _: &Started<'_>) -> AttemptFate {
        AttemptFate::Begin
    }

    fn ended(&mut self, start: u64) {
        self.awaited.remove(&start);
    }
}
