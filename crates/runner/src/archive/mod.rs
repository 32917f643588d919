//! Archives: jobs that have ended, moved from the store to files and restored from them.
//!
//! An archive is the journal of one job, in lines of JSON that any tool can read. It is written atomically,
//! and a file that was cut or altered is detected. The job stays in the store until the file has been read
//! back, so a crash loses nothing; archiving the job again finishes the work.

mod format;
mod put;
mod reading;
#[cfg(test)]
mod tests;

pub use format::ArchiveError;
#[doc(hidden)]
pub use put::restore_from;
pub use put::{archive, restore};

use format::{ArchiveHeader, file_name, last_line};
