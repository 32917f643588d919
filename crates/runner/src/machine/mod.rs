//! The machine an event loop runs on: its clocks, files, processes and network.
//!
//! The loop reaches everything outside its store through one trait. [`LocalMachine`] is the machine this
//! process runs on; a simulation is another, with its own time, processes and files.

mod ending;
mod interface;
mod local;

pub(crate) use ending::most;
pub use ending::{AttemptEnds, CapturedOutputs, ExpectedEnd, RecordedAttempt};
pub use interface::{CancelCall, CommandHost, KeeperAddress, Machine, ReachedKeeper};
pub use local::LocalMachine;
