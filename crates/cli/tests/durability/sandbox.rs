//! A folder for one test: a working directory, a store, and every process that was started there.
//!
//! Dropping the sandbox kills each process that carries its name in the environment or works in its
//! folder.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::history::{assert_lawful, has_event};
use crate::processes::{ChildProcess, has_variable, is_alive, kill, processes, works_in};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_undaunted");
const RUN: [&str; 3] = ["run", "w.yaml", "--json"];
const RESUME: [&str; 3] = ["resume", "@last", "--json"];
const VARIABLE: &str = "TEST_WORLD";
/// Longer than any step of a test takes on the slowest machine.
const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
    store: PathBuf,
    started: Cell<u32>,
}

#[derive(Debug)]
pub(crate) struct FinishedProcess {
    /// The exit code; the negative signal number if a signal ended the process.
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl FinishedProcess {
    /// The one JSON document on stdout.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Stdout as JSON lines.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The job id in the report.
    pub(crate) fn job(&self) -> String {
        self.json()["job"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub(crate) fn err_contains(self, words: &str) -> Self {
        assert!(self.err.contains(words), "{words}: {self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for inner in ["work", "output"] {
            fs::create_dir(folder.path().join(inner)).unwrap();
        }
        let store = folder.path().join("store");
        Self { folder, store, started: Cell::new(0) }
    }

    pub(crate) fn with_store(store: PathBuf) -> Self {
        let mut sandbox = Self::new();
        sandbox.store = store;
        sandbox
    }

    /// A sandbox with a workflow `w.yaml`.
    pub(crate) fn of(workflow: &str) -> Self {
        let sandbox = Self::new();
        sandbox.write("w.yaml", workflow);
        sandbox
    }

    /// Starts a workflow.
    pub(crate) fn start_workflow(workflow: &str) -> (Self, ChildProcess) {
        let sandbox = Self::of(workflow);
        let engine = sandbox.start_run();
        (sandbox, engine)
    }

    /// Runs a workflow, which must exit with `code`, and reads its report.
    #[track_caller]
    pub(crate) fn run_workflow(workflow: &str, code: i32) -> (Self, Value) {
        let sandbox = Self::of(workflow);
        let report = sandbox.run().exits(code).json();
        (sandbox, report)
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

    /// Replaces a text in `w.yaml`.
    pub(crate) fn edit_workflow(&self, from: &str, to: &str) {
        self.write("w.yaml", &self.read("w.yaml").replace(from, to));
    }

    /// The binary with these arguments and variables, not started yet.
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

    /// Starts a command with its output in files: a process that inherited a pipe could block the test.
    pub(crate) fn start(&self, mut command: Command) -> ChildProcess {
        let number = self.started.replace(self.started.get() + 1);
        let output = |stream: &str| self.folder.path().join(format!("output/{number}.{stream}"));
        let (out, err) = (output("out"), output("err"));
        command.stdout(fs::File::create(&out).unwrap()).stderr(fs::File::create(&err).unwrap());
        ChildProcess::new(command.spawn().unwrap(), out, err)
    }

    pub(crate) fn spawn_with(&self, args: &[&str], variables: &[(&str, &str)]) -> ChildProcess {
        self.start(self.program(args, variables))
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> ChildProcess {
        self.spawn_with(args, &[])
    }

    /// Starts `run w.yaml --json`.
    pub(crate) fn start_run(&self) -> ChildProcess {
        self.spawn(&RUN)
    }

    pub(crate) fn start_run_with(&self, variables: &[(&str, &str)]) -> ChildProcess {
        self.spawn_with(&RUN, variables)
    }

    /// Starts `resume @last --json`.
    pub(crate) fn start_resume(&self) -> ChildProcess {
        self.spawn(&RESUME)
    }

    pub(crate) fn start_resume_with(&self, variables: &[(&str, &str)]) -> ChildProcess {
        self.spawn_with(&RESUME, variables)
    }

    pub(crate) fn call_with(&self, args: &[&str], variables: &[(&str, &str)]) -> FinishedProcess {
        self.spawn_with(args, variables).wait()
    }

    /// Runs the binary to its end.
    pub(crate) fn call(&self, args: &[&str]) -> FinishedProcess {
        self.call_with(args, &[])
    }

    /// Runs the binary, which must succeed, and reads the JSON document it prints.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        self.call(args).exits(0).json()
    }

    /// Runs the binary, which must succeed, and returns its stdout.
    #[track_caller]
    pub(crate) fn stdout(&self, args: &[&str]) -> String {
        self.call(args).exits(0).out
    }

    /// Runs `w.yaml` to its end.
    pub(crate) fn run(&self) -> FinishedProcess {
        self.run_with(&[])
    }

    pub(crate) fn run_with(&self, variables: &[(&str, &str)]) -> FinishedProcess {
        self.call_with(&RUN, variables)
    }

    pub(crate) fn resume(&self) -> FinishedProcess {
        self.resume_with(&[])
    }

    pub(crate) fn resume_with(&self, variables: &[(&str, &str)]) -> FinishedProcess {
        self.call_with(&RESUME, variables)
    }

    /// Resumes the latest job under a wall clock that is shifted by `seconds`.
    pub(crate) fn resume_at(&self, seconds: &str) -> FinishedProcess {
        self.resume_with(&[("UNDAUNTED_TEST_CLOCK", seconds)])
    }

    pub(crate) fn redrive(&self) -> FinishedProcess {
        self.call(&["dlq", "redrive", "@last", "--yes", "--json"])
    }

    /// Runs `w.yaml` and kills the process when the latest job has this event. Returns the event.
    pub(crate) fn run_killed_at(&self, event: &str) -> Value {
        let engine = self.start_run();
        let event = self.event(event);
        engine.kill();
        event
    }

    /// The same with one Ctrl-C instead of a kill.
    pub(crate) fn run_suspended_at(&self, event: &str) -> Value {
        let engine = self.start_run();
        let event = self.event(event);
        engine.suspend();
        event
    }

    /// Runs `w.yaml`, which must die at a failpoint.
    #[track_caller]
    pub(crate) fn run_dying_at(&self, failpoint: &str) {
        let ended = self.run_with(&[("UNDAUNTED_TEST_DIE", failpoint)]);
        assert_eq!(ended.code, -9, "{failpoint} is not reached: {ended:?}");
    }

    /// The events of the latest job.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.events_of("@last")
    }

    pub(crate) fn events_of(&self, job: &str) -> Vec<Value> {
        self.call(&["events", job, "--json"]).exits(0).json_lines()
    }

    /// The events of the latest job, which has ended and obeys every law of [`assert_lawful`].
    #[track_caller]
    pub(crate) fn lawful_events(&self) -> Vec<Value> {
        self.lawful_events_of("@last")
    }

    #[track_caller]
    pub(crate) fn lawful_events_of(&self, job: &str) -> Vec<Value> {
        let events = self.events_of(job);
        assert_lawful(&events);
        events
    }

    pub(crate) fn show(&self) -> Value {
        self.json(&["show", "@last", "--json"])
    }

    pub(crate) fn budget(&self) -> Value {
        self.json(&["budget", "show", "@last", "--json"])
    }

    /// The only job in the store.
    pub(crate) fn job(&self) -> String {
        self.call(&["ls", "--json"]).exits(0).job()
    }

    pub(crate) fn jobs(&self) -> Vec<String> {
        let listed = self.call(&["ls", "--json"]).exits(0).json_lines();
        listed.iter().map(|job| job["job"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn folder_of(&self, job: &str) -> PathBuf {
        self.store.join("jobs").join(job)
    }

    /// How often each line stands in a file that commands append to.
    pub(crate) fn runs(&self, name: &str) -> BTreeMap<String, usize> {
        let mut runs = BTreeMap::new();
        for line in self.lines(name) {
            *runs.entry(line).or_default() += 1;
        }
        runs
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        self.read(name).lines().map(str::to_owned).collect()
    }

    pub(crate) fn sorted_lines(&self, name: &str) -> Vec<String> {
        let mut lines = self.lines(name);
        lines.sort();
        lines
    }

    /// Polls until there is a result. The only place where a test sleeps.
    pub(crate) fn eventually<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(result) = poll() {
                return result;
            }
            assert!(began.elapsed() < DEADLINE, "still waiting for {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Polls until a condition holds.
    pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
        Self::eventually(what, || condition().then_some(()));
    }

    pub(crate) fn wait_for_death(pid: i32) {
        Self::wait_until("the death of a process", || !is_alive(pid));
    }

    pub(crate) fn wait_for_no_keeper(&self) {
        Self::wait_until("the end of the keeper", || self.keepers().is_empty());
    }

    /// Waits for the first complete line of a file.
    pub(crate) fn line(&self, name: &str) -> String {
        Self::eventually(name, || Some(self.read(name).split_once('\n')?.0.to_owned()))
    }

    /// Waits until a file has this many lines.
    pub(crate) fn wait_for_lines(&self, name: &str, many: usize) {
        Self::wait_until(name, || self.lines(name).len() >= many);
    }

    /// Waits for an event of the latest job.
    pub(crate) fn event(&self, kind: &str) -> Value {
        Self::eventually(kind, || {
            let ended = self.call(&["events", "@last", "--json"]);
            let events = ended.out.lines().map(|line| serde_json::from_str(line).ok());
            events.flatten().find(|event: &Value| event["type"] == kind)
        })
    }

    /// Waits until a job has an event of this type.
    pub(crate) fn wait_for_event_of(&self, job: &str, kind: &str) {
        Self::wait_until(kind, || has_event(&self.events_of(job), kind));
    }

    /// A breaker with its history.
    pub(crate) fn breaker(&self, name: &str) -> Value {
        self.json(&["breaker", "show", name, "--json"])
    }

    pub(crate) fn reset_breaker(&self, name: &str) {
        self.call(&["breaker", "reset", name]).exits(0);
    }

    pub(crate) fn wait_for_breaker(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        Self::eventually(name, || {
            let breaker = self.call(&["breaker", "show", name, "--json"]);
            // There is none before the first job that names it is stored.
            serde_json::from_str(&breaker.out).ok().filter(&wanted)
        })
    }

    pub(crate) fn wait_for_open_breaker(&self, name: &str) -> Value {
        self.wait_for_breaker(name, |breaker| breaker["state"] == "open")
    }

    /// Waits until the events of the latest job satisfy a condition.
    pub(crate) fn wait_for_events(&self, what: &str, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        Self::eventually(what, || {
            let events = self.call(&["events", "@last", "--json"]).json_lines();
            Some(events).filter(|events| wanted(events))
        })
    }

    /// The dead letters of the latest job.
    pub(crate) fn dead_letters(&self) -> Vec<Value> {
        self.call(&["dlq", "ls", "@last", "--json"]).exits(0).json_lines()
    }

    /// Waits for the process id that a command writes to a file.
    pub(crate) fn pid(&self, name: &str) -> i32 {
        self.line(name).trim().parse().unwrap()
    }

    pub(crate) fn keepers(&self) -> Vec<i32> {
        let name = self.name();
        let is_keeper = |pid: i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == b"keeper")
        };
        let mut keepers = processes();
        keepers.retain(|pid| has_variable(*pid, &name) && is_keeper(*pid));
        keepers
    }

    /// Whether no process of this sandbox is left.
    pub(crate) fn is_quiet(&self) -> bool {
        self.own_processes().is_empty()
    }

    fn name(&self) -> String {
        format!("{VARIABLE}={}", self.folder.path().display())
    }

    fn own_processes(&self) -> Vec<i32> {
        let name = self.name();
        let mut own = processes();
        own.retain(|pid| has_variable(*pid, &name) || works_in(self.folder.path(), *pid));
        own
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // Once more if a process was created while the others were killed.
        loop {
            let left = self.own_processes();
            if left.is_empty() {
                return;
            }
            left.into_iter().for_each(kill);
        }
    }
}
