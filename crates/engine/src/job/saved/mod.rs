//! A job as bytes, to be gone on with without reading all that has happened to it.
//!
//! Everything a saved job says its journal says too. So it is of no use to anybody but the release
//! that wrote it: another one reads the journal. What follows from the rest (which items wait, which
//! steps are open) is not saved but found again.

mod active;
mod codec;
mod items;
mod step;
mod whole;

pub use whole::SavedError;

pub(super) use codec::{json_map, progress};

/// Writes to memory.
type To<'b> = minicbor::Encoder<&'b mut Vec<u8>>;
/// What writing to memory comes to: it cannot fail.
type Put = Result<(), minicbor::encode::Error<std::convert::Infallible>>;
/// What reading comes to.
type Take<T> = Result<T, minicbor::decode::Error>;
