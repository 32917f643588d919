//! A job as bytes, to resume it without reading its whole journal.
//!
//! A saved job says nothing that its journal does not, so only the release that wrote it uses it; another
//! release reads the journal. What can be derived (which items wait, which steps are open) is not saved.

mod active;
mod codec;
mod form;
mod items;
mod step;
mod whole;

pub use whole::SavedError;

pub(super) use codec::{json_map, progress};
