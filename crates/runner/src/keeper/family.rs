//! Which processes belong to a command.
//!
//! These are its process group; its descendants; processes that were seen as its descendants before; and, of
//! the orphans reparented to the keeper, those that carry its mark. An orphan without a mark (it left its
//! group, lost its parent and cleared its environment before it was ever seen) counts as the command's only
//! if no other command can have left it: no other command runs, and none before it left a process. Otherwise
//! it is left alone, since ending a foreign process would be worse.

use std::collections::HashSet;
use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::shared::KeeperShared;
use crate::locked;
use crate::process::{self, ProcessMark, SystemProcess, descendants};

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
