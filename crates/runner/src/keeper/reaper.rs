//! The thread that reaps all children.
//!
//! It is the keeper's main thread and creates no process: orphans are reparented to the main thread, so one
//! `wait` with `__WNOTHREAD` tells whether there are any.

use std::sync::PoisonError;

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use super::shared::KeeperShared;
use super::worker::run_steps;
use crate::locked;
use crate::spool::CommandEnd;

/// `__WNOTHREAD`: children of this thread only.
const OWN: WaitOptions = WaitOptions::from_bits_retain(0x2000_0000);

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
    let code = status.exit_status().map(CommandEnd::Code);
    code.or_else(|| status.terminating_signal().map(CommandEnd::Signal))
}
