//! The worker threads, which spawn commands, signal them and record their ends, and the thread that reaps them.
//!
//! One thread at a time handles a command, and carries out its steps until there are none.

use std::os::fd::AsFd;
use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, wait};

use super::command::{self, ProcessFamily, family, is_group_gone, signal_family};
use super::{CommandSpec, KeeperRefusal, KeeperRun, KeeperShared, OutputRedaction, RunState, RunStep};
use crate::{CommandEnd, CommandExit, EndedBy, OutputSlot, SpooledOutput, failpoint, locked};

/// How long to wait before the next attempt to write to a full disk.
pub(super) const ROOM: Duration = Duration::from_millis(500);

/// Never returns. A worker thread must not end, since it is the parent of the commands it created.
pub(crate) fn work(shared: &KeeperShared) {
    loop {
        let id = {
            let mut state = locked(&shared.state);
            state.idle = state.idle.saturating_add(1);
            let mut state = shared
                .work
                .wait_while(state, |state| state.queue.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            state.idle = state.idle.saturating_sub(1);
            state.queue.pop_front()
        };
        if let Some(id) = id {
            run_steps(shared, id);
        }
    }
}

/// Carries out all steps of a command that is marked as busy.
pub(crate) fn run_steps(shared: &KeeperShared, id: u64) {
    while let Some(step) = shared.next_step(id) {
        match step {
            RunStep::Spawn(spec) => spawn(shared, &spec),
            RunStep::Signal(signal) => send(shared, id, signal),
            RunStep::Settle => settle(shared, id),
        }
    }
}

fn spawn(shared: &KeeperShared, spec: &CommandSpec) {
    let id = spec.id;
    failpoint::reach("spawning-before", id);
    let began = SystemTime::now();
    let slot = match shared.slots.take() {
        Ok(slot) => slot,
        Err(error) => return refuse_start(shared, id, &error),
    };
    let announced = OutputRedaction::begin(shared, spec, &slot).and_then(|redaction| {
        locked(&shared.ledger).spawning(id, began, slot.number, spec.grace)?;
        Ok(redaction.unzip())
    });
    let (redaction, pipes) = match announced {
        Ok(announced) => announced,
        Err(error) => {
            shared.slots.reuse(slot);
            return refuse_start(shared, id, &error);
        }
    };
    failpoint::reach("spawning", id);
    let entering = shared.spawning.read().unwrap_or_else(PoisonError::into_inner);
    let outputs = match &pipes {
        Some([out, err]) => [out.as_fd(), err.as_fd()],
        None => [slot.out.as_fd(), slot.err.as_fd()],
    };
    let spawned = command::spawn(spec, outputs, &shared.mark(id));
    // Otherwise the redaction would never see the end of the output.
    drop(pipes);
    let mut state = locked(&shared.state);
    let Some(run) = state.runs.get_mut(&id) else {
        return;
    };
    run.slot = Some(slot);
    run.redaction = redaction;
    run.began = began;
    match spawned {
        Ok(pid) => {
            let now = Instant::now();
            run.pid = Some(pid);
            run.limits.deadline = run.limits.timeout.and_then(|wait| now.checked_add(wait));
            if matches!(run.phase, RunState::Running) {
                run.alarm = run.next_look(now);
            }
            state.by_pid.insert(pid, id);
            state.made = state.made.wrapping_add(1);
            shared.set_alarm(&mut state, id);
            shared.children.notify_one();
            drop((state, entering));
            failpoint::reach("spawned", id);
            locked(&shared.ledger).spawned(id, pid);
        }
        Err(refused) => {
            run.end = Some(CommandEnd::NotStarted(refused));
            drop((state, entering));
            conclude(shared, id, 0);
        }
    }
}

/// Refuses a command whose start could not be recorded, so it never began.
fn refuse_start(shared: &KeeperShared, id: u64, error: &std::io::Error) {
    let mut state = locked(&shared.state);
    state.remove(id);
    shared.begin_reserved(&mut state);
    drop(state);
    let errno = error.raw_os_error().unwrap_or_default();
    shared.refuse(Some(id), KeeperRefusal::Spool(errno));
    let state = locked(&shared.state);
    shared.exit_if_idle(&state);
}

fn send(shared: &KeeperShared, id: u64, signal: Signal) {
    let Some((leader, _)) = process_and_end(shared, id) else {
        return;
    };
    // If the processes cannot be read, the group still gets its signal.
    let family = family(shared, id, leader).unwrap_or_default();
    let mut state = locked(&shared.state);
    // The leader is not reaped yet, or only this moment, so its number is not reused.
    let is_there = state.by_pid.contains_key(&leader);
    signal_family(&family, leader, is_there, signal);
    if let Some(run) = state.runs.get_mut(&id) {
        run.known.extend(&family.members);
    }
}

/// The command's own process has ended. If none of its other processes runs, the command has ended. Other
/// processes of a successful command may stay; those of a failed one are ended first.
fn settle(shared: &KeeperShared, id: u64) {
    let Some((leader, Some(end))) = process_and_end(shared, id) else {
        return;
    };
    let (reparented, ending) = {
        let state = locked(&shared.state);
        let Some(run) = state.runs.get(&id) else {
            return;
        };
        let ending = match run.phase {
            RunState::Ending(ending) => Some(ending),
            _ => None,
        };
        (run.reparented, ending)
    };
    let family = if reparented || ending.is_some() || !is_group_gone(leader) {
        let Ok(family) = family(shared, id, leader) else {
            return try_later(shared, id);
        };
        family
    } else {
        ProcessFamily::default()
    };
    if family.members.is_empty() {
        return conclude_family(shared, id, &family);
    }
    let mut state = locked(&shared.state);
    let Some(run) = state.runs.get_mut(&id) else {
        return;
    };
    match ending {
        None if end.is_success() && run.why() == EndedBy::Itself => {
            drop(state);
            conclude_family(shared, id, &family);
        }
        None => {
            run.end(run.why(), Instant::now());
            shared.set_alarm(&mut state, id);
        }
        Some(ending) if ending.killed => signal_family(&family, leader, false, Signal::KILL),
        Some(_) => {}
    }
}

/// The processes cannot be read for now (perhaps there are too many open files), so none may be considered
/// gone.
fn try_later(shared: &KeeperShared, id: u64) {
    let mut state = locked(&shared.state);
    if let Some(run) = state.runs.get_mut(&id) {
        run.look_again(Instant::now());
    }
    shared.set_alarm(&mut state, id);
}
fn process_and_end(shared: &KeeperShared, id: u64) -> Option<(i32, Option<CommandEnd>)> {
    let state = locked(&shared.state);
    let run = state.runs.get(&id)?;
    Some((run.pid?, run.end))
}

fn conclude_family(shared: &KeeperShared, id: u64, family: &ProcessFamily) {
    let left = family.members.iter().chain(&family.unclaimed);
    // The keeper is notified only of the ends of its own children.
    let children = left.filter(|each| each.parent == shared.pid);
    let mut state = locked(&shared.state);
    state.strays.extend(children.map(|each| each.pid));
    state.had_strays |= !(family.members.is_empty() && family.unclaimed.is_empty());
    drop(state);
    let left = u32::try_from(family.members.len()).unwrap_or(u32::MAX);
    conclude(shared, id, left);
}

/// Records the end of a command, reports it to the engine, and removes the command.
fn conclude(shared: &KeeperShared, id: u64, left: u32) {
    let redaction = locked(&shared.state).runs.get_mut(&id).and_then(|run| run.redaction.take());
    if let Some(redaction) = redaction {
        redaction.settle();
    }
    let Some((end, why, began, capture, slot)) = ({
        let mut state = locked(&shared.state);
        state.runs.get_mut(&id).and_then(exit_facts)
    }) else {
        return;
    };
    let keep = |file, head| keep_output(shared, id, file, head);
    let (stdout, stderr) = (keep(&slot.out, capture), keep(&slot.err, 0));
    if left == 0 {
        shared.slots.reuse(slot);
    } else {
        shared.slots.discard(slot);
    }
    failpoint::reach("exited", id);
    locked(&shared.ledger).exited(CommandExit {
        id,
        end,
        why,
        began,
        ended: SystemTime::now(),
        stdout,
        stderr,
        left,
    });
    failpoint::reach("exited-after", id);
    let mut state = locked(&shared.state);
    state.remove(id);
    shared.begin_reserved(&mut state);
    shared.exit_if_idle(&state);
}

/// Keeps an output. While the disk is full it waits and reports that to the engine: the bytes are still in
/// the slot, and the end of a command must not be recorded without an output that may be needed. After any
/// other error only the length is kept, since the end itself matters more.
fn keep_output(shared: &KeeperShared, id: u64, file: &std::fs::File, head: u64) -> SpooledOutput {
    loop {
        match shared.segments.keep(file, head) {
            Ok(kept) => return kept,
            Err(error) if is_full(&error) => {
                let errno = error.raw_os_error().unwrap_or_default();
                shared.refuse(Some(id), KeeperRefusal::Spool(errno));
                std::thread::sleep(ROOM);
            }
            Err(_) => return length_only(file),
        }
    }
}

pub(super) fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

fn exit_facts(run: &mut KeeperRun) -> Option<(CommandEnd, EndedBy, SystemTime, u64, OutputSlot)> {
    let why = run.why();
    let slot = run.slot.take()?;
    Some((run.end?, why, run.began, run.limits.capture, slot))
}

fn length_only(file: &std::fs::File) -> SpooledOutput {
    SpooledOutput { length: file.metadata().map_or(0, |found| found.len()), ..SpooledOutput::default() }
}

/// `__WNOTHREAD`: children of this thread only.
const OWN: WaitOptions = WaitOptions::from_bits_retain(0x2000_0000);

/// Reaps all children, in the keeper's main thread, which creates no process: orphans are reparented to it, so one
/// `wait` with `__WNOTHREAD` tells whether there are any.
pub(crate) fn reap(shared: &KeeperShared) -> ! {
    loop {
        let seen = locked(&shared.state).made;
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) => ended(shared, pid, status),
            Err(Errno::CHILD) => {
                // No child at all. Orphans come only from commands, so wait for the next command.
                let state = locked(&shared.state);
                drop(
                    shared
                        .children
                        .wait_while(state, |state| state.made == seen)
                        .unwrap_or_else(PoisonError::into_inner),
                );
            }
            _ => {}
        }
    }
}

fn ended(shared: &KeeperShared, pid: Pid, status: WaitStatus) {
    let Some(end) = end(status) else { return };
    let pid = pid.as_raw_pid();
    if !locked(&shared.state).by_pid.contains_key(&pid) {
        // Either reparented, or so short-lived that `spawn` has not entered it yet; wait for that.
        drop(shared.spawning.write().unwrap_or_else(PoisonError::into_inner));
    }
    let (reparented, also) = match wait(WaitOptions::NOHANG | OWN) {
        Ok(also) => (true, also),
        Err(_) => (false, None),
    };
    if let Some(id) = shared.child_ended(pid, end, reparented) {
        run_steps(shared, id);
    }
    if let Some((pid, status)) = also {
        ended(shared, pid, status);
    }
}

fn end(status: WaitStatus) -> Option<CommandEnd> {
    status.exit_status().map(CommandEnd::Code).or_else(|| status.terminating_signal().map(CommandEnd::Signal))
}
