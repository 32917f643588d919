//! Archives: files of jobs that have ended, moved out of the store and restored to it.
//!
//! An archive is the journal of one job, in lines of JSON that any tool can read. It is written atomically,
//! and shows when it was cut or altered. The job stays in the store until its file was read back, so a crash
//! loses nothing; archiving it again finishes.

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
