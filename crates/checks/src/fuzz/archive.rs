//! Bytes that may be an archive of a job.
//!
//! The lines are those of the file. A record may also be written as `notation` reads it; it gets its number,
//! time and type then. The word `right` in the first and the last line stands for the right number of records
//! and the right checksum. A restored archive is in the store as a whole, and restoring it again changes
//! nothing; of a refused archive nothing is stored.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::OnceLock;

use undaunted_engine::event::Record;
use undaunted_engine::job::Plans;
use undaunted_engine::view::rfc3339;
use undaunted_runner::archive::{ArchiveError, restore_from};
use undaunted_runner::journal::{FAMILY, aggregate, replay};
use undaunted_store::{MemoryStore, Store, StoreError, Version};

use super::law::uphold;
use super::notation;

pub fn archive_restore(data: &[u8]) -> BTreeSet<&'static str> {
    let file = complete(data);
    let store = MemoryStore::new();
    let word = match restored(&store, &file) {
        Ok(job) => {
            check_restored(&store, &job, &file);
            "restored"
        }
        Err(error) => {
            let stored = store.list(FAMILY, "").unwrap_or_default();
            uphold("nothing of a refused archive is stored", stored.is_empty(), &error);
            refused(&error, &file)
        }
    };
    BTreeSet::from([word])
}

fn restored(store: &MemoryStore, file: &[u8]) -> Result<String, ArchiveError> {
    static NAME: OnceLock<&Path> = OnceLock::new();
    let name = NAME.get_or_init(|| Path::new("a.undaunted.jsonl"));
    restore_from(store, None, name, file)
}

/// The archive that the lines stand for.
fn complete(data: &[u8]) -> Vec<u8> {
    const RIGHT: &[u8] = b"\"right\"";
    let records = notation::lines(data).filter(|line| line.starts_with(b"["));
    let records = records.count().to_string();
    let mut file = Vec::new();
    let mut seq = 0_u64;
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let bytes = notation::record(line.trim_ascii());
        if line.starts_with(b"[")
            && let Ok(record) = Record::decode(&bytes)
        {
            seq += 1;
            let (at, kind) = (rfc3339(record.at), record.event.word());
            let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
                // Writing to memory cannot fail.
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            let line = format!(r#"{{"seq":{seq},"at":"{at}","type":"{kind}","record":"{hex}"}}"#);
            file.extend(line.as_bytes());
            file.push(b'\n');
            continue;
        }
        // The number of records comes first in both lines.
        let line = replaced(line, RIGHT, records.as_bytes());
        let sum = format!("\"{:08x}\"", crc32fast::hash(&file));
        file.extend(replaced(&line, RIGHT, sum.as_bytes()));
    }
    file
}

/// The line with `with` in place of the first `old`.
fn replaced(line: &[u8], old: &[u8], with: &[u8]) -> Vec<u8> {
    match line.windows(old.len()).position(|piece| piece == old) {
        Some(at) => {
            let (before, rest) = line.split_at(at);
            [before, with, rest.get(old.len()..).unwrap_or_default()].concat()
        }
        None => line.to_vec(),
    }
}

/// The store holds the whole archive, and restoring it again adds nothing.
fn check_restored(store: &MemoryStore, job: &str, file: &[u8]) {
    let lines = notation::lines(file).count();
    let read = replay(store, job, &Plans::default(), |_, _, _| {});
    let ended = read.as_ref().is_ok_and(|(job, version)| {
        job.stage.has_ended() && usize::try_from(version.0).is_ok_and(|it| it.saturating_add(2) == lines)
    });
    uphold("an archive is restored as a whole", ended, &(job, &read));
    let before = records(store, job);
    let again = restored(store, file);
    let same = again.as_deref().is_ok_and(|again| again == job);
    uphold("restoring again succeeds", same, &again);
    uphold("restoring again changes nothing", records(store, job) == before, &job);
}

fn records(store: &MemoryStore, job: &str) -> Vec<Vec<u8>> {
    let aggregate = aggregate(job).ok();
    let read = aggregate.and_then(|of| {
        let read = store.read(&of, Version::EMPTY).ok()?;
        let records: Result<Vec<_>, StoreError> = read.map(|it| Ok(it?.1)).collect();
        records.ok()
    });
    read.unwrap_or_default()
}

fn refused(error: &ArchiveError, file: &[u8]) -> &'static str {
    uphold("a refusal has words", !error.to_string().is_empty(), error);
    match error {
        ArchiveError::Unfit { line, .. } => {
            let ends = file.split(|byte| *byte == b'\n').count();
            let place = usize::try_from(*line).is_ok_and(|line| (1..=ends).contains(&line));
            uphold("the line is one of the file, or the one that is missing", place, error);
            "unfit"
        }
        ArchiveError::Newer { .. } => "newer",
        ArchiveError::NoName { .. } => "no name",
        ArchiveError::Journal(_) => "not stored",
        other => {
            uphold("a file is refused for what stands in it", false, other);
            "refused"
        }
    }
}
