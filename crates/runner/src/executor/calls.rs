//! HTTP requests and function calls in flight: the engine waits for their answers, which are lost if it dies.

use std::collections::BTreeMap;
use std::sync::Arc;

use undaunted_engine::id::StartId;
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::{Task, TaskWork};
use undaunted_engine::workflow::Action;
use undaunted_policy::FailureCause;

use super::http::origin;
use super::{AttemptFate, Executor, FunctionOrder, HttpOrder, StartedAttempt, failed};
use crate::{CancelCall, DriveError, JobContext};

#[derive(Default)]
pub(crate) struct Calls {
    under_way: BTreeMap<StartId, CancelCall>,
    last_origin: Option<(String, Arc<str>)>,
}

impl Calls {
    pub(crate) fn last_origin(&self) -> Option<Arc<str>> {
        self.last_origin.as_ref().map(|(_, it)| Arc::clone(it))
    }
}

impl Executor for Calls {
    /// Begins a call, unless the engine is leaving and would miss the answer.
    fn begin(&mut self, start: StartId, task: Task, context: &JobContext<'_>) {
        if context.shutdown.is_immediate() {
            let error = "cancelled before it began";
            return context.fail(start, FailureCause::Interrupted, error);
        }
        let (machine, notifier) = (&context.services.machine, context.notifier.clone());
        let (timeout, output_limit) = (task.timeout, task.output_limit);
        let (wants_output, secrets) = (task.wants_output, context.secrets.clone());
        let cancel = match task.work {
            TaskWork::Call(call) => machine.send(
                HttpOrder { start, call: *call, timeout, output_limit, wants_output, secrets },
                notifier,
            ),
            TaskWork::Function(call) => {
                machine.call(FunctionOrder { start, call, timeout, output_limit, secrets }, notifier)
            }
            TaskWork::Run { .. } | TaskWork::Flow(_) | TaskWork::Write { .. } => {
                return context.cannot_begin(start);
            }
        };
        self.under_way.insert(start, cancel);
    }

    fn cancel(&mut self, start: StartId, _: &JobContext<'_>) -> Option<AttemptEnd> {
        let withdraw = self.under_way.remove(&start)?;
        withdraw();
        let error = "cancelled while waiting for the response";
        Some(failed(start, FailureCause::Interrupted, error))
    }

    /// The answer was lost with the engine that waited for it, unless the service has accepted the attempt
    /// and sends the result later. A step of a flow is called again without delay.
    fn fate_after_crash(&mut self, attempt: &StartedAttempt<'_>) -> AttemptFate {
        if attempt.is_accepted {
            return AttemptFate::Wait(None);
        }
        let error = "the engine died before the response arrived";
        AttemptFate::Ended(Box::new(AttemptEnd {
            at_once: matches!(attempt.action, Some(Action::Step(_))),
            ..failed(attempt.start, FailureCause::Interrupted, error)
        }))
    }

    fn accepted(&mut self, start: StartId) {
        self.under_way.remove(&start);
    }

    fn ended(&mut self, start: StartId) {
        self.under_way.remove(&start);
    }

    /// Only a program that has the functions of a job can run it.
    fn check(&self, action: &Action, context: &JobContext<'_>) -> Result<(), DriveError> {
        if let Action::Function(function) = action
            && !context.services.machine.has_function(&function.name)
        {
            let name = function.name.clone();
            return Err(DriveError::Function { name });
        }
        Ok(())
    }

    /// The origin of the address, if it may be called.
    fn target(&mut self, task: &Task, context: &JobContext<'_>) -> Result<Option<Arc<str>>, String> {
        let TaskWork::Call(call) = &task.work else {
            return Ok(None);
        };
        // Cached, since the items of a step mostly share one address.
        let known = self.last_origin.take().filter(|(of, _)| *of == call.url);
        let (of, target) = match known {
            Some(known) => known,
            // It names a breaker, which is stored.
            None => (call.url.clone(), context.secrets.redact(origin(&call.url)?).into()),
        };
        self.last_origin = Some((of, Arc::clone(&target)));
        if context.services.endpoints.allow(&call.url) {
            return Ok(Some(target));
        }
        // The URL may hold a secret, so only its origin is shown.
        Err(format!("a URL of {target} is not among the allowed endpoints"))
    }
}
