//! Writing a file, as a whole or not at all.
//!
//! Doing it twice comes to the same, so a file that was being written when the engine died is
//! written again under the same attempt.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::{Task, TaskWork};
use undaunted_policy::{Cause, Class};

use super::{AttemptFate, Executor, ExecutorMessage, Started};
use crate::drive::JobContext;
use crate::failpoint;

/// Files that are written beside the loop.
#[derive(Default)]
pub(crate) struct FileWrites;

impl Executor for FileWrites {
    fn begin(&mut self, start: u64, task: Task, context: &JobContext<'_>) {
        let TaskWork::Write {
            path,
            content,
            create_dirs,
            mode,
            token,
        } = task.work
        else {
            return context.cannot_begin(start);
        };
        let path = Path::new(&task.working_dir).join(path);
        let (notifier, machine) = (context.notifier.clone(), Arc::clone(&context.world.machine));
        let began = machine.uptime();
        context.world.machine.aside(Box::new(move || {
            let written = machine.write(&NewFile {
                path: &path,
                content: &content,
                create_dirs,
                mode,
                start,
                token: &token,
            });
            let error = written.as_ref().err();
            let error =
                error.map(|error| format!("`{}` cannot be written: {error}", path.display()));
            notifier.send(ExecutorMessage::Ended(Box::new(AttemptEnd {
                start,
                failure: written.err().map(|_| Cause::Other(Class::Transient)),
                took: machine.uptime().saturating_sub(began),
                output: task.wants_output.then(String::new),
                error: error.unwrap_or_default(),
                ..AttemptEnd::default()
            })));
        }));
    }

    /// A file is written before anything could keep it from that.
    fn cancel(&mut self, _: u64, _: &JobContext<'_>) -> Option<AttemptEnd> {
        None
    }

    fn fate_after_crash(&mut self, _: &Started<'_>) -> AttemptFate {
        AttemptFate::Begin
    }
}

/// A file that a command is to write.
#[derive(Clone, Copy, Debug)]
pub struct NewFile<'a> {
    pub path: &'a Path,
    pub content: &'a str,
    /// Whether its folders are made if they are not there.
    pub create_dirs: bool,
    /// Who may do what with it.
    pub mode: Option<u32>,
    /// The number of the start.
    pub start: u64,
    /// The receipt token of the command.
    pub token: &'a str,
}

/// Writes a file through one beside it, which bears the same name when the attempt is made again: what
/// was left of it by a death in between does not stay.
pub(crate) fn write_file(file: &NewFile<'_>) -> io::Result<()> {
    let NewFile {
        path,
        content,
        create_dirs,
        mode,
        start,
        token,
    } = *file;
    if create_dirs && let Some(parent) = path.parent() {
        DirBuilder::new().recursive(true).create(parent)?;
    }
    if path
        .symlink_metadata()
        .is_ok_and(|found| !found.is_file() && !found.is_symlink())
    {
        return Err(io::Error::other(
            "there is something that is not a plain file",
        ));
    }
    let mut beside = path.as_os_str().to_owned();
    // Two jobs may write the same file at the same time.
    beside.push(format!(".undaunted-{:08x}-{start}", digest(token)));
    // Not written over: it may be closed to its own owner, by its mode.
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
        // What is half written is nobody's; the error is the news.
        drop(std::fs::remove_file(&beside));
    }
    written
}

/// Enough of a token (FNV-1a) to tell two jobs apart, and too little to guess it from a name that
/// others see.
fn digest(token: &str) -> u32 {
    token.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
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
        start: u64,
    ) -> io::Result<()> {
        write_file(&NewFile {
            path,
            content,
            create_dirs,
            mode,
            start,
            token: "5eed",
        })
    }

    #[test]
    fn a_file_is_written_with_its_folders_and_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/c.txt");
        write(&path, "one", true, Some(0o640), 1).unwrap();
        write(&path, "two", true, Some(0o640), 2).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/c.txt");
        assert!(write(&path, "one", false, None, 1).is_err());
        let path = folder.path().join("taken");
        std::fs::create_dir_all(path.join("inner")).unwrap();
        assert!(write(&path, "one", false, None, 1).is_err());
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn what_a_death_left_of_the_same_attempt_goes_and_that_of_others_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.txt");
        let beside = |token: &str, start: u64| {
            let name = format!("c.txt.undaunted-{:08x}-{start}", digest(token));
            folder.path().join(name)
        };
        let left = [beside("5eed", 1), beside("5eed", 2), beside("other", 1)];
        for left in &left {
            std::fs::write(left, "half").unwrap();
            // Nobody may write to it, as the workflow wanted.
            std::fs::set_permissions(left, std::fs::Permissions::from_mode(0o400)).unwrap();
        }
        write(&path, "one", false, Some(0o400), 1).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
        assert_eq!(left.map(|left| left.exists()), [false, true, true]);
    }
}
