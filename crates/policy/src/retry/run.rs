//! Retrying async calls.

use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use super::builder::{Classify, Observe, Retry};
use super::clock::AsyncClock;
use super::stopped::Stopped;
use super::trial::{Gate, Trial};
use crate::breaker::Health;
use crate::reason::Reason;

impl<C, H, K: AsyncClock> Retry<C, H, K> {
    /// Makes the call, again and again if need be, and waits in between. Dropping the future ends
    /// everything at once.
    ///
    /// # Errors
    /// Why no further attempt is made, with the last error.
    #[inline]
    pub async fn run<T, E, F>(&self, mut operation: impl FnMut() -> F) -> Result<T, Stopped<E>>
    where
        F: Future<Output = Result<T, E>>,
        C: Classify<E>,
        H: Observe<E>,
    {
        if !self.at_once {
            let limit = self.policy.terms.limits.deadline;
            let deadline = limit.map(|limit| self.clock.now().after(limit));
            return self.run_on(Trial::start(deadline), None, operation).await;
        }
        match operation().await {
            Ok(value) => Ok(value),
            // Boxed: the state of a call that fails would make every call that succeeds larger.
            Err(error) => Box::pin(self.run_on(Trial::after_first(), Some(error), operation)).await,
        }
    }

    /// Goes on with a call, whose last attempt may have failed with `error`.
    async fn run_on<T, E, F>(
        &self,
        mut trial: Trial,
        mut error: Option<E>,
        mut operation: impl FnMut() -> F,
    ) -> Result<T, Stopped<E>>
    where
        F: Future<Output = Result<T, E>>,
        C: Classify<E>,
        H: Observe<E>,
    {
        let mut pass = None;
        loop {
            if let Some(failed) = &error {
                match trial.failed(self, failed, pass.take(), self.clock.now()) {
                    Ok(wait) => self.pause(wait).await,
                    Err(verdict) => {
                        let reason = verdict.reason().unwrap_or(Reason::Attempts);
                        return Err(trial.stopped(reason, error, Some(verdict)));
                    }
                }
            }
            pass = loop {
                match trial.gate(self, self.clock.now()) {
                    Gate::Go(pass) => break pass,
                    Gate::Wait(wait) => self.pause(wait).await,
                    Gate::Stop(reason) => return Err(trial.stopped(reason, error, None)),
                }
            };
            match operation().await {
                Ok(value) => {
                    if let Some(pass) = pass {
                        pass.ends(Health::Up, self.clock.now());
                    }
                    return Ok(value);
                }
                Err(failed) => error = Some(failed),
            }
        }
    }

    /// Waits this long, or until the call is cancelled.
    async fn pause(&self, wait: Duration) {
        let mut waited = pin!(self.clock.wait(wait));
        let Some(cancel) = &self.cancel else {
            return waited.await;
        };
        let mut cancelled = pin!(cancel.cancelled());
        poll_fn(|context| {
            if cancelled.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            waited.as_mut().poll(context)
        })
        .await;
    }
}
