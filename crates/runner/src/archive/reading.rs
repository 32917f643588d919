//! Writing an archive, atomically and synced, and reading it: everything is checked before anything is used.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crc32fast::Hasher;
use serde_json::Value;
use undaunted_engine::event::Record;
use undaunted_engine::job::Job;
use undaunted_engine::view::rfc3339;
use undaunted_store::{LARGEST_RECORD, Store, Version};

use super::format::{VERSION, bytes, record_line};
use super::{ArchiveError, ArchiveHeader, file_name, last_line};
use crate::folder::private_folder;
use crate::{JournalError, failpoint, journal};

/// The longest possible line, in bytes: the largest record in hexadecimal, and the keys around it.
const LONGEST_LINE: u64 = (LARGEST_RECORD as u64) * 2 + (1 << 20);

#[derive(Debug)]
pub(super) struct Archive {
    pub(super) header: ArchiveHeader,
    pub(super) records: Vec<Vec<u8>>,
    pub(super) job: Job,
}

pub(super) fn read(path: &Path) -> Result<Archive, ArchiveError> {
    let file = File::open(path).map_err(ArchiveError::io(path))?;
    read_from(path, file)
}

/// `path` is only for messages.
pub(super) fn read_from(path: &Path, from: impl Read) -> Result<Archive, ArchiveError> {
    let mut lines =
        ArchiveReader { path, from: BufReader::new(from), number: 0, sum: Hasher::new(), text: Vec::new() };
    let header = lines.header()?;
    let mut records = Vec::new();
    let mut fold: Option<Job> = None;
    for seq in 1..=header.records {
        let (record, bytes) = lines.record(seq)?;
        match &mut fold {
            None => fold = Some(begin(&lines, &header, &record)?),
            Some(job) => job.apply(&record),
        }
        records.push(bytes);
    }
    lines.end(header.records)?;
    let ended = fold.filter(|job| job.stage.has_ended());
    let job = ended.ok_or_else(|| lines.unfit("the job of this archive has not ended"))?;
    Ok(Archive { header, records, job })
}

fn begin(
    lines: &ArchiveReader<'_, impl Read>,
    header: &ArchiveHeader,
    record: &Record,
) -> Result<Job, ArchiveError> {
    let job = Job::begin(record).map_err(|why| lines.unfit(&why.to_string()))?;
    if job.id() == header.job {
        Ok(job)
    } else {
        Err(lines.unfit("the record belongs to a different job than the one named in line 1"))
    }
}

struct ArchiveReader<'a, R> {
    path: &'a Path,
    from: BufReader<R>,
    number: u64,
    /// The checksum of the lines before this one.
    sum: Hasher,
    /// This line, with its line break.
    text: Vec<u8>,
}

impl<R: Read> ArchiveReader<'_, R> {
    fn unfit(&self, what: &str) -> ArchiveError {
        ArchiveError::Unfit { path: self.path.to_owned(), line: self.number.max(1), what: what.to_owned() }
    }

    fn next(&mut self) -> Result<Value, ArchiveError> {
        self.sum.update(&self.text);
        self.text.clear();
        self.number = self.number.saturating_add(1);
        let mut line = self.from.by_ref().take(LONGEST_LINE);
        line.read_until(b'\n', &mut self.text).map_err(ArchiveError::io(self.path))?;
        if self.text.is_empty() {
            return Err(self.unfit("the file is truncated: its last line is missing"));
        }
        if self.text.last() != Some(&b'\n') {
            return Err(self.unfit("the file is truncated in this line"));
        }
        serde_json::from_slice(&self.text).map_err(|error| self.unfit(&format!("not valid JSON: {error}")))
    }

    fn header(&mut self) -> Result<ArchiveHeader, ArchiveError> {
        const NONE: &str = "not an archive of a job";
        let line = match self.next() {
            Ok(line) => line,
            Err(ArchiveError::Unfit { .. }) => return Err(self.unfit(NONE)),
            Err(error) => return Err(error),
        };
        if line.get("undaunted") != Some(&Value::from("archive")) {
            return Err(self.unfit(NONE));
        }
        match line.get("version").and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(found) if found > VERSION => {
                return Err(ArchiveError::Newer { path: self.path.to_owned(), found });
            }
            _ => return Err(self.unfit("unknown archive version")),
        }
        let header =
            header(&line).ok_or_else(|| self.unfit("the job or the number of records is missing"))?;
        file_name(&header.job)?;
        Ok(header)
    }

    fn record(&mut self, seq: u64) -> Result<(Record, Vec<u8>), ArchiveError> {
        let line = self.next()?;
        let text = |name: &str| line.get(name).and_then(Value::as_str);
        if line.get("seq").and_then(Value::as_u64) != Some(seq) {
            return Err(self.unfit(&format!("record {seq} is missing")));
        }
        let bytes = text("record").and_then(bytes);
        let bytes = bytes.ok_or_else(|| self.unfit("the record is not hexadecimal"))?;
        let record = Record::decode(&bytes)
            .map_err(|why| self.unfit(&format!("record {seq} is not a valid event: {why}")))?;
        let at = rfc3339(record.at);
        if text("at") != Some(&at) || text("type") != Some(record.event.word()) {
            return Err(self.unfit("the time or the type differs from that of the record"));
        }
        Ok((record, bytes))
    }

    fn end(&mut self, records: u64) -> Result<(), ArchiveError> {
        let line = self.next()?;
        let found = format!("{:08x}", self.sum.clone().finalize());
        if line.get("end").and_then(Value::as_u64) != Some(records) {
            return Err(self.unfit(&format!("expected the end after {records} records")));
        }
        let written = line.get("crc32").and_then(Value::as_str);
        if written != Some(&found) {
            let written = written.unwrap_or("missing");
            return Err(self.unfit(&format!(
                "the file was altered: its checksum is {found}, not {written} as this line says"
            )));
        }
        let mut more = [0];
        let left = self.from.read(&mut more).map_err(ArchiveError::io(self.path))?;
        if left == 0 { Ok(()) } else { Err(self.unfit("the file continues after its last line")) }
    }
}

fn header(line: &Value) -> Option<ArchiveHeader> {
    Some(ArchiveHeader {
        job: line.get("job")?.as_str()?.to_owned(),
        records: line.get("records")?.as_u64()?,
    })
}

pub(super) fn write(store: &dyn Store, header: &ArchiveHeader, path: &Path) -> Result<(), ArchiveError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    private_folder(folder).map_err(ArchiveError::io(folder))?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let written = write_beside(store, header, &beside).and_then(|()| {
        failpoint::reach("archive-before-rename", 1);
        fs::rename(&beside, path).map_err(ArchiveError::io(path))?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(ArchiveError::io(folder))
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
        self.out.write_all(last_line(records, self.sum.finalize()).as_bytes())?;
        self.out.write_all(b"\n")?;
        self.out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}
