//! Snapshots, each in a file of its own.
//!
//! They are not in the database, because a snapshot may be large and must not delay commits. A missing or
//! damaged file only makes the next recovery slower, so `snapshots/` may be deleted at any time.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::folder::make_folder;
use super::{Damage, JournalHead, RecordCodec, classify};
use crate::{AggregateId, FoundSnapshot, Snapshot, StoreError, Version};

/// The first bytes of a snapshot file; the last letter is the format.
const MAGIC: &[u8; 8] = b"undaunt1";
const UNFINISHED: &str = "half";
/// How many snapshots are kept: the latest, and the one before it in case the latest is damaged.
const KEPT: usize = 2;

pub(super) fn save(
    all: &Path,
    known: JournalHead,
    aggregate: &AggregateId,
    at: Version,
    bytes: &[u8],
) -> Result<(), StoreError> {
    let folder = folder(all, known.number);
    make_folder(&folder)?;
    // Only the owner writes here. If two processes did, each would still rename a complete file.
    let unfinished = folder.join(format!("{at}.{}.{UNFINISHED}", std::process::id()));
    let about = |error| classify::of_files(&unfinished, error);
    let locked = write(&unfinished, RecordCodec::of(aggregate), at, bytes).map_err(about)?;
    fs::rename(&unfinished, folder.join(at.to_string())).map_err(about)?;
    drop(locked);
    sweep(&folder);
    for (_, old) in files(&folder).map_err(about)?.into_iter().skip(KEPT) {
        let _ = fs::remove_file(old);
    }
    Ok(())
}

/// Returns the open file, whose lock keeps [`sweep`] from removing it.
fn write(path: &Path, codec: RecordCodec, at: Version, bytes: &[u8]) -> std::io::Result<File> {
    let mut file: File = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // If another process removed the file before this line, the rename fails and there is no new snapshot.
    file.lock()?;
    file.write_all(MAGIC)?;
    file.write_all(&codec.checksum(at, bytes).to_le_bytes())?;
    file.write_all(bytes)?;
    file.sync_data()?;
    Ok(file)
}

/// Removes unfinished files of dead processes, which are recognized by the lock: a process id may be reused.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_unfinished = path.extension().is_some_and(|extension| extension == UNFINISHED);
        if is_unfinished && File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            // A file that cannot be removed stays until the next snapshot.
            let _ = fs::remove_file(&path);
        }
    }
}

pub(super) fn latest(
    all: &Path,
    known: JournalHead,
    aggregate: &AggregateId,
) -> Result<FoundSnapshot, StoreError> {
    let folder = folder(all, known.number);
    let mut found = FoundSnapshot::default();
    let files = files(&folder).map_err(|error| classify::of_files(&folder, error))?;
    for (at, path) in files {
        let read = if at > known.head.version {
            Err("it is ahead of its journal".to_owned())
        } else {
            fs::read(&path)
                .map_err(|error| error.to_string())
                .and_then(|bytes| Ok(checked(bytes, RecordCodec::of(aggregate), at)?))
        };
        match read {
            Ok(bytes) => {
                found.latest = Some(Snapshot { at, bytes });
                break;
            }
            Err(why) => found
                .ignored
                .push(format!("the snapshot of {aggregate} at version {at} cannot be used: {why}")),
        }
    }
    Ok(found)
}

fn checked(mut file: Vec<u8>, codec: RecordCodec, at: Version) -> Result<Vec<u8>, Damage> {
    let rest = file.strip_prefix(MAGIC).ok_or("it is not a snapshot file")?;
    let (checksum, bytes) = rest.split_first_chunk::<4>().ok_or("it is cut short")?;
    if codec.checksum(at, bytes) != u32::from_le_bytes(*checksum) {
        return Err("its checksum does not match");
    }
    let header = file.len().saturating_sub(bytes.len());
    file.drain(..header);
    Ok(file)
}

/// Removes the snapshots of a removed aggregate. Leftovers are harmless: numbers are not reused.
pub(super) fn remove(all: &Path, number: i64) {
    let _ = fs::remove_dir_all(folder(all, number));
}

fn folder(all: &Path, number: i64) -> PathBuf {
    all.join(number.to_string())
}

/// The snapshots of a folder, latest first.
fn files(folder: &Path) -> std::io::Result<Vec<(Version, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
        entries => entries?,
    };
    let mut found = vec![];
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if let Some(at) = name.to_str().and_then(|name| name.parse().ok()) {
            found.push((Version(at), entry.path()));
        }
    }
    found.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    Ok(found)
}
