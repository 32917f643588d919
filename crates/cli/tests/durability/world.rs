//! A folder for one test: a working directory, a store, and everything that was started there.
//!
//! Whatever carries the world's name in its environment, or is at home in its folder, is killed when
//! the world ends.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::processes::{Running, carries, houses, kill, processes};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_undaunted");
const VARIABLE: &str = "TEST_WORLD";
/// Longer than anything here takes on the slowest machine.
const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) struct World {
    folder: tempfile::TempDir,
    store: PathBuf,
    started: Cell<u32>,
}

/// How a process of ours ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Its exit code; for a signal its number, negative.
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// What `--json` printed.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The job, as the report names it.
    pub(crate) fn job(&self) -> String {
        self.json()["job"].as_str().unwrap().to_owned()
    }

    /// The same, if it exited so.
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for inner in ["work", "said"] {
            fs::create_dir(folder.path().join(inner)).unwrap();
        }
        let store = folder.path().join("store");
        Self { folder, store, started: Cell::new(0) }
    }

    /// The same with its store elsewhere.
    pub(crate) fn with_store(store: PathBuf) -> Self {
        let mut world = Self::new();
        world.store = store;
        world
    }

    /// A world with a workflow `w.yaml`.
    pub(crate) fn of(workflow: &str) -> Self {
        let world = Self::new();
        world.write("w.yaml", workflow);
        world
    }

    pub(crate) fn store(&self) -> &Path {
        &self.store
    }

    /// A file in the working directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Our program with these arguments and variables, not started yet.
    pub(crate) fn program(&self, args: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = Command::new(BINARY);
        command
            .arg("--store")
            .arg(&self.store)
            .args(args)
            .env(VARIABLE, self.folder.path())
            .env_remove("UNDAUNTED_TEST_DIE")
            .env_remove("UNDAUNTED_TEST_CLOCK")
            .envs(variables.iter().copied())
            .current_dir(self.path(""))
            .stdin(Stdio::null());
        command
    }

    /// Starts it; what it says goes to files, so that whoever inherits them holds up nobody.
    pub(crate) fn start(&self, mut command: Command) -> Running {
        let number = self.started.replace(self.started.get() + 1);
        let said = |what: &str| self.folder.path().join(format!("said/{number}.{what}"));
        let (out, err) = (said("out"), said("err"));
        command.stdout(fs::File::create(&out).unwrap()).stderr(fs::File::create(&err).unwrap());
        Running::new(command.spawn().unwrap(), out, err)
    }

    pub(crate) fn spawn_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Running {
        self.start(self.program(args, variables))
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Running {
        self.spawn_with(args, &[])
    }

    pub(crate) fn call_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Ended {
        self.spawn_with(args, variables).wait()
    }

    /// Runs our program to its end.
    pub(crate) fn call(&self, args: &[&str]) -> Ended {
        self.call_with(args, &[])
    }

    /// Runs `w.yaml` to its end.
    pub(crate) fn run(&self) -> Ended {
        self.call(&["run", "w.yaml", "--json"])
    }

    pub(crate) fn resume(&self) -> Ended {
        self.call(&["resume", "@last", "--json"])
    }

    /// The events of the latest job.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.events_of("@last")
    }

    pub(crate) fn events_of(&self, job: &str) -> Vec<Value> {
        let ended = self.call(&["events", job, "--json"]).exits(0);
        let lines = ended.out.lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn show(&self) -> Value {
        self.call(&["show", "@last", "--json"]).exits(0).json()
    }

    /// The only job there is.
    pub(crate) fn job(&self) -> String {
        let listed = self.call(&["ls", "--json"]).exits(0);
        listed.job()
    }

    /// The folder of a job.
    pub(crate) fn folder_of(&self, job: &str) -> PathBuf {
        self.store.join("jobs").join(job)
    }

    /// How often each line is in a file that commands have added lines to.
    pub(crate) fn runs(&self, name: &str) -> BTreeMap<String, usize> {
        let mut runs = BTreeMap::new();
        for line in self.read(name).lines() {
            *runs.entry(line.to_owned()).or_default() += 1;
        }
        runs
    }

    /// The lines of a file, in order.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        self.read(name).lines().map(str::to_owned).collect()
    }

    /// Waits until something is there. The only place where a test waits without an event.
    pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(began.elapsed() < DEADLINE, "still waiting for {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for a file with a whole line in it, and returns that line.
    pub(crate) fn line(&self, name: &str) -> String {
        Self::eventually(name, || Some(self.read(name).split_once('\n')?.0.to_owned()))
    }

    /// Waits until a file has so many lines.
    pub(crate) fn wait_for_lines(&self, name: &str, many: usize) {
        Self::eventually(name, || (self.lines(name).len() >= many).then_some(()));
    }

    /// Waits for an event of the latest job.
    pub(crate) fn event(&self, kind: &str) -> Value {
        Self::eventually(kind, || {
            let ended = self.call(&["events", "@last", "--json"]);
            let found = ended.out.lines().map(|line| serde_json::from_str(line).ok());
            found.flatten().find(|event: &Value| event["type"] == kind)
        })
    }

    /// A breaker with its history.
    pub(crate) fn breaker(&self, name: &str) -> Value {
        let shown = self.call(&["breaker", "show", name, "--json"]);
        shown.exits(0).json()
    }

    /// Waits until a breaker is as it should be.
    pub(crate) fn wait_for_breaker(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        Self::eventually(name, || {
            let shown = self.call(&["breaker", "show", name, "--json"]);
            // There is none before the first job that names it is stored.
            let breaker = serde_json::from_str(&shown.out).ok();
            breaker.filter(&wanted)
        })
    }

    /// Waits until the events of the latest job are as they should be.
    pub(crate) fn wait_for_events(&self, what: &str, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        Self::eventually(what, || {
            let told = self.call(&["events", "@last", "--json"]);
            let lines = told.out.lines();
            let events: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
            Some(events).filter(|events| wanted(events))
        })
    }

    /// The dead letters of the latest job.
    pub(crate) fn dead_letters(&self) -> Vec<Value> {
        let listed = self.call(&["dlq", "ls", "@last", "--json"]).exits(0);
        let lines = listed.out.lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The process whose number a command wrote to a file.
    pub(crate) fn pid(&self, name: &str) -> i32 {
        self.line(name).trim().parse().unwrap()
    }

    /// The keepers of this world.
    pub(crate) fn keepers(&self) -> Vec<i32> {
        let name = self.name();
        let is_keeper = |pid: i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == b"keeper")
        };
        let mut found = processes();
        found.retain(|pid| carries(*pid, &name) && is_keeper(*pid));
        found
    }

    /// Whether anything of this world runs.
    pub(crate) fn is_quiet(&self) -> bool {
        self.inhabitants().is_empty()
    }

    fn name(&self) -> String {
        format!("{VARIABLE}={}", self.folder.path().display())
    }

    fn inhabitants(&self) -> Vec<i32> {
        let name = self.name();
        let mut found = processes();
        found.retain(|pid| carries(*pid, &name) || houses(self.folder.path(), *pid));
        found
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Once more if somebody was made while the others were killed.
        loop {
            let left = self.inhabitants();
            if left.is_empty() {
                return;
            }
            left.into_iter().for_each(kill);
        }
    }
}
