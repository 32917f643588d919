//! Child processes that do not outlive this one, and their answers.
//!
//! The kernel kills every child when its parent dies, so that neither Ctrl-C nor a failure leaves a server
//! behind. It ties that to the thread that started the child, so the main thread starts all of them.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// The time limit of a turn: ten times as long as any successful one.
const LONGEST: Duration = Duration::from_mins(20);

/// Why a turn has no figures.
pub(crate) type Reason = String;

/// A command that dies with this process.
pub(crate) fn bound(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command.stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn finish(command: &mut Command) -> Result<String, Reason> {
    finish_within(command, LONGEST)
}

fn finish_within(command: &mut Command, longest: Duration) -> Result<String, Reason> {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| not_started(command, &error))?;
    let id = child.id().to_string();
    let (ended, end) = channel::<()>();
    let watch = thread::spawn(move || {
        let late = end.recv_timeout(longest) == Err(RecvTimeoutError::Timeout);
        late && Command::new("kill").args(["-KILL", &id]).status().is_ok()
    });
    let done = child.wait_with_output();
    drop(ended);
    if watch.join().unwrap_or_default() {
        return Err(format!("it was still running after {longest:?}"));
    }
    let done = done.map_err(|error| error.to_string())?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&done.stderr);
    let errors = |line: &&str| line.to_lowercase().contains("error");
    let lines = || complaint.lines().filter(|line| !line.trim().is_empty());
    let line = lines().find(errors).or_else(|| lines().next_back());
    Err(format!("{}: {}", done.status, line.unwrap_or_default().trim()))
}

fn not_started(command: &Command, error: &std::io::Error) -> Reason {
    format!("{command:?} cannot be started: {error}")
}

/// Runs a driver to its end and reads its answer.
pub(crate) fn answer(command: &mut Command) -> Result<Value, Reason> {
    let output = finish(command)?;
    let line = output.lines().last().unwrap_or_default();
    serde_json::from_str(line).map_err(|_| format!("the driver answered `{line}`"))
}

/// A process that is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Running(Child);

impl Running {
    /// Starts the command. [`Running::first_line`] reads its output.
    pub(crate) fn start(command: &mut Command) -> Result<Self, Reason> {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| not_started(command, &error))?;
        Ok(Self(child))
    }

    /// Waits for the first line of its output.
    pub(crate) fn first_line(&mut self) -> Result<String, Reason> {
        let mut line = String::new();
        if let Some(output) = self.0.stdout.take() {
            let read = BufReader::new(output).read_line(&mut line);
            read.map_err(|error| error.to_string())?;
        }
        if line.is_empty() {
            return Err("it ended before it was ready".to_owned());
        }
        Ok(line.trim().to_owned())
    }

    pub(crate) fn lives(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Sends a signal and waits for the end of the process.
    pub(crate) fn stop(&mut self, signal: &str) {
        let id = self.0.id().to_string();
        let asked = Command::new("sh").args(["-c", "kill -s \"$0\" \"$1\"", signal, &id]).status();
        if asked.is_ok_and(|status| status.success()) {
            drop(self.0.wait());
        }
    }

    /// The resident memory of the process and its children, in kilobytes.
    pub(crate) fn memory(&self) -> u64 {
        memory(self.0.id())
    }

    /// The CPU time that the process has used, in seconds, with a resolution of 10 ms.
    pub(crate) fn processor(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap_or_default();
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        let ticks = fields.split(' ').skip(11).take(2);
        ticks.filter_map(|tick| tick.parse::<f64>().ok()).sum::<f64>() / 100.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn memory(process: u32) -> u64 {
    let folder = format!("/proc/{process}");
    let status = fs::read_to_string(format!("{folder}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let own = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    let mut sum: u64 = own.unwrap_or_default();
    let threads = fs::read_dir(format!("{folder}/task"));
    for thread in threads.into_iter().flatten().flatten() {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|id| id.parse().ok()) {
            sum = sum.saturating_add(memory(child));
        }
    }
    sum
}

/// The bytes that a folder takes on the disk.
pub(crate) fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => bytes_in(&entry.path()),
        Ok(data) => std::os::unix::fs::MetadataExt::blocks(&data).saturating_mul(512),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_reported_with_its_last_line_of_stderr() {
        let reason = finish(bound("sh").args(["-c", "echo first; echo no such thing >&2; exit 3"]));
        assert_eq!(reason, Err("exit status: 3: no such thing".to_owned()));
    }

    #[test]
    fn a_process_past_its_time_limit_is_killed() {
        let reason = finish_within(bound("sleep").arg("1000"), Duration::from_millis(1));
        assert_eq!(reason, Err("it was still running after 1ms".to_owned()));
    }

    #[test]
    fn the_answer_is_the_last_line() {
        let said = answer(bound("sh").args(["-c", r#"echo noise; echo '{"seconds": 2}'"#]));
        assert_eq!(said, Ok(serde_json::json!({ "seconds": 2 })));
        let said = answer(bound("echo").arg("nothing"));
        assert_eq!(said, Err("the driver answered `nothing`".to_owned()));
    }

    #[test]
    fn a_process_is_killed_when_its_handle_is_dropped() -> Result<(), Reason> {
        let mut process = Running::start(bound("sh").args(["-c", "echo $$; exec sleep 1000"]))?;
        let id = process.first_line()?;
        assert!(process.lives() && process.memory() > 0);
        drop(process);
        assert!(!Path::new(&format!("/proc/{id}")).exists());
        Ok(())
    }
}
