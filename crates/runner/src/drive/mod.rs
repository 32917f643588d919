//! Running jobs: the event loop around the engine's three functions.
//!
//! Decisions are committed; once they are on disk their effects are carried out, and the outcome of an effect
//! is the next input. Recovery after a crash is the same loop, starting from the end of the journal.
//!
//! The state of a job may be ahead of the disk by the records that are being written. That is not visible
//! outside: an effect waits for the records that led to it, and if these cannot be written, the state is
//! discarded and folded again from the journal.

use act::action_of;
use breakers::BreakerCache;
use message::{AfterCommit, JobMessage, Message};
use running::JobDriver;

mod act;
mod breakers;
mod event_loop;
mod handle_message;
mod job_journal;
mod message;
mod observe;
mod polling;
mod reconnect;
mod reservations;
mod results;
mod running;
mod starter;
mod sub_flows;

pub(crate) use running::JobContext;

pub use event_loop::{EventLoop, JobResult, WatchJobs, in_background};
pub use message::{DeliveryOutcome, DriveError, LoopHandle, Notifier, TokenOwner};
pub use observe::{NoJobObserver, Observer, StoreOutage};
pub use results::{ItemResult, ResultStatus, read_results};
pub use running::Services;
