//! The lines of an archive, and why a job cannot be archived or restored.
//!
//! The first line names the job and the number of records. One line for each record follows, with its bytes
//! in hexadecimal and with its time and type for text search. The last line has the checksum of all lines
//! before it.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use undaunted_engine::event::Record;
use undaunted_engine::view::rfc3339;
use undaunted_store::Version;

use crate::JournalError;

pub(super) const VERSION: u64 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArchiveHeader {
    pub(super) job: String,
    pub(super) records: u64,
}

impl ArchiveHeader {
    pub(super) fn line(&self) -> String {
        format!(
            r#"{{"undaunted":"archive","version":{VERSION},"job":{},"records":{}}}"#,
            Value::from(self.job.as_str()),
            self.records,
        )
    }
}

pub(super) fn record_line(version: Version, record: &Record, bytes: &[u8]) -> String {
    let mut line = format!(
        r#"{{"seq":{version},"at":"{}","type":"{}","record":""#,
        rfc3339(record.at),
        record.event.word(),
    );
    for byte in bytes {
        // Writing to memory cannot fail.
        let _ = write!(line, "{byte:02x}");
    }
    line.push_str("\"}");
    line
}

pub(super) fn last_line(records: u64, checksum: u32) -> String {
    format!(r#"{{"end":{records},"crc32":"{checksum:08x}"}}"#)
}

pub(super) fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let bytes = pairs.iter().map(|&[high, low]| {
        let number = digit(high)?.checked_mul(16)?.checked_add(digit(low)?)?;
        u8::try_from(number).ok()
    });
    bytes.collect()
}

/// The file name for a job. A name that would leave the folder is refused, since an archive from elsewhere
/// may hold any name, and the name of a job is also that of its local folder.
pub(super) fn file_name(job: &str) -> Result<String, ArchiveError> {
    if job.contains(['/', '\0']) || matches!(job, "" | "." | "..") {
        return Err(ArchiveError::NoName { job: job.to_owned() });
    }
    Ok(format!("{job}.undaunted.jsonl"))
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    #[error("job {job} is not finished")]
    NotEnded { job: String },
    #[error("job {job} is part of job {parent}, which is not finished")]
    Awaited { job: String, parent: String },
    #[error("`{job}` cannot be used as the name of an archive file")]
    NoName { job: String },
    #[error("`{path}` already exists and is not an archive of job {job}")]
    InTheWay { path: PathBuf, job: String },
    #[error("line {line} of `{path}`: {what}")]
    Unfit {
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        what: String,
    },
    #[error(
        "line 1 of `{path}`: the archive has version {found}; this release reads versions up to {VERSION}"
    )]
    Newer { path: PathBuf, found: u64 },
    #[error("job {job} already exists and differs from the one in the file")]
    Exists { job: String },
    #[error("cannot use `{path}`")]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl ArchiveError {
    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        |source| Self::Io { path: path.to_owned(), source }
    }
}
