//! The machine a loop runs on: what time it is there, and who does what jobs ask for.
//!
//! Everything the loop knows of the world outside its store goes through one trait. [`Here`] is the
//! machine this process runs on; a simulation is another, with its own time, processes and files.

mod asked;
mod ending;
mod here;
mod keeping;

pub use asked::{Machine, Withdraw};
pub(crate) use ending::most;
pub use ending::{Endings, Expected, OnRecord, Outputs};
pub use here::Here;
pub use keeping::{Keeping, Reach, ReachedKeeper};
