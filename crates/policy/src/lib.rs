//! When to try again, when to stop, and why.
//!
//! This crate decides and performs nothing. A [`Policy`] describes how a failing operation is retried, and
//! [`verdict`] says what to do about one [`Failure`]: try again at an instant, hold, or stop, with a reason
//! from a closed list and the arithmetic behind it. Time and randomness are arguments, so equal arguments
//! give equal verdicts: a schedule can be printed before it is run, a decision can be explained after a
//! crash, and a test needs no clock.
//!
//! ```
//! use std::time::Duration;
//! use undaunted_policy::{Failure, RetryConfig, RetryState, Timestamp, verdict};
//!
//! let policy = RetryConfig::exponential(2.0)
//!     .attempts(100)
//!     .retry_budget(Duration::from_secs(5))
//!     .build()?;
//!
//! let mut state = RetryState::default();
//! let mut now = Timestamp::ZERO;
//! let verdicts: Vec<String> = (0..3)
//!     .map(|_| {
//!         let verdict = verdict(&policy, &state, &Failure::transient(), now);
//!         state.progress = verdict.progress(state.progress);
//!         verdict.to_string()
//!     })
//!     .collect();
//! assert_eq!(verdicts, [
//!     "retry 1 of 100 (attempt 2 of 101) in 1s",
//!     "retry 2 of 100 (attempt 3 of 101) in 2s",
//!     "Retry budget exhausted (spent 3s, next delay 4s, budget 5s)",
//! ]);
//! # Ok::<(), undaunted_policy::PolicyError>(())
//! ```
//!
//! The module `retry` (features `tokio` and `blocking`) makes the calls and waits in between.
//!
//! # Features
//!
//! No feature is on by default. Without features the crate has no dependencies.
//!
//! | feature | what it adds |
//! |---|---|
//! | `serde` | reads `retry_config` and `work_config` in every spelling; saves and restores every state exactly |
//! | `regex` | rules and `retry_on` that match text |
//! | `tokio` | `retry::Retry::run`: retry an async call |
//! | `blocking` | `retry::Retry::call`: retry a blocking call |
//!
//! Saved state is restored exactly if the format keeps numbers exactly, as `serde_json` does with its feature
//! `float_roundtrip`.

#![warn(missing_docs)]
#![warn(clippy::must_use_candidate, clippy::missing_errors_doc)]
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod backoff;
mod breaker;
mod completion;
mod config;
mod delay;
mod draw;
mod error;
mod failure;
mod grain;
mod jitter;
mod kind;
mod limits;
mod pattern;
mod policy;
mod pool;
mod reason;
#[cfg(any(feature = "tokio", feature = "blocking"))]
pub mod retry;
mod rules;
mod schedule;
#[cfg(feature = "serde")]
pub mod spelling;
mod strategy;
mod timestamp;
mod tolerance;
mod verdict;

pub use backoff::Backoff;
pub use breaker::{Admission, Breaker, BreakerSettings, CircuitState, Health, Ticket, Transition, WhenOpen};
pub use completion::{Completion, CompletionReason, CompletionRule, CompletionTally};
pub use config::{JitterMode, RetryConfig};
pub use delay::{Delay, Pace};
pub use draw::{Draws, Seed};
pub use error::PolicyError;
pub use failure::{Failure, FailureCause, FailureClass, SIGNAL_NAMES, signal_name, signal_number};
pub use jitter::Jitter;
pub use kind::FailureKind;
pub use limits::{Attempts, Limits, RetryProgress};
pub use pattern::Pattern;
pub use policy::{Policy, Terms};
pub use pool::{Pool, PoolBalance, PoolCeilings, PoolLimits};
pub use reason::{Reason, UnknownReason};
pub use rules::{ClassName, Conditions, RetryOn, Rule, RuleAction, Rules};
pub use schedule::{PlannedRetry, Schedule};
pub use strategy::{Parameter, ParameterKind, Strategy};
pub use timestamp::Timestamp;
pub use tolerance::Tolerance;
pub use verdict::{Arithmetic, Decision, RetryState, Verdict, verdict};
