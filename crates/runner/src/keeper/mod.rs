//! The keeper: a small process that starts the engine's commands and survives the engine.
//!
//! It is the parent of every command, records in the spool what it starts and how it ends, and enforces
//! timeouts with or without an engine. It knows nothing of jobs, retries or policies. [`KeeperClient`] is the
//! engine's side, [`main`] the keeper process itself.

use ledger::KeeperLedger;
use message::{KeeperFrame, KeeperReply, KeeperRequest, framed, holds_frame, next_frame};
use redaction::OutputRedaction;
use run::{KeeperRun, RunState, RunStep};
use shared::KeeperShared;

mod client;
mod command;
mod ledger;
mod message;
mod recover;
mod redaction;
mod run;
mod serve;
mod shared;
mod worker;

pub use client::{KeeperClient, KeeperError, KeeperEvent, LaunchedKeeper, WaitingKeeper};
pub use message::{CommandSpec, KeeperRefusal};
#[doc(hidden)]
pub use message::{messages, reread_reply, reread_request, understood};
pub use recover::recover;
pub use serve::{folder_from_engine, main};
