//! Work that an engine waits for, and that is over when the engine dies.

use std::collections::BTreeMap;

use undaunted_engine::input::AttemptEnd;
use undaunted_engine::workflow::Action;
use undaunted_policy::Cause;

use super::{AttemptFate, Started, failed};
use crate::drive::JobContext;
use crate::machine::Withdraw;

/// Requests, or calls of functions, that are under way, by the number of the start.
#[derive(Default)]
pub(crate) struct Calls {
    under_way: BTreeMap<u64, Withdraw>,
}

impl Calls {
    /// Begins one, unless the engine leaves: it would not hear the answer.
    pub(super) fn begin(
        &mut self,
        start: u64,
        context: &JobContext<'_>,
        call: impl FnOnce() -> Withdraw,
    ) {
        if context.leaving.is_at_once() {
            let error = "it was ended before it began";
            return context.end(failed(start, Cause::Interrupted, error));
        }
        self.under_way.insert(start, call());
    }

    /// One is not waited for any more.
    pub(super) fn forget(&mut self, start: u64) {
        self.under_way.remove(&start);
    }

    /// Ends one; how it ended is told here, and no longer by whoever waited for it.
    pub(super) fn cancel(&mut self, start: u64) -> Option<AttemptEnd> {
        let withdraw = self.under_way.remove(&start)?;
        withdraw();
        let error = "it was ended while the answer was waited for";
        Some(failed(start, Cause::Interrupted, error))
    }

    /// The answer to a call was lost with the engine that waited for it, unless it is on record that it
    /// comes later. A step of a flow is called again without delay.
    pub(super) fn fate_after_crash(attempt: &Started<'_>) -> AttemptFate {
        if attempt.is_accepted {
            return AttemptFate::Wait;
        }
        let error = "whoever waited for its answer died before it came";
        AttemptFate::Ended(Box::new(AttemptEnd {
            at_once: matches!(attempt.action, Some(Action::Step(_))),
            ..failed(attempt.start, Cause::Interrupted, error)
        }))
    }
}
