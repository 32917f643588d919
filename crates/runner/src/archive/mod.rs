//! Archives: jobs that have ended, moved from the store to files and restored from them.
//!
//! An archive is the journal of one job, in lines of JSON that any tool can read. It is written atomically,
//! and a file that was cut or altered is detected. The job stays in the store until the file has been read
//! back, so a crash loses nothing; archiving the job again finishes the work.

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
