//! Doing the work: jobs are run here, commands started, and what they leave is kept.
//!
//! [`drive`] is the loop around the engine: it writes what was decided, has it done, and reports what
//! happened. Commands outlive it. A [`keeper`] process starts them and notes in a [`spool`] what it
//! starts and how it ends; when the engine is killed, the keeper and its commands go on, and the
//! next engine collects. The crate decides nothing about retries: it says what happened, exactly,
//! and where that cannot be known it says so.
//!
//! Linux only: a subreaper, `/proc` and process descriptors carry the promise.

pub mod archive;
pub mod breakers;
pub mod catalog;
mod causes;
pub mod clock;
mod codec;
mod complaint;
pub mod drive;
pub mod embed;
pub mod endpoints;
mod executor;
#[cfg(feature = "failpoints")]
pub mod failpoint;
#[cfg(not(feature = "failpoints"))]
mod failpoint;
pub mod flows;
pub mod folder;
mod index_file;
pub mod journal;
pub mod keeper;
mod known;
mod lock;
pub mod machine;
mod process;
pub mod reader;
pub mod redact;
pub mod request;
pub mod secrets;
pub mod spool;

pub use causes::with_causes;
pub use executor::{
    AttemptFate, ExecutorMessage, FunctionOrder, HttpAnswer, HttpOrder, NewFile, ReadItems, StepResult,
    is_there, judged, step_result,
};
pub use process::{random_name, random_number};
