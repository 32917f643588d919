//! Reading an archive: everything is checked before anything is used.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crc32fast::Hasher;
use serde_json::Value;
use undaunted_engine::event::Record;
use undaunted_engine::job::Job;
use undaunted_engine::view::rfc3339;
use undaunted_store::LARGEST_RECORD;

use super::error::ArchiveError;
use super::format::{ArchiveHeader, VERSION, bytes, file_name};

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
        let read = line.read_until(b'\n', &mut self.text);
        read.map_err(ArchiveError::io(self.path))?;
        if self.text.is_empty() {
            return Err(self.unfit("the file is truncated: its last line is missing"));
        }
        if self.text.last() != Some(&b'\n') {
            return Err(self.unfit("the file is truncated in this line"));
        }
        let parsed = serde_json::from_slice(&self.text);
        parsed.map_err(|error| self.unfit(&format!("not valid JSON: {error}")))
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
