//! Processes: looking at them, and killing them.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::world::{Ended, World};

/// Our program while it runs.
pub(crate) struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    pub(crate) const fn new(child: Child, out: PathBuf, err: PathBuf) -> Self {
        Self { child, out, err }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// What it has said on standard error so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.err).unwrap_or_default()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Ended {
        let status = World::eventually("the end of our program", || self.child.try_wait().unwrap());
        let code = status.code().or(status.signal().map(|signal| -signal));
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        Ended { code: code.unwrap(), out: read(&self.out), err: read(&self.err) }
    }

    /// `kill -9`, and waits until it is gone.
    pub(crate) fn kill(self) -> Ended {
        kill(self.pid());
        self.wait()
    }

    /// Sends what Ctrl-C sends, and waits for the word that what runs is waited for.
    pub(crate) fn interrupt(&self) {
        self.signal("INT");
        World::eventually("the news that it waits", || self.said().contains("waiting for").then_some(()));
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }
}

/// Every process there is.
pub(crate) fn processes() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a process that runs has this in its environment.
pub(crate) fn carries(pid: i32, name: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut variables = environment.split(|byte| *byte == 0);
    is_alive(pid) && variables.any(|each| each == name.as_bytes())
}

/// Whether a process that runs has its working directory in a folder.
pub(crate) fn houses(folder: &Path, pid: i32) -> bool {
    let home = fs::read_link(format!("/proc/{pid}/cwd"));
    is_alive(pid) && home.is_ok_and(|home| home.starts_with(folder))
}

/// Whether a process runs; one that has ended and waits for its parent does not.
pub(crate) fn is_alive(pid: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = text.rsplit_once(") ").map(|(_, rest)| rest.to_owned());
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}

pub(crate) fn signal(pid: i32, name: &str) {
    // Whoever is gone already needs none.
    let script = format!("kill -{name} {pid} 2>/dev/null");
    Command::new("/bin/sh").args(["-c", &script]).status().unwrap();
}

pub(crate) fn kill(pid: i32) {
    signal(pid, "KILL");
}

/// Kills, and waits until it is gone.
pub(crate) fn kill_and_wait(pid: i32) {
    kill(pid);
    World::eventually("the death of a process", || (!is_alive(pid)).then_some(()));
}
