//! Which processes belong to a command.
//!
//! Its group; what descends from it; what was seen to descend from it before; and, of the orphans
//! the keeper has adopted, those that carry its mark. An orphan without a mark (it left its group,
//! lost its parent and cleared its environment before it was ever seen) is the command's if no other
//! can have left it: only this one runs, and none before it left anything. Otherwise it is nobody's,
//! and left alone: ending a stranger is worse.

use std::collections::HashSet;
use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::shared::Shared;
use crate::lock::locked;
use crate::process::{self, Mark, Process, descendants};

/// The living processes of a command, and the orphans that are nobody's.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) members: Vec<Process>,
    pub(crate) unclaimed: Vec<Process>,
}

/// Whether a group has no process any more.
pub(crate) fn is_group_gone(leader: i32) -> bool {
    let group = Pid::from_raw(leader);
    group.is_none_or(|group| test_kill_process_group(group) == Err(Errno::SRCH))
}

/// Finds the living processes of a command.
pub(crate) fn family(shared: &Shared, id: u64, leader: i32) -> io::Result<Family> {
    let all = Process::all()?;
    let (strays, commands, known, alone) = {
        let state = locked(&shared.state);
        let commands: HashSet<i32> = state.by_pid.keys().copied().collect();
        let known = state.runs.get(&id).map(|run| run.known.clone());
        let alone = state.runs.len() == 1 && !state.had_strays;
        (
            state.strays.clone(),
            commands,
            known.unwrap_or_default(),
            alone,
        )
    };
    let is_known = |each: &Process| {
        let mut known = known.iter();
        known.any(|seen| (seen.pid, seen.started) == (each.pid, each.started))
    };
    let mut unclaimed = vec![];
    let mut claimed = HashSet::new();
    let adopted = all
        .iter()
        .filter(|each| each.parent == shared.pid && !each.ended && !commands.contains(&each.pid));
    for each in adopted {
        match claim(shared, id, each) {
            // A stray too: while a process becomes another program its mark cannot be read, and
            // whoever looked just then took it for nobody's.
            Claim::Ours => drop(claimed.insert(each.pid)),
            Claim::Unmarked | Claim::Others if strays.contains(&each.pid) => {}
            Claim::Unmarked if alone => drop(claimed.insert(each.pid)),
            Claim::Unmarked if each.group != leader && !is_known(each) => unclaimed.push(*each),
            Claim::Unmarked | Claim::Others => {}
        }
    }
    let is_root = |each: &Process| {
        each.pid == leader
            || (each.group == leader && each.session == shared.pid)
            || claimed.contains(&each.pid)
            || is_known(each)
    };
    let mut members = descendants(&all, is_root);
    members.retain(|each| !each.ended);
    Ok(Family { members, unclaimed })
}

/// Sends a signal to a whole family. The group gets it at one stroke while its leader is there to
/// hold its number; all others one by one.
pub(crate) fn signal_family(family: &Family, leader: i32, is_there: bool, signal: Signal) {
    let group = Pid::from_raw(leader).filter(|_| is_there);
    if let Some(group) = group {
        // Gone already, or not ours to signal: either way nothing more can be done here.
        let _ = kill_process_group(group, signal);
    }
    for each in &family.members {
        if group.is_none() || each.group != leader {
            drop(process::signal(each, signal));
        }
    }
}

/// Whose an adopted process is, by its mark.
enum Claim {
    Ours,
    Others,
    Unmarked,
}

fn claim(shared: &Shared, id: u64, process: &Process) -> Claim {
    let marks = Mark::of(process.pid);
    let mut ids = marks
        .iter()
        .filter(|mark| mark.keeper == shared.name)
        .map(|mark| mark.id);
    match ids.next() {
        Some(Some(marked)) if marked == id => Claim::Ours,
        // Another command's, or one that is being made and still looks like the keeper.
        Some(_) => Claim::Others,
        None => Claim::Unmarked,
    }
}
