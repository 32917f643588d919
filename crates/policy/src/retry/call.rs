//! Retrying calls that block the thread.

use super::builder::{Classify, Observe, Retry};
use super::call_state::{CallState, StartDecision, StopCause};
use super::clock::BlockingClock;
use super::stopped::Stopped;

impl<C, H, K: BlockingClock> Retry<C, H, K> {
    /// Makes the call and repeats it after the delays of the policy until it succeeds or the policy stops.
    ///
    /// # Errors
    /// [`Stopped`]: why no further attempt is made, with the last error.
    #[inline]
    pub fn call<T, E>(&self, mut operation: impl FnMut() -> Result<T, E>) -> Result<T, Stopped<E>>
    where
        C: Classify<E>,
        H: Observe<E>,
    {
        if !self.starts_unchecked {
            let limit = self.policy.terms.limits.deadline;
            let deadline = limit.map(|limit| self.clock.now().after(limit));
            return self.call_after(CallState::start(deadline), None, operation);
        }
        match operation() {
            Ok(value) => Ok(value),
            Err(error) => self.call_after(CallState::after_first(), Some(error), operation),
        }
    }

    /// The attempts after a first one that failed with `error`, or all attempts if `error` is `None`.
    fn call_after<T, E>(
        &self,
        mut state: CallState,
        mut error: Option<E>,
        mut operation: impl FnMut() -> Result<T, E>,
    ) -> Result<T, Stopped<E>>
    where
        C: Classify<E>,
        H: Observe<E>,
    {
        let mut pass = None;
        loop {
            if let Some(failed) = &error {
                match state.failed(self, failed, pass.take(), self.clock.now()) {
                    Ok(wait) => self.clock.wait(wait, self.cancel.as_ref()),
                    Err(cause) => return Err(state.stopped(cause, error)),
                }
            }
            pass = loop {
                match state.start_attempt(self, || self.clock.now()) {
                    StartDecision::Start(pass) => break pass,
                    StartDecision::Wait(wait) => self.clock.wait(wait, self.cancel.as_ref()),
                    StartDecision::Stop(reason) => {
                        return Err(state.stopped(StopCause::without_verdict(reason), error));
                    }
                }
            };
            match operation() {
                Ok(value) => {
                    if let Some(pass) = pass {
                        pass.succeeds();
                    }
                    return Ok(value);
                }
                Err(failed) => error = Some(failed),
            }
        }
    }
}
