//! Retry a call that may fail: `Retry::run` for async calls, `Retry::call` for blocking calls.
//!
//! Policy, waiting and calling are separate. The policy is data, every decision is made by
//! [`verdict`](crate::verdict()), and the clock is a parameter, so that code that retries can be tested
//! without sleeping. A call that succeeds at once allocates nothing, draws no random number and, unless it
//! has a deadline, reads no clock. No wait needs a task of its own.
//!
//! # An HTTP call
//!
//! The classifier turns an error into facts, here a status and the server's `Retry-After`.
//!
//! ```
//! # #[cfg(feature = "tokio")] {
//! use std::time::Duration;
//! use undaunted_policy::retry::Retry;
//! use undaunted_policy::{Failure, FailureCause, JitterMode, RetryConfig};
//!
//! #[derive(Debug)]
//! enum HttpError {
//!     Connect,
//!     Status { code: u16, retry_after: Option<Duration> },
//! }
//!
//! async fn fetch(url: &str) -> Result<String, HttpError> {
//! #   if url.is_empty() { return Err(HttpError::Connect) }
//! #   if url.len() > 99 { return Err(HttpError::Status { code: 429, retry_after: None }) }
//!     // reqwest, hyper, …
//!     Ok(format!("body of {url}"))
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let policy = RetryConfig::new()
//!     .attempts(5)
//!     .initial_delay(Duration::from_millis(200))
//!     .jitter(JitterMode::Full)
//!     .retry_statuses([429..=429])
//!     .build()?;
//! let retry = Retry::new(policy).classify(|error: &HttpError| match *error {
//!     HttpError::Connect => Failure::new(FailureCause::Network),
//!     HttpError::Status { code, retry_after } => Failure::status(code).retry_after(retry_after),
//! });
//!
//! let body = retry.run(|| fetch("http://localhost/items")).await.unwrap();
//! assert_eq!(body, "body of http://localhost/items");
//! # Ok::<(), undaunted_policy::PolicyError>(())
//! # }).unwrap();
//! # }
//! ```
//!
//! # A database call
//!
//! ```
//! # #[cfg(feature = "blocking")] {
//! use std::time::Duration;
//! use undaunted_policy::retry::Retry;
//! use undaunted_policy::{Failure, Reason, RetryConfig};
//!
//! #[derive(Debug, PartialEq)]
//! enum DbError { SerializationFailure, UniqueViolation }
//!
//! let policy = RetryConfig::linear(Duration::from_millis(5))
//!     .attempts(10)
//!     .initial_delay(Duration::from_millis(1))
//!     .retry_budget(Duration::from_millis(100))
//!     .build()?;
//! let retry = Retry::new(policy).classify(|error: &DbError| match error {
//!     DbError::SerializationFailure => Failure::transient(),
//!     DbError::UniqueViolation => Failure::permanent(),
//! });
//!
//! let mut conflicts = 2;
//! let rows = retry.call(|| match conflicts {
//!     0 => Ok(3),
//!     _ => { conflicts -= 1; Err(DbError::SerializationFailure) }
//! });
//! assert_eq!(rows.unwrap(), 3);
//!
//! let stopped = retry.call(|| Err::<(), _>(DbError::UniqueViolation)).unwrap_err();
//! assert_eq!((stopped.reason(), stopped.attempts()), (Reason::Permanent, 1));
//! assert_eq!(stopped.into_error(), Some(DbError::UniqueViolation));
//! # }
//! # Ok::<(), undaunted_policy::PolicyError>(())
//! ```
//!
//! # A budget shared by many calls
//!
//! However many calls fail at once, all of them together retry only as often as the pool allows.
//!
//! ```
//! # #[cfg(feature = "blocking")] {
//! use undaunted_policy::retry::{ManualClock, Retry, SharedPool};
//! use undaunted_policy::{Policy, Reason};
//!
//! let pool = SharedPool::new(4, 3); // 4 retries for all calls, 3 for any one of them
//! let retry = Retry::new(Policy::DEFAULT).pool(&pool).clock(ManualClock::default());
//!
//! let mut calls = 0;
//! for (attempts, reason) in [
//!     (4, Reason::Attempts),
//!     (2, Reason::JobBudgetExhausted),
//!     (1, Reason::JobBudgetExhausted),
//! ] {
//!     let stopped = retry.call(|| { calls += 1; Err::<(), _>("down") }).unwrap_err();
//!     assert_eq!((stopped.attempts(), stopped.reason()), (attempts, reason));
//! }
//! assert_eq!(calls, 3 + 4);
//! # }
//! ```
//!
//! # A breaker
//!
//! ```
//! # #[cfg(feature = "blocking")] {
//! use undaunted_policy::retry::{ManualClock, Retry, SharedBreaker};
//! use undaunted_policy::{BreakerSettings, Policy, Reason, WhenOpen};
//!
//! let breaker = SharedBreaker::new(BreakerSettings {
//!     failure_threshold: 2,
//!     when_open: WhenOpen::Fail,
//!     ..BreakerSettings::DEFAULT
//! });
//! let retry = Retry::new(Policy::ONCE).breaker(&breaker).clock(ManualClock::default());
//!
//! for _ in 0..2 {
//!     assert_eq!(retry.call(|| Err::<(), _>("down")).unwrap_err().reason(), Reason::Attempts);
//! }
//! let stopped = retry.call(|| Ok::<_, &str>("never asked")).unwrap_err();
//! assert_eq!((stopped.reason(), stopped.attempts()), (Reason::CircuitOpen, 0));
//! # }
//! ```
//!
//! # Testing with a manual clock
//!
//! Time passes only by waiting and the seed fixes the jitter, so the test is exact and takes no time.
//!
//! ```
//! # #[cfg(feature = "blocking")] {
//! use std::time::Duration;
//! use undaunted_policy::retry::{ManualClock, Retry};
//! use undaunted_policy::{JitterMode, RetryConfig, Seed};
//!
//! let policy = RetryConfig::new().attempts(3).jitter(JitterMode::PlusMinus).build()?;
//! let clock = ManualClock::default();
//! let retry = Retry::new(policy).clock(clock.clone()).seed(Seed(7));
//!
//! let mut left = 2;
//! let value = retry.call(|| if left == 0 { Ok("done") } else { left -= 1; Err("not yet") });
//! assert_eq!(value.unwrap(), "done");
//! assert_eq!(clock.waits(), [Duration::from_millis(757), Duration::from_millis(2247)]);
//! # }
//! # Ok::<(), undaunted_policy::PolicyError>(())
//! ```

mod builder;
mod call_state;
mod cancel;
mod clock;
mod shared_breaker;
mod shared_pool;
mod stopped;

#[cfg(feature = "blocking")]
mod call;
#[cfg(feature = "tokio")]
mod run;

pub use builder::{AlwaysTransient, Classify, NoObserver, Observe, Retry};
pub use cancel::CancelToken;
#[cfg(feature = "tokio")]
pub use clock::AsyncClock;
#[cfg(feature = "blocking")]
pub use clock::BlockingClock;
pub use clock::{ManualClock, SystemClock};
pub use shared_breaker::SharedBreaker;
pub use shared_pool::SharedPool;
pub use stopped::Stopped;

#[cfg(test)]
#[cfg(all(feature = "tokio", feature = "blocking"))]
mod tests;
