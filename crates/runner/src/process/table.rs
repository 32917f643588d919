//! The processes of the machine and their descent.

use std::collections::HashSet;
use std::io;
use std::os::unix::fs::MetadataExt;

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
            let pid = name.to_str().and_then(|name| name.parse().ok());
            found.extend(pid.and_then(Self::find));
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
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

/// The pid namespace: in another container, a number refers to another process.
pub(crate) fn pid_space() -> io::Result<u64> {
    std::fs::metadata("/proc/self/ns/pid").map(|found| found.ino())
}

/// 32 random hexadecimal digits.
pub fn random_name() -> io::Result<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(text.trim().replace('-', ""))
}

/// 64 random bits.
pub fn random_number() -> io::Result<u64> {
    let name = random_name()?;
    let digits = name.get(16..).unwrap_or_default();
    Ok(u64::from_str_radix(digits, 16).unwrap_or_default())
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
