//! The folder of one round: a working directory, a store, and the processes that were started there.
//!
//! Every process that carries the round's name in its environment is killed when the round is over.

use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::compare::InjectedKills;
use super::findings::KillFindings;
use super::record;

const VARIABLE: &str = "UNDAUNTED_KILL_ROUND";
/// How long a short operation of the round may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Failpoints of keepers.
const OF_KEEPERS: &[&str] = &[
    "spawning",
    "spawned",
    "exited",
    "exited-after",
    "answer-before",
    "answer-after",
    "log-before-rename",
    "log-after-rename",
];

pub(crate) struct RoundSandbox {
    folder: PathBuf,
    program: PathBuf,
    started: Cell<u32>,
    kills: RefCell<InjectedKills>,
    deaths: Cell<u64>,
    failpoints: RefCell<Vec<String>>,
}

/// How a process ended, and what it said.
#[derive(Clone, Debug)]
pub(crate) struct ProgramExit {
    /// The exit code, or the negative number of the signal.
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) struct RunningProgram {
    child: Child,
    output: PathBuf,
    died: PathBuf,
}

impl RoundSandbox {
    pub(crate) fn make(folder: PathBuf, program: &Path) -> io::Result<Self> {
        for inner in ["work", "output", "locks"] {
            fs::create_dir_all(folder.join(inner))?;
        }
        Ok(Self {
            folder,
            program: program.to_owned(),
            started: Cell::new(0),
            kills: RefCell::default(),
            deaths: Cell::new(0),
            failpoints: RefCell::default(),
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> io::Result<()> {
        fs::write(self.folder.join("work").join(name), text)
    }

    /// What the commands have recorded.
    pub(crate) fn record(&self) -> Vec<record::CommandRun> {
        record::read(&self.folder.join("record"))
    }

    /// Starts the program, with a failpoint at which it dies, if one is given.
    pub(crate) fn start(&self, args: &[&str], failpoint: Option<&str>) -> io::Result<RunningProgram> {
        let number = self.started.get().saturating_add(1);
        self.started.set(number);
        let output = self.folder.join("output").join(format!("{number:03}"));
        let died = output.with_extension("died");
        let mut command = Command::new(&self.program);
        command
            .arg("--store")
            .arg(self.folder.join("store"))
            .args(args)
            .env(VARIABLE, &self.folder)
            .env_remove("UNDAUNTED_STORE")
            .env_remove("UNDAUNTED_HOME")
            .env_remove("UNDAUNTED_TEST_DIE")
            .env_remove("UNDAUNTED_RUN")
            .env("UNDAUNTED_TEST_DIED", &died)
            .current_dir(self.folder.join("work"))
            .stdin(Stdio::null())
            .stdout(File::create(output.with_extension("out"))?)
            .stderr(File::create(output.with_extension("err"))?);
        if let Some(failpoint) = failpoint {
            command.env("UNDAUNTED_TEST_DIE", failpoint);
        }
        fs::write(output.with_extension("args"), format!("{args:?} {failpoint:?} {}\n", record::now()))?;
        Ok(RunningProgram { child: command.spawn()?, output, died })
    }

    pub(crate) fn call(&self, args: &[&str]) -> io::Result<ProgramExit> {
        let mut running = self.start(args, None)?;
        if !running.ends_within(PATIENCE)? {
            running.child.kill()?;
        }
        running.ended()
    }

    /// Kills a process that this sandbox has started.
    pub(crate) fn kill(&self, running: &mut RunningProgram) -> io::Result<()> {
        if !running.has_ended()? {
            self.kills.borrow_mut().engines.push(record::now());
            self.count();
            running.child.kill()?;
            running.child.wait()?;
        }
        Ok(())
    }

    pub(crate) fn kill_keepers(&self) {
        let is_keeper = |pid: i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == b"keeper")
        };
        for pid in self.own_processes() {
            if is_keeper(pid) {
                // Noted before the kill, because the engine may report the loss at once.
                self.kills.borrow_mut().keepers.push(record::now());
                self.kill_process(pid);
            }
        }
    }

    /// Kills commands that have begun and not ended: all, or the one that began last.
    pub(crate) fn kill_commands(&self, all: bool) {
        let runs = self.record();
        let open = runs.iter().rev().filter(|run| run.end.is_none());
        let open = open.filter(|run| self.is_own_process(run.begin.pid));
        let pids: Vec<i32> = open.map(|run| run.begin.pid).collect();
        let many = if all { pids.len() } else { 1 };
        for pid in pids.into_iter().take(many) {
            self.kills.borrow_mut().commands.push(pid);
            self.kill_process(pid);
        }
    }

    fn kill_process(&self, pid: i32) {
        if send_kill(pid) {
            self.count();
        }
    }

    fn count(&self) {
        self.deaths.set(self.deaths.get().saturating_add(1));
    }

    /// Reads all reports of failpoints. A keeper may die long after its engine.
    pub(crate) fn note_deaths(&self) {
        let output = fs::read_dir(self.folder.join("output"));
        let files = output.into_iter().flatten().flatten().map(|it| it.path());
        for died in files.filter(|it| it.extension().is_some_and(|it| it == "died")) {
            self.read_deaths(&died);
        }
    }

    /// Reads the failpoint report of one process.
    pub(crate) fn note_deaths_of(&self, running: &RunningProgram) {
        self.read_deaths(&running.died);
    }

    fn read_deaths(&self, died: &Path) {
        let text = fs::read_to_string(died).unwrap_or_default();
        for line in text.lines() {
            let mut words = line.split(' ');
            let failpoint = words.next().and_then(|it| it.split(':').next());
            let at = words.nth(1).and_then(|it| it.parse().ok());
            let (Some(failpoint), Some(at)) = (failpoint, at) else {
                continue;
            };
            self.count();
            self.failpoints.borrow_mut().push(failpoint.to_owned());
            let mut kills = self.kills.borrow_mut();
            if OF_KEEPERS.contains(&failpoint) {
                kills.keepers.push(at);
            } else {
                kills.engines.push(at);
            }
        }
        // So that it is read once.
        drop(fs::rename(died, died.with_extension("noted")));
    }

    pub(crate) fn kills(&self) -> InjectedKills {
        self.kills.borrow().clone()
    }

    /// Tells how many died.
    pub(crate) fn report_deaths(&self, findings: &mut KillFindings) {
        findings.kills = self.deaths.get();
        findings.failpoints = self.failpoints.take();
    }

    fn is_own_process(&self, pid: i32) -> bool {
        let name = format!("{VARIABLE}={}", self.folder.display());
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|each| each == name.as_bytes())
    }

