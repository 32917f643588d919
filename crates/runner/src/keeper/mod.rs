//! The keeper: a small process that starts the engine's commands and survives the engine.
//!
//! It is the parent of every command, records in the spool what it starts and how it ends, and enforces
//! timeouts with or without an engine. It knows nothing of jobs, retries or policies. [`KeeperClient`] is the
//! engine's side, [`main`] the keeper process itself.

mod client;
mod clock;
mod command;
mod connection;
mod family;
mod frame;
mod greeting;
mod launch;
mod ledger;
mod message;
mod reaper;
mod recover;
mod run;
mod serve;
mod shared;
mod spec;
mod start;
mod worker;

pub use client::{KeeperClient, KeeperError, KeeperEvent};
#[doc(hidden)]
pub use frame::messages;
#[doc(hidden)]
pub use greeting::understood;
pub use launch::LaunchedKeeper;
pub use message::KeeperRefusal;
#[doc(hidden)]
pub use message::{reread_reply, reread_request};
pub use recover::recover;
pub use serve::main;
pub use spec::CommandSpec;
