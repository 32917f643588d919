//! Durable jobs inside a program: commands that are its own async functions.
//!
//! A program registers [`Functions`] by name, opens a [`Runner`] on a folder and begins jobs in it. A
//! job is what it is everywhere else: every start is on the disk before the function is called, every
//! outcome before anything depends on it, and retries, budgets, breakers, pools, deadlines and dead
//! letters mean what they mean for shell commands. The command line shows and explains such jobs
//! like any other; only the program that has the functions can go on with them.
//!
//! After a crash, `begin` with the same name goes on where the journal ends: what had an outcome is not
//! called again, waits go on as they were, and an attempt whose outcome nobody recorded counts as
//! interrupted and is tried again as the policy allows. A function may therefore be called again for
//! something that it did and could not say; the receipt token of an attempt is there to notice that.

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
