//! A host in another process, which can be killed.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use undaunted_runner::flows::FlowSubmission;

pub(crate) struct HostProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl HostProcess {
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_with(folder, None)
    }

    /// Kills itself at a failpoint.
    pub(crate) fn start_with(folder: &Path, failpoint: Option<String>) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_test-host"))
            .arg(folder)
            .envs(failpoint.map(|failpoint| ("UNDAUNTED_TEST_DIE", failpoint)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    fn ask(&mut self, asked: &Value) -> Value {
        writeln!(self.input, "{asked}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) fn begin(&mut self, wanted: &FlowSubmission) {
        let asked = json!({
            "start": {"id": wanted.id, "goals": wanted.goals, "init": wanted.init}
        });
        assert_eq!(self.ask(&asked), json!({"begun": "Now"}));
    }

    pub(crate) fn recover(&mut self) -> Value {
        self.ask(&"recover".into())
    }

    /// Waits until the process has killed itself.
    pub(crate) fn died(mut self) {
        assert_eq!(self.child.wait().unwrap().signal(), Some(9));
    }

    pub(crate) fn deliver(&mut self, flow: &str, step: &str, token: &str, result: &str) -> Value {
        self.ask(&json!({"deliver": {"flow": flow, "step": step, "token": token, "result": result}}))
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        // It may be dead already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
