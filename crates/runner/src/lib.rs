//! Doing the work: commands are started here, and what they leave is kept here.
//!
//! Commands outlive the engine. A [`keeper`] process starts them and notes in a [`spool`] what it
//! starts and how it ends; when the engine is killed, the keeper and its commands go on, and the
//! next engine collects. The crate decides nothing about retries: it says what happened, exactly,
//! and where that cannot be known it says so.
//!
//! Linux only: a subreaper, `/proc` and process descriptors carry the promise.

mod bytes;
pub mod keeper;
mod process;
pub mod spool;

pub use bytes::Malformed;
