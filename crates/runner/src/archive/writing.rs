//! Writing an archive, atomically and synced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crc32fast::Hasher;
use undaunted_store::{Store, Version};

use super::error::ArchiveError;
use super::format::{ArchiveHeader, last_line, record_line};
use crate::failpoint;
use crate::folder::private_folder;
use crate::journal::{self, JournalError};

pub(super) fn write(store: &dyn Store, header: &ArchiveHeader, path: &Path) -> Result<(), ArchiveError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    private_folder(folder).map_err(ArchiveError::io(folder))?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let written = write_beside(store, header, &beside).and_then(|()| {
        failpoint::reach("archive-before-rename", 1);
        fs::rename(&beside, path).map_err(ArchiveError::io(path))?;
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(ArchiveError::io(folder))
    });
    if written.is_err() {
        // If this fails, the next archive of the job replaces it.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn write_beside(store: &dyn Store, header: &ArchiveHeader, path: &Path) -> Result<(), ArchiveError> {
    let about = ArchiveError::io(path);
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let mut lines = ArchiveWriter { out: BufWriter::new(file.map_err(&about)?), sum: Hasher::new() };
    lines.add(&header.line()).map_err(&about)?;
    let aggregate = journal::aggregate(&header.job)?;
    let records = store.read(&aggregate, Version::EMPTY);
    for read in records.map_err(JournalError::from)? {
        let (version, bytes) = read.map_err(JournalError::from)?;
        let record = journal::decode(&header.job, version, &bytes)?;
        let line = record_line(version, &record, &bytes);
        lines.add(&line).map_err(&about)?;
    }
    lines.end(header.records).map_err(&about)
}

struct ArchiveWriter {
    out: BufWriter<File>,
    sum: Hasher,
}

impl ArchiveWriter {
    fn add(&mut self, line: &str) -> io::Result<()> {
        for part in [line, "\n"] {
            self.sum.update(part.as_bytes());
            self.out.write_all(part.as_bytes())?;
        }
        Ok(())
    }

    fn end(mut self, records: u64) -> io::Result<()> {
        let last = last_line(records, self.sum.finalize());
        self.out.write_all(last.as_bytes())?;
        self.out.write_all(b"\n")?;
        let file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()
    }
}
