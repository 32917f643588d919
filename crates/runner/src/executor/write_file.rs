//! Writing a file atomically.
//!
//! Writing twice is harmless, so a file that was being written when the engine died is written again
//! under the same attempt.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use undaunted_engine::id::StartId;
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::{Task, TaskWork};
use undaunted_policy::{FailureCause, FailureClass};

use super::{AttemptFate, Executor, ExecutorMessage, StartedAttempt};
use crate::{JobContext, failpoint};

#[derive(Default)]
pub(crate) struct FileWrites;

impl Executor for FileWrites {
    fn begin(&mut self, start: StartId, task: Task, context: &JobContext<'_>) {
        let TaskWork::Write { path, content, create_dirs, mode, token } = task.work else {
            return context.cannot_begin(start);
        };
        let path = Path::new(&task.working_dir).join(path);
        let (notifier, machine) = (context.notifier.clone(), Arc::clone(&context.services.machine));
        let began = machine.uptime();
        context.services.machine.run_in_background(Box::new(move || {
            let written = machine.write(&NewFile {
                path: &path,
                content: &content,
                create_dirs,
                mode,
                start,
                token: &token,
            });
            let error = written.as_ref().err();
            let error = error.map(|error| format!("cannot write `{}`: {error}", path.display()));
            notifier.send(ExecutorMessage::Ended(Box::new(AttemptEnd {
                start,
                failure: written.err().map(|_| FailureCause::Other(FailureClass::Transient)),
                took: machine.uptime().saturating_sub(began),
                output: task.wants_output.then(String::new),
                error: error.unwrap_or_default(),
                ..AttemptEnd::default()
            })));
        }));
    }

    /// Has no effect: a write is too short to cancel.
    fn cancel(&mut self, _: StartId, _: &JobContext<'_>) -> Option<AttemptEnd> {
        None
    }

    fn fate_after_crash(&mut self, _: &StartedAttempt<'_>) -> AttemptFate {
        AttemptFate::Begin
    }
}

#[derive(Clone, Copy, Debug)]
pub struct NewFile<'a> {
    pub path: &'a Path,
    pub content: &'a str,
    pub create_dirs: bool,
    pub mode: Option<u32>,
    pub start: StartId,
    pub token: &'a str,
}

/// Writes through a temporary file in the same folder. Its name is the same when the attempt is repeated, so
/// a temporary file that a crash left behind is removed.
pub(crate) fn write_file(file: &NewFile<'_>) -> io::Result<()> {
    let NewFile { path, content, create_dirs, mode, start, token } = *file;
    if create_dirs && let Some(parent) = path.parent() {
        DirBuilder::new().recursive(true).create(parent)?;
    }
    if path.symlink_metadata().is_ok_and(|found| !found.is_file() && !found.is_symlink()) {
        return Err(io::Error::other("the path exists and is not a regular file"));
    }
    let mut beside = path.as_os_str().to_owned();
    // The token keeps two jobs apart that write the same file.
    beside.push(format!(".undaunted-{:08x}-{start}", digest(token)));
    // Removed, not overwritten: its mode may deny writing even to its owner.
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode.unwrap_or(0o666))
        .open(&beside)
        .and_then(|mut file| {
            if let Some(mode) = mode {
                use std::os::unix::fs::PermissionsExt;
                file.set_permissions(std::fs::Permissions::from_mode(mode))?;
            }
            file.write_all(content.as_bytes())?;
            file.sync_all()
        })
        .inspect(|()| failpoint::pass("file-before-rename"))
        .and_then(|()| std::fs::rename(&beside, path))
        .inspect(|()| failpoint::pass("file-after-rename"))
        .and_then(|()| match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => File::open(".")?.sync_all(),
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        });
    if written.is_err() {
        // The error reported is that of the write.
        drop(std::fs::remove_file(&beside));
    }
    written
}

/// A 32-bit FNV-1a hash of a token: enough to tell two jobs apart, too little to recover the token from a
/// file name that other users can see.
fn digest(token: &str) -> u32 {
    token.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn write(
        path: &Path,
        content: &str,
        create_dirs: bool,
        mode: Option<u32>,
        start: StartId,
    ) -> io::Result<()> {
        write_file(&NewFile { path, content, create_dirs, mode, start, token: "5eed" })
    }

    #[test]
    fn a_file_is_written_with_its_folders_and_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/c.txt");
        write(&path, "one", true, Some(0o640), StartId(1)).unwrap();
        write(&path, "two", true, Some(0o640), StartId(2)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn a_failed_write_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/c.txt");
        assert!(write(&path, "one", false, None, StartId(1)).is_err());
        let path = folder.path().join("taken");
        std::fs::create_dir_all(path.join("inner")).unwrap();
        assert!(write(&path, "one", false, None, StartId(1)).is_err());
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn a_repeated_attempt_removes_only_its_own_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.txt");
        let beside = |token: &str, start: StartId| {
            let name = format!("c.txt.undaunted-{:08x}-{start}", digest(token));
            folder.path().join(name)
        };
        let left = [beside("5eed", StartId(1)), beside("5eed", StartId(2)), beside("other", StartId(1))];
        for left in &left {
            std::fs::write(left, "half").unwrap();
            // Read-only, as the workflow asked.
            std::fs::set_permissions(left, std::fs::Permissions::from_mode(0o400)).unwrap();
        }
        write(&path, "one", false, Some(0o400), StartId(1)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
        assert_eq!(left.map(|left| left.exists()), [false, true, true]);
    }
}
