//! A job as bytes, to be gone on with without reading all that has happened to it.
//!
//! Everything a saved job says its journal says too. So it is of no use to anybody but the release
//! that wrote it: another one reads the journal. What follows from the rest (which items wait, which
//! steps are open) is not saved but found again.

mod active;
mod codec;
mod form;
mod items;
mod step;
mod whole;

pub use whole::SavedError;

pub(super) use codec::{json_map, progress};
