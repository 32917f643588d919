//! Retrying async calls.

use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use super::builder::{Classify, Observe, Retry};
use super::call_state::{CallState, StartDecision, StopCause};
use super::clock::AsyncClock;
use super::stopped::Stopped;

impl<C, H, K: AsyncClock> Retry<C, H, K> {
    /// Makes the call and repeats it after the delays of the policy until it succeeds or the policy stops.
    /// Dropping the future cancels the attempt or the wait in progress.
    ///
    /// # Errors
    /// [`Stopped`]: why no further attempt is made, with the last error.
    #[inline]
    #[expect(clippy::manual_async_fn, reason = "an async function writes its arguments to memory twice")]
    pub fn run<T, E, F>(
        &self,
        mut operation: impl FnMut() -> F,
    ) -> impl Future<Output = Result<T, Stopped<E>>>
    where
        F: Future<Output = Result<T, E>>,
        C: Classify<E>,
        H: Observe<E>,
    {
        async move {
            // Only the operation's future may live across this `await`: any other value, and its drop
            // flag, would be written to memory by every call that succeeds.
            let error = if self.starts_unchecked {
                match operation().await {
                    Ok(value) => return Ok(value),
                    Err(error) => Some(error),
                }
            } else {
                None
            };
            self.run_after(error, &mut operation).await
        }
    }

    /// The attempts after a first one that failed with `error`, or all attempts if `error` is `None`.
    async fn run_after<T, E, F>(
        &self,
        mut error: Option<E>,
        operation: &mut impl FnMut() -> F,
    ) -> Result<T, Stopped<E>>
    where
        F: Future<Output = Result<T, E>>,
        C: Classify<E>,
        H: Observe<E>,
    {
        let mut state = if error.is_some() {
            CallState::after_first()
        } else {
            let limit = self.policy.terms.limits.deadline;
            CallState::start(limit.map(|limit| self.clock.now().after(limit)))
        };
        let mut pass = None;
        loop {
            if let Some(failed) = &error {
                match state.failed(self, failed, pass.take(), self.clock.now()) {
                    Ok(wait) => self.pause(wait).await,
                    Err(cause) => return Err(state.stopped(cause, error)),
                }
            }
            pass = loop {
                match state.start_attempt(self, || self.clock.now()) {
                    StartDecision::Start(pass) => break pass,
                    StartDecision::Wait(wait) => self.pause(wait).await,
                    StartDecision::Stop(reason) => {
                        return Err(state.stopped(StopCause::without_verdict(reason), error));
                    }
                }
            };
            match operation().await {
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
