//! The processes of a command: creating the first one, and telling which others belong to it.
//!
//! No shell or wrapper of ours: the command is the keeper's own child, in a process group of its own. Paths
//! are absolute, so that the standard library can use `posix_spawn`.
//!
//! To a command belong its process group; its descendants; processes that were seen as its descendants before; and, of
//! the orphans reparented to the keeper, those that carry its mark. An orphan without a mark (it left its
//! group, lost its parent and cleared its environment before it was ever seen) counts as the command's only
//! if no other command can have left it: no other command runs, and none before it left a process. Otherwise
//! it is left alone, since ending a foreign process would be worse.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Access, OFlags, access};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::{CommandSpec, KeeperShared};
use crate::process::{self, VARIABLE, descendants};
use crate::{NotStartedCommand, ProcessMark, StartRefusal, SystemProcess, locked};

/// The search path if the environment has none.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns the process number, which is also that of its group.
pub(crate) fn spawn(
    spec: &CommandSpec,
    outputs: [BorrowedFd<'_>; 2],
    mark: &ProcessMark,
) -> Result<i32, NotStartedCommand> {
    let refused = |refusing| {
        move |error: io::Error| NotStartedCommand {
            errno: error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error()),
            refusing,
        }
    };
    let program = program(spec).map_err(refused(StartRefusal::Program))?;
    let first = match command(spec, outputs, mark, &program, None) {
        Ok(mut command) => command.spawn(),
        Err(error) => return Err(refused(StartRefusal::Stdin)(error)),
    };
    let spawned = match first {
        // A script without an interpreter line is run by the shell, as everywhere.
        Err(error) if error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => {
            let shell = Path::new("/bin/sh");
            command(spec, outputs, mark, shell, Some(&program)).and_then(|mut shell| shell.spawn())
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
    outputs: [BorrowedFd<'_>; 2],
    mark: &ProcessMark,
    program: &Path,
    script: Option<&Path>,
) -> io::Result<Command> {
    let [out, err] = outputs;
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
        .envs(spec.inherited.iter().chain(&spec.env).map(|(name, value)| (name, value)))
        .env(VARIABLE, mark.after(variable(spec, VARIABLE)))
        .current_dir(&spec.working_dir)
        .stdin(stdin)
        .stdout(out.try_clone_to_owned()?)
        .stderr(err.try_clone_to_owned()?)
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
    let mut variables = spec.env.iter().rev().chain(spec.inherited.iter().rev());
    variables.find(|(name, _)| name == wanted).map(|(_, value)| value.as_os_str())
}

/// The living processes of a command, and the orphans that cannot be attributed.
#[derive(Debug, Default)]
pub(crate) struct ProcessFamily {
    pub(crate) members: Vec<SystemProcess>,
    pub(crate) unclaimed: Vec<SystemProcess>,
}

pub(crate) fn is_group_gone(leader: i32) -> bool {
    let group = Pid::from_raw(leader);
    group.is_none_or(|group| test_kill_process_group(group) == Err(Errno::SRCH))
}

pub(crate) fn family(shared: &KeeperShared, id: u64, leader: i32) -> io::Result<ProcessFamily> {
    let all = SystemProcess::all()?;
    let (strays, commands, known, alone) = {
        let state = locked(&shared.state);
        let commands: HashSet<i32> = state.by_pid.keys().copied().collect();
        let known = state.runs.get(&id).map(|run| run.known.clone());
        let alone = state.runs.len() == 1 && !state.had_strays;
        (state.strays.clone(), commands, known.unwrap_or_default(), alone)
    };
    let is_known = |each: &SystemProcess| {
        let mut known = known.iter();
        known.any(|seen| (seen.pid, seen.started) == (each.pid, each.started))
    };
    let mut unclaimed = vec![];
    let mut claimed = HashSet::new();
    let reparented =
        all.iter().filter(|each| each.parent == shared.pid && !each.ended && !commands.contains(&each.pid));
    for each in reparented {
        match claim(shared, id, each) {
            // Even if it counts as a stray: during `exec` the mark of a process cannot be read, so an earlier
            // scan may have failed to attribute it.
            ProcessOwner::Ours => drop(claimed.insert(each.pid)),
            ProcessOwner::Unmarked | ProcessOwner::Others if strays.contains(&each.pid) => {}
            ProcessOwner::Unmarked if alone => drop(claimed.insert(each.pid)),
            ProcessOwner::Unmarked if each.group != leader && !is_known(each) => unclaimed.push(*each),
            ProcessOwner::Unmarked | ProcessOwner::Others => {}
        }
    }
    let is_root = |each: &SystemProcess| {
        each.pid == leader
            || (each.group == leader && each.session == shared.pid)
            || claimed.contains(&each.pid)
            || is_known(each)
    };
    let mut members = descendants(&all, is_root);
    members.retain(|each| !each.ended);
    Ok(ProcessFamily { members, unclaimed })
}

/// Sends a signal to a family: to the group as a whole as long as its leader exists, so that the number is
/// not reused; to other processes one by one.
pub(crate) fn signal_family(family: &ProcessFamily, leader: i32, is_there: bool, signal: Signal) {
    let group = Pid::from_raw(leader).filter(|_| is_there);
    if let Some(group) = group {
        // An error means that the group is gone or may not be signalled; nothing more can be done.
        let _ = kill_process_group(group, signal);
    }
    for each in &family.members {
        if group.is_none() || each.group != leader {
            drop(process::signal(each, signal));
        }
    }
}

/// The owner of a reparented process, by its mark.
enum ProcessOwner {
    Ours,
    Others,
    Unmarked,
}

fn claim(shared: &KeeperShared, id: u64, process: &SystemProcess) -> ProcessOwner {
    let marks = ProcessMark::of(process.pid);
    let mut ids = marks.iter().filter(|mark| mark.keeper == shared.name).map(|mark| mark.id);
    match ids.next() {
        Some(Some(marked)) if marked == id => ProcessOwner::Ours,
        // Of another command, or a child before `exec`, which still has the keeper's mark.
        Some(_) => ProcessOwner::Others,
        None => ProcessOwner::Unmarked,
    }
}
