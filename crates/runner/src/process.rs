//! Processes as `/proc` shows them.
//!
//! This module reads and signals processes; the keeper decides which process belongs to which attempt. A
//! number alone never identifies a process: it takes the number and the instant at which the process was
//! started.
//!
//! A signal is sent through a process descriptor, which is opened and then compared with the expected process, so it
//! never reaches another process that reuses the number.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SystemProcess {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// In ticks since the boot; with the number it identifies a process for good.
    pub(crate) started: u64,
    /// A zombie: its parent has not waited for it yet.
    pub(crate) ended: bool,
}

impl SystemProcess {
    pub(crate) fn find(pid: i32) -> Option<Self> {
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(pid, &String::from_utf8_lossy(&text))
    }

    pub(crate) fn all() -> io::Result<Vec<Self>> {
        let mut found = vec![];
        for entry in std::fs::read_dir("/proc")? {
            let name = entry?.file_name();
            found.extend(name.to_str().and_then(|name| name.parse().ok()).and_then(Self::find));
        }
        Ok(found)
    }

    fn parse(pid: i32, text: &str) -> Option<Self> {
        // The name is in brackets and may contain anything, brackets too.
        let (_, after_name) = text.rsplit_once(')')?;
        let mut fields = after_name.split_ascii_whitespace();
        let state = fields.next()?;
        let mut number = || fields.next()?.parse().ok();
        let (parent, group, session) = (number()?, number()?, number()?);
        Some(Self {
            pid,
            parent,
            group,
            session,
            started: fields.nth(15)?.parse().ok()?,
            ended: matches!(state, "Z" | "X"),
        })
    }
}

pub(crate) fn descendants(
    all: &[SystemProcess],
    is_root: impl Fn(&SystemProcess) -> bool,
) -> Vec<SystemProcess> {
    let mut found: Vec<SystemProcess> = all.iter().filter(|each| is_root(each)).copied().collect();
    let mut known: HashSet<i32> = found.iter().map(|each| each.pid).collect();
    loop {
        let before = found.len();
        for each in all {
            if known.contains(&each.parent) && known.insert(each.pid) {
                found.push(*each);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// The boot id: no process of another boot is running.
pub(crate) fn boot() -> io::Result<String> {
    #[cfg(feature = "failpoints")]
    if let Ok(other) = std::env::var("UNDAUNTED_TEST_BOOT_ID") {
        return Ok(other);
    }
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// The pid namespace: in another container, a number refers to another process.
pub(crate) fn pid_space() -> io::Result<u64> {
    std::fs::metadata("/proc/self/ns/pid").map(|found| found.ino())
}

/// 32 random hexadecimal digits.
pub fn random_name() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().replace('-', ""))
}

/// 64 random bits.
pub fn random_number() -> io::Result<u64> {
    let name = random_name()?;
    let digits = name.get(16..).unwrap_or_default();
    Ok(u64::from_str_radix(digits, 16).unwrap_or_default())
}

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

pub(crate) const VARIABLE: &str = "UNDAUNTED_RUN";
const TOKEN_VARIABLE: &str = "UNDAUNTED_RECEIPT_TOKEN";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessMark {
    pub(crate) keeper: String,
    /// None for the keeper itself, and for its child before that has become the command.
    pub(crate) id: Option<u64>,
}

impl ProcessMark {
    /// The variable's value for a process whose environment had `before`.
    pub(crate) fn after(&self, before: Option<&OsStr>) -> OsString {
        let mut value = before.map(OsStr::to_owned).unwrap_or_default();
        if !value.is_empty() {
            value.push(" ");
        }
        value.push(&self.keeper);
        if let Some(id) = self.id {
            value.push(format!(":{id}"));
        }
        value
    }

    pub(crate) fn own() -> Option<Self> {
        Self::all(std::env::var_os(VARIABLE)?.as_bytes()).pop()
    }

    /// Empty if the environment cannot be read.
    pub(crate) fn of(pid: i32) -> Vec<Self> {
        environment_variable(pid, VARIABLE).as_deref().map(Self::all).unwrap_or_default()
    }

    fn all(value: &[u8]) -> Vec<Self> {
        let words = value.split(|byte| *byte == b' ');
        words
            .filter_map(|word| {
                let word = std::str::from_utf8(word).ok()?;
                Some(match word.split_once(':') {
                    Some((keeper, id)) => Self { keeper: keeper.to_owned(), id: Some(id.parse().ok()?) },
                    None => Self { keeper: word.to_owned(), id: None },
                })
            })
            .collect()
    }
}

/// Finds processes by the receipt token in their environment: the last resort, when it is no longer known
/// which keeper started what. All attempts of a command share a token, so it identifies the command and not
/// the attempt; that suffices to know that one of them is alive.
pub(crate) fn with_receipt_token(tokens: &BTreeSet<String>) -> io::Result<Vec<SystemProcess>> {
    let own = rustix::process::getpid().as_raw_pid();
    let mut all = SystemProcess::all()?;
    all.retain(|process| !process.ended && process.pid != own && has_receipt_token(process.pid, tokens));
    Ok(all)
}

fn has_receipt_token(pid: i32, tokens: &BTreeSet<String>) -> bool {
    let token = environment_variable(pid, TOKEN_VARIABLE);
    token.is_some_and(|token| std::str::from_utf8(&token).is_ok_and(|token| tokens.contains(token)))
}

/// None if the variable is not set, or the environment cannot be read.
fn environment_variable(pid: i32, name: &str) -> Option<Vec<u8>> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    value.map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::{SystemProcess, descendants};

    #[test]
    fn a_process_name_may_contain_brackets() {
        let text = "7 (a) (b) ) S 1 7 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0";
        let expected = SystemProcess { pid: 7, parent: 1, group: 7, session: 5, started: 4711, ended: false };
        assert_eq!(SystemProcess::parse(7, text), Some(expected));
    }

    #[test]
    fn a_process_finds_itself() {
        let own = i32::try_from(std::process::id()).unwrap();
        let found = SystemProcess::find(own).unwrap();
        assert!(!found.ended && SystemProcess::all().unwrap().contains(&found));
    }

    #[test]
    fn descendants_are_found_in_any_order() {
        let process =
            |pid, parent| SystemProcess { pid, parent, group: 0, session: 0, started: 0, ended: false };
        let all = [process(9, 8), process(8, 2), process(3, 1), process(2, 1)];
        let mut found: Vec<i32> =
            descendants(&all, |each| each.pid == 2).iter().map(|each| each.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [2, 8, 9]);
    }
}
