//! Creating the process of a command.
//!
//! No shell or wrapper of ours: the command is the keeper's own child, in a process group of its own. Paths
//! are absolute, so that the standard library can use `posix_spawn`.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Access, OFlags, access};
use rustix::io::Errno;

use super::CommandSpec;
use crate::process::{ProcessMark, VARIABLE};
use crate::spool::{NotStartedCommand, OutputSlot, StartRefusal};

/// The search path if the environment has none.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns the process number, which is also that of its group.
pub(crate) fn spawn(
    spec: &CommandSpec,
    slot: &OutputSlot,
    mark: &ProcessMark,
) -> Result<i32, NotStartedCommand> {
    let refused = |refusing| {
        move |error: io::Error| NotStartedCommand {
            errno: error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error()),
            refusing,
        }
    };
    let program = program(spec).map_err(refused(StartRefusal::Program))?;
    let first = match command(spec, slot, mark, &program, None) {
        Ok(mut command) => command.spawn(),
        Err(error) => return Err(refused(StartRefusal::Stdin)(error)),
    };
    let spawned = match first {
        // A script without an interpreter line is run by the shell, as everywhere.
        Err(error) if error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => {
            let shell = Path::new("/bin/sh");
            command(spec, slot, mark, shell, Some(&program)).and_then(|mut shell| shell.spawn())
        }
        spawned => spawned,
    };
    let child = spawned.map_err(|error| {
        let refusing =
            if spec.working_dir.is_dir() { StartRefusal::Program } else { StartRefusal::WorkingDirectory };
        refused(refusing)(error)
    })?;
    // The `Child` may be dropped: the reaper waits for all children.
    i32::try_from(child.id()).map_err(|_| NotStartedCommand {
        errno: Errno::INVAL.raw_os_error(),
        refusing: StartRefusal::Program,
    })
}

/// Its errors are those of the input.
fn command(
    spec: &CommandSpec,
    slot: &OutputSlot,
    mark: &ProcessMark,
    program: &Path,
    script: Option<&Path>,
) -> io::Result<Command> {
    let stdin = match &spec.stdin {
        Some(path) => Stdio::from(input(&spec.working_dir.join(path))?),
        None => Stdio::null(),
    };
    let mut command = Command::new(program);
    match (script, spec.argv.first()) {
        (Some(script), _) => {
            command.arg(script);
        }
        (None, Some(name)) => {
            command.arg0(name);
        }
        (None, None) => {}
    }
    command
        .args(spec.argv.iter().skip(1))
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .env(VARIABLE, mark.after(variable(spec, VARIABLE)))
        .current_dir(&spec.working_dir)
        .stdin(stdin)
        .stdout(slot.out.try_clone()?)
        .stderr(slot.err.try_clone()?)
        .process_group(0);
    Ok(command)
}

/// Opens a plain file. Anything else could block, such as a pipe without a writer.
fn input(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(Errno::INVAL.into()) }
}

/// The absolute path of the program, as a shell in the working directory would find it.
fn program(spec: &CommandSpec) -> io::Result<PathBuf> {
    let name = spec.argv.first().ok_or(Errno::INVAL)?;
    if name.as_encoded_bytes().contains(&b'/') {
        return Ok(spec.working_dir.join(name));
    }
    let mut refused = Errno::NOENT;
    for folder in std::env::split_paths(variable(spec, "PATH").unwrap_or(OsStr::new(PATH))) {
        let path = spec.working_dir.join(folder).join(name);
        match access(&path, Access::EXEC_OK) {
            Ok(()) if path.is_file() => return Ok(path),
            Err(Errno::ACCESS) => refused = Errno::ACCESS,
            _ => {}
        }
    }
    Err(refused.into())
}

/// A variable of the command's environment; the last one counts.
fn variable<'a>(spec: &'a CommandSpec, wanted: &str) -> Option<&'a OsStr> {
    let mut variables = spec.env.iter().rev();
    variables.find(|(name, _)| name == wanted).map(|(_, value)| value.as_os_str())
}
