//! The machine an event loop runs on: its clocks, files, processes and network.
//!
//! The loop reaches everything outside its store through one trait. [`Here`] is the machine this process
//! runs on; a simulation is another, with its own time, processes and files.

mod asked;
mod ending;
mod here;
mod keeping;

pub use asked::{Machine, Withdraw};
pub(crate) use ending::most;
pub use ending::{Endings, Expected, OnRecord, Outputs};
pub use here::Here;
pub use keeping::{Keeping, Reach, ReachedKeeper};