    fn own_processes(&self) -> Vec<i32> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| self.is_own_process(*pid)).collect()
    }

    /// Kills all processes of the round, again and again until none is left.
    pub(crate) fn kill_all(&self) {
        let until = deadline(PATIENCE);
        loop {
            let left = self.own_processes();
            if left.is_empty() || Instant::now() >= until {
                return;
            }
            for pid in left {
                send_kill(pid);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl RunningProgram {
    pub(crate) fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Waits for its end, at most this long.
    pub(crate) fn ends_within(&mut self, time: Duration) -> io::Result<bool> {
        let until = deadline(time);
        loop {
            if self.has_ended()? {
                return Ok(true);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            thread::sleep(left.min(Duration::from_micros(500)));
        }
    }

    /// Its output so far.
    pub(crate) fn out(&self) -> String {
        fs::read_to_string(self.output.with_extension("out")).unwrap_or_default()
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> io::Result<ProgramExit> {
        let status = self.child.wait()?;
        let signal = || status.signal().map_or(-1, i32::saturating_neg);
        let err = fs::read(self.output.with_extension("err")).unwrap_or_default();
        Ok(ProgramExit {
            code: status.code().unwrap_or_else(signal),
            out: self.out(),
            err: String::from_utf8_lossy(&err).into_owned(),
        })
    }
}

/// The instant this far from now.
pub(crate) fn deadline(time: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(time).unwrap_or(now)
}

/// Sends SIGKILL; false if there is no such process.
fn send_kill(pid: i32) -> bool {
    let pid = Pid::from_raw(pid);
    pid.is_some_and(|pid| rustix::process::kill_process(pid, Signal::KILL).is_ok())
}
