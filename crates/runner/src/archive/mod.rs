//! Jobs that have ended, as files: out of the store, and back.
//!
//! An archive is the journal of one job, in lines of JSON that any tool can look into. It is there as
//! a whole or not at all, and says when it was cut or altered. The job is in the store until its file
//! is known to be good, so that whoever is killed in between loses nothing; doing it again finishes it.

mod error;
mod format;
mod put;
mod reading;
mod restore;
#[cfg(test)]
mod tests;
mod writing;

pub use error::ArchiveError;
pub use put::archive;
pub use restore::restore;
#[doc(hidden)]
pub use restore::restore_from;
