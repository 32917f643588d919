//! The names of signals, for rules that match them and messages that report them.

/// In the order of their numbers on Linux, from 1.
pub const SIGNAL_NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
    "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// The name of a signal, without `SIG`; `None` for a real-time signal.
#[must_use]
pub fn signal_name(number: i32) -> Option<&'static str> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    SIGNAL_NAMES.get(index).copied()
}

/// The number of the signal called `name`, with or without `SIG`.
#[must_use]
pub fn signal_number(name: &str) -> Option<i32> {
    let name = name.strip_prefix("SIG").unwrap_or(name);
    let index = SIGNAL_NAMES.iter().position(|known| *known == name)?;
    i32::try_from(index.saturating_add(1)).ok()
}
