//! Processes: finding, signalling and killing them, and the random instants at which they are killed.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::sandbox::{FinishedProcess, Sandbox};

/// The binary under test while it runs.
pub(crate) struct ChildProcess {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl ChildProcess {
    pub(crate) const fn new(child: Child, out: PathBuf, err: PathBuf) -> Self {
        Self { child, out, err }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// What is on standard error so far.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.err).unwrap_or_default()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) fn wait(mut self) -> FinishedProcess {
        let status = Sandbox::eventually("the end of the binary", || self.child.try_wait().unwrap());
        let code = status.code().or(status.signal().map(|signal| -signal));
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        FinishedProcess { code: code.unwrap(), out: read(&self.out), err: read(&self.err) }
    }

    /// `kill -9`, and waits until the process is gone.
    pub(crate) fn kill(self) -> FinishedProcess {
        kill(self.pid());
        self.wait()
    }

    /// Sends the signal of Ctrl-C and waits for the message that running commands may finish.
    pub(crate) fn interrupt(&self) {
        self.signal("INT");
        Sandbox::wait_until("the message after Ctrl-C", || self.stderr().contains("waiting for"));
    }

    /// Suspends the job with one Ctrl-C.
    #[track_caller]
    pub(crate) fn suspend(self) {
        self.signal("INT");
        self.wait().exits(75);
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }
}

/// All process ids of the machine.
pub(crate) fn processes() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a living process has this `NAME=value` in its environment.
pub(crate) fn has_variable(pid: i32, variable: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut variables = environment.split(|byte| *byte == 0);
    is_alive(pid) && variables.any(|each| each == variable.as_bytes())
}

/// Whether a living process has its working directory in a folder.
pub(crate) fn works_in(folder: &Path, pid: i32) -> bool {
    let directory = fs::read_link(format!("/proc/{pid}/cwd"));
    is_alive(pid) && directory.is_ok_and(|directory| directory.starts_with(folder))
}

/// Whether a process runs; a zombie does not.
pub(crate) fn is_alive(pid: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

pub(crate) fn signal(pid: i32, name: &str) {
    // The process may be gone already; then `kill` fails, which is fine.
    let script = format!("kill -{name} {pid} 2>/dev/null");
    Command::new("/bin/sh").args(["-c", &script]).status().unwrap();
}

pub(crate) fn kill(pid: i32) {
    signal(pid, "KILL");
}

pub(crate) fn kill_and_wait(pid: i32) {
    kill(pid);
    Sandbox::wait_for_death(pid);
}

/// Pseudo-random numbers. The seed is printed; `DURABILITY_SEED` sets it.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn seeded() -> Self {
        let seed = std::env::var("DURABILITY_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) * 1_000_003);
        println!("DURABILITY_SEED={seed}");
        Self(seed)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
