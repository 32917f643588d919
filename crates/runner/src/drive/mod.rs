//! Running jobs: the event loop around the engine's three functions.
//!
//! Decisions are committed; once they are on disk their effects are carried out, and the outcome of an effect
//! is the next input. Recovery after a crash is the same loop, starting from the end of the journal.
//!
//! The state of a job may be ahead of the disk by the records that are being written. That is not visible
//! outside: an effect waits for the records that led to it, and if these cannot be written, the state is
//! discarded and folded again from the journal.

mod act;
mod admit;
mod breakers;
mod commit;
mod context;
mod error;
mod event_loop;
mod handle;
mod handle_message;
mod job_journal;
mod message;
mod observe;
mod polling;
mod reconnect;
mod reports;
mod results;
mod running;
mod snapshot;
mod starter;
mod store_answers;
mod sub_flows;

pub(crate) use context::JobContext;

pub use error::DriveError;
pub use event_loop::{EventLoop, JobResult, WatchJobs, in_background};
pub use handle::LoopHandle;
pub use message::{DeliveryOutcome, Notifier};
pub use observe::{NoJobObserver, Observer, StoreOutage};
pub use results::{ItemResult, ResultStatus, read_results};
pub use running::Services;
