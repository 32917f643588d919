//! A job as bytes, so that it can be resumed without reading its whole journal.
//!
//! A snapshot says nothing that the journal does not. Only the release that wrote it reads it; any other
//! release folds the journal, so this form may change with every release. What can be derived (which items
//! wait, which steps are open) is not saved.

mod codec;
mod items;
mod job;
mod step;

pub use job::SavedError;

pub(super) use codec::{json_map, progress};
