//! The machine an event loop runs on: its clocks, files, processes and network.
//!
//! The loop reaches everything outside its store through one trait. [`LocalMachine`] is the machine this
//! process runs on; a simulation is another, with its own time, processes and files.

mod command_host;
mod ending;
mod interface;
mod local;

pub use command_host::{CommandHost, KeeperAddress, ReachedKeeper};
pub(crate) use ending::most;
pub use ending::{AttemptEnds, CapturedOutputs, ExpectedEnd, RecordedAttempt};
pub use interface::{CancelCall, Machine};
pub use local::LocalMachine;
