//! Retrying calls that block the thread.

use super::builder::{Classify, Observe, Retry};
use super::clock::BlockingClock;
use super::stopped::Stopped;
use super::trial::{End, Gate, Trial};

impl<C, H, K: BlockingClock> Retry<C, H, K> {
    /// Makes the call, again and again if need be, and waits in between.
    ///
    /// # Errors
    /// Why no further attempt is made, with the last error.
    #[inline]
    pub fn call<T, E>(&self, mut operation: impl FnMut() -> Result<T, E>) -> Result<T, Stopped<E>>
    where
        C: Classify<E>,
        H: Observe<E>,
    {
        if !self.at_once {
            let limit = self.policy.terms.limits.deadline;
            let deadline = limit.map(|limit| self.clock.now().after(limit));
            return self.call_on(Trial::start(deadline), None, operation);
        }
        match operation() {
            Ok(value) => Ok(value),
            Err(error) => self.call_on(Trial::after_first(), Some(error), operation),
        }
    }

    /// Goes on with a call, whose last attempt may have failed with `error`.
    fn call_on<T, E>(
        &self,
        mut trial: Trial,
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
                match trial.failed(self, failed, pass.take(), self.clock.now()) {
                    Ok(wait) => self.clock.wait(wait, self.cancel.as_ref()),
                    Err(end) => return Err(trial.stopped(end, error)),
                }
            }
            pass = loop {
                match trial.gate(self, || self.clock.now()) {
                    Gate::Go(pass) => break pass,
                    Gate::Wait(wait) => self.clock.wait(wait, self.cancel.as_ref()),
                    Gate::Stop(reason) => return Err(trial.stopped(End::bare(reason), error)),
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
