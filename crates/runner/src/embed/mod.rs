//! Durable jobs inside a Rust program: commands that are its own async functions.
//!
//! A program registers its [`Functions`] by name, opens a [`Runner`] on a folder and begins jobs in it. Such
//! a job follows the same rules as one of shell commands: every start is on disk before the function is
//! called, every outcome is on disk before anything depends on it, and retries, budgets, breakers, pools,
//! deadlines and dead letters work the same way. The `undaunted` command line shows and explains it like any
//! other job; only a program with the same functions can resume it.
//!
//! ```no_run
//! use serde_json::json;
//! use undaunted_runner::embed::{FunctionAttempt, FunctionResult, Functions, JobDescription, Runner};
//!
//! async fn charge(attempt: FunctionAttempt) -> FunctionResult {
//!     let order: u64 = attempt.input()?;
//!     Ok(json!({ "order": order, "receipt": attempt.receipt_token() }))
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runner = Runner::open("/var/lib/orders", Functions::new().with("charge", charge))?;
//! let orders = JobDescription::each("charge", 1..=20).max_parallel(4).retry(json!({"attempts": 3}));
//! let finished = runner.begin("monday", &orders)?.wait()?;
//! for result in finished.results()? {
//!     println!("{} {}", result.item, result.status);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # After a crash
//!
//! Call [`Runner::begin`] with the same name and description again: the runner recovers the job from its
//! journal and resumes it. Items whose outcome is on record are not run again, and retries keep their due
//! times. An attempt whose outcome was not recorded counts as interrupted and is retried as the policy
//! allows, so a function may be called again for work that it has already done. Use
//! [`FunctionAttempt::receipt_token`] to detect that.

#![warn(missing_docs)]
#![warn(clippy::must_use_candidate, clippy::missing_errors_doc)]

mod error;
mod finished;
mod job_description;
mod runner;

pub use error::EmbedError;
pub use finished::{FinishedJob, ItemResult, ResultStatus};
pub use job_description::JobDescription;
pub use runner::{Runner, RunningJob};

pub use crate::executor::{FunctionAttempt, FunctionFailure, FunctionResult, Functions};
