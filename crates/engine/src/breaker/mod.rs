//! Breakers: one for each target, shared by all jobs of a store.
//!
//! A breaker has a journal of its own. Every record of it holds the whole state it led to, so the
//! last one is all that has to be read. A job sees its breakers as they were last read and as its own
//! starts and results have changed them since; when another job was faster, what this one wanted to
//! write is put together again from what was told.

mod known;
mod record;
mod redo;
mod release;
mod state;

pub use known::{Breakers, Told};
pub use record::{BreakerRecord, Change};
pub use release::Openness;
pub use state::{BreakerState, Probe, Signal};
