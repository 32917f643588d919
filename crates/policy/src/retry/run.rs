//! Retrying async calls.

use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use super::builder::{Classify, Observe, Retry};
use super::clock::AsyncClock;
use super::stopped::Stopped;
use super::trial::{End, Gate, Trial};

impl<C, H, K: AsyncClock> Retry<C, H, K> {
    /// Makes the call, again and again if need be, and waits in between. Dropping the future ends
    /// everything at once.
    ///
    /// # Errors
    /// Why no further attempt is made, with the last error.
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
            // Nothing but the call itself may live across this wait: each further value would be
            // written to memory, and its drop flag too, by every call that succeeds.
            let error = if self.at_once {
                match operation().await {
                    Ok(value) => return Ok(value),
                    Err(error) => Some(error),
                }
            } else {
                None
            };
            self.run_on(error, &mut operation).await
        }
    }

    /// Goes on with a call whose first attempt has failed with `error`, or was not made yet.
    async fn run_on<T, E, F>(
        &self,
        mut error: Option<E>,
        operation: &mut impl FnMut() -> F,
    ) -> Result<T, Stopped<E>>
    where
        F: Future<Output = Result<T, E>>,
        C: Classify<E>,
        H: Observe<E>,
    {
        let mut trial = if error.is_some() {
            Trial::after_first()
        } else {
            let limit = self.policy.terms.limits.deadline;
            Trial::start(limit.map(|limit| self.clock.now().after(limit)))
        };
        let mut pass = None;
        loop {
            if let Some(failed) = &error {
                match trial.failed(self, failed, pass.take(), self.clock.now()) {
                    Ok(wait) => self.pause(wait).await,
                    Err(end) => return Err(trial.stopped(end, error)),
                }
            }
            pass = loop {
                match trial.gate(self, || self.clock.now()) {
                    Gate::Go(pass) => break pass,
                    Gate::Wait(wait) => self.pause(wait).await,
                    Gate::Stop(reason) => return Err(trial.stopped(End::bare(reason), error)),
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
