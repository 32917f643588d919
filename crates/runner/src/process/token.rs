//! Processes found by the receipt token in their environment.
//!
//! The last resort, when it is no longer known which keeper started what. All attempts of a command
//! share a token, so it identifies the command and not the attempt; that suffices to know that one of
//! them is alive.

use std::collections::BTreeSet;
use std::io;

use super::Process;

const VARIABLE: &[u8] = b"UNDAUNTED_RECEIPT_TOKEN=";

pub(crate) fn holding(tokens: &BTreeSet<String>) -> io::Result<Vec<Process>> {
    let own = rustix::process::getpid().as_raw_pid();
    let mut all = Process::all()?;
    all.retain(|process| !process.ended && process.pid != own && holds(process.pid, tokens));
    Ok(all)
}

fn holds(pid: i32, tokens: &BTreeSet<String>) -> bool {
    let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else {
        return false;
    };
    let mut variables = environment.split(|byte| *byte == 0);
    let token = variables.find_map(|variable| variable.strip_prefix(VARIABLE));
    token.and_then(|token| std::str::from_utf8(token).ok()).is_some_and(|token| tokens.contains(token))
}
