//! The processes of the machine and their descent.

use std::collections::HashSet;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// In ticks since the boot; with the number it identifies a process for good.
    pub(crate) started: u64,
    /// A zombie: its parent has not waited for it yet.
    pub(crate) ended: bool,
}

impl Process {
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

pub(crate) fn descendants(all: &[Process], is_root: impl Fn(&Process) -> bool) -> Vec<Process> {
    let mut found: Vec<Process> = all.iter().filter(|each| is_root(each)).copied().collect();
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

#[cfg(test)]
mod tests {
    use super::{Process, descendants};

    #[test]
    fn a_name_full_of_brackets_does_not_confuse() {
        let text = "7 (a) (b) ) S 1 7 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0";
        let expected = Process { pid: 7, parent: 1, group: 7, session: 5, started: 4711, ended: false };
        assert_eq!(Process::parse(7, text), Some(expected));
    }

    #[test]
    fn a_process_finds_itself() {
        let own = i32::try_from(std::process::id()).unwrap();
        let found = Process::find(own).unwrap();
        assert!(!found.ended && Process::all().unwrap().contains(&found));
    }

    #[test]
    fn descendants_are_found_whatever_the_order() {
        let process = |pid, parent| Process { pid, parent, group: 0, session: 0, started: 0, ended: false };
        let all = [process(9, 8), process(8, 2), process(3, 1), process(2, 1)];
        let mut found: Vec<i32> =
            descendants(&all, |each| each.pid == 2).iter().map(|each| each.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [2, 8, 9]);
    }
}
