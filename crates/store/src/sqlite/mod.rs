//! A store in a folder, with SQLite: the default.
//!
//! `undaunted.db` holds the journals, in SQLite's WAL mode with a sync for every commit; any SQLite
//! tool opens it. Beside it are `owners/`, one locked file for each open handle, and `snapshots/`, which
//! may be deleted. Decision 0007 gives the reasons.

mod asker;
mod checkpoint;
mod classify;
mod frame;
mod heads;
mod ledger;
mod network;
mod owners;
mod place;
mod readers;
mod reading;
mod schema;
mod snapshots;
mod store;
mod task;
mod trim;
mod writer;

pub use schema::FORMAT;
pub use store::{SqliteOptions, SqliteStore};
