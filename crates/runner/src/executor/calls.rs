//! HTTP requests and function calls in flight: the engine waits for their answers, which are lost if it dies.

use std::collections::BTreeMap;

use undaunted_engine::id::StartId;
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::workflow::Action;
use undaunted_policy::FailureCause;

use super::{AttemptFate, StartedAttempt, failed};
use crate::drive::JobContext;
use crate::machine::CancelCall;

#[derive(Default)]
pub(crate) struct Calls {
    under_way: BTreeMap<StartId, CancelCall>,
}

impl Calls {
    /// Begins a call, unless the engine is leaving and would miss the answer.
    pub(super) fn begin(
        &mut self,
        start: StartId,
        context: &JobContext<'_>,
        call: impl FnOnce() -> CancelCall,
    ) {
        if context.shutdown.is_immediate() {
            let error = "cancelled before it began";
            return context.fail(start, FailureCause::Interrupted, error);
        }
        self.under_way.insert(start, call());
    }

    pub(super) fn forget(&mut self, start: StartId) {
        self.under_way.remove(&start);
    }

    /// Cancels a call. Its end is returned, not reported.
    pub(super) fn cancel(&mut self, start: StartId) -> Option<AttemptEnd> {
        let withdraw = self.under_way.remove(&start)?;
        withdraw();
        let error = "cancelled while waiting for the response";
        Some(failed(start, FailureCause::Interrupted, error))
    }

    /// The answer was lost with the engine that waited for it, unless the service has accepted the attempt
    /// and sends the result later. A step of a flow is called again without delay.
    pub(super) fn fate_after_crash(attempt: &StartedAttempt<'_>) -> AttemptFate {
        if attempt.is_accepted {
            return AttemptFate::Wait;
        }
        let error = "the engine died before the response arrived";
        AttemptFate::Ended(Box::new(AttemptEnd {
            at_once: matches!(attempt.action, Some(Action::Step(_))),
            ..failed(attempt.start, FailureCause::Interrupted, error)
        }))
    }
}
