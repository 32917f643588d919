//! Ending processes, and knowing that they have ended.
//!
//! A signal is sent through a process descriptor, which is opened and then compared with the expected
//! process, so it never reaches another process that reuses the number.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::SystemProcess;

/// How long the kernel may take to end a process after a KILL.
const AFTER_KILL: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndedGroup {
    pub(crate) ended: u32,
    pub(crate) survived: u32,
}

pub(crate) fn signal(process: &SystemProcess, signal: Signal) -> io::Result<()> {
    match open_descriptor(process)? {
        Some(descriptor) => Ok(pidfd_send_signal(descriptor, signal)?),
        None => Ok(()),
    }
}

/// Sends TERM and, after the grace, KILL, and waits until the processes are gone.
pub(crate) fn end_all(processes: &[SystemProcess], grace: Duration) -> EndedGroup {
    let mut left: Vec<OwnedFd> = vec![];
    let mut outcome = EndedGroup::default();
    for process in processes {
        match open_descriptor(process) {
            Ok(Some(descriptor)) => left.push(descriptor),
            Ok(None) => outcome.ended = outcome.ended.saturating_add(1),
            Err(_) => outcome.survived = outcome.survived.saturating_add(1),
        }
    }
    for (step, patience) in [(Signal::TERM, grace), (Signal::KILL, AFTER_KILL)] {
        for descriptor in &left {
            // A process that may not be signalled counts below as a survivor.
            let _ = pidfd_send_signal(descriptor, step);
        }
        let before = left.len();
        left = wait_for_all(left, patience);
        let gone = u32::try_from(before.saturating_sub(left.len())).unwrap_or(u32::MAX);
        outcome.ended = outcome.ended.saturating_add(gone);
        if left.is_empty() {
            return outcome;
        }
    }
    let survived = u32::try_from(left.len()).unwrap_or(u32::MAX);
    outcome.survived = outcome.survived.saturating_add(survived);
    outcome
}

/// None if the process has ended.
fn open_descriptor(process: &SystemProcess) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = Pid::from_raw(process.pid) else {
        return Ok(None);
    };
    let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(descriptor) => descriptor,
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // Another process may have reused the number before the descriptor was opened, so it is looked up again.
    let same = SystemProcess::find(process.pid).is_some_and(|now| now.started == process.started);
    Ok(same.then_some(descriptor))
}

/// Waits until all have ended or the time is over, and returns those that have not.
fn wait_for_all(mut left: Vec<OwnedFd>, patience: Duration) -> Vec<OwnedFd> {
    let until = Instant::now().checked_add(patience);
    while !left.is_empty() {
        let rest = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = rest.and_then(|rest| Timespec::try_from(rest).ok());
        let mut polled: Vec<PollFd<'_>> =
            left.iter().map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
        let answered = poll(&mut polled, timeout.as_ref());
        let ended: Vec<bool> = polled.iter().map(|each| !each.revents().is_empty()).collect();
        let mut ended = ended.into_iter();
        left.retain(|_| !ended.next().unwrap_or_default());
        if matches!(answered, Ok(0)) {
            break;
        }
    }
    left
}
