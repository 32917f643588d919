//! The default store: a folder with a SQLite database.
//!
//! `undaunted.db` holds the journals, in SQLite's WAL mode with a sync for every commit; any SQLite tool
//! opens it. Next to it are `owners/`, with one locked file for each open handle, and `snapshots/`, which may
//! be deleted; `reserve` is room for removing data on a full disk. Decision 0007 gives the reasons.

mod checkpoint;
mod classify;
mod compaction;
mod connection;
mod connections;
mod folder;
mod heads;
mod journal_reader;
mod network;
mod owners;
mod questions;
mod record_codec;
mod schema;
mod snapshots;
mod store;
mod transaction;
mod writer;

pub use schema::FORMAT;
pub use store::{SqliteOptions, SqliteStore};

use connections::ReadConnections;
use folder::StoreFolder;
use heads::{HeadCache, JournalHead};
use journal_reader::JournalReader;
use owners::OwnerFile;
use record_codec::{Damage, RecordCodec};
use transaction::{ChangeResult, StoreTransaction};
use writer::Broken;
