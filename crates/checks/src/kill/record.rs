//! The record of what really ran, kept outside of the program.
//!
//! Lines are only appended, each by one write, so that a killed process leaves whole lines.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordLine {
    /// In microseconds.
    pub(crate) at: u64,
    pub(crate) pid: i32,
    pub(crate) item: String,
    pub(crate) correlation: String,
    pub(crate) command: String,
    pub(crate) attempt: u64,
    pub(crate) token: String,
    /// The number of the start, as the program marks its processes.
    pub(crate) start: u64,
    /// Whether another attempt of the same command was alive.
    pub(crate) overlaps: bool,
    /// Outputs of other commands.
    pub(crate) given: Vec<String>,
    /// The exit code; `None` in the line of the begin.
    pub(crate) code: Option<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandRun {
    pub(crate) begin: RecordLine,
    /// The time of the end and the exit code; `None` if the command did not come so far.
    pub(crate) end: Option<(u64, u8)>,
}

pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_micros()).unwrap_or(u64::MAX))
}

pub(crate) fn write(path: &Path, line: &RecordLine) -> io::Result<()> {
    let mut text = serde_json::to_string(line).map_err(io::Error::other)?;
    text.push('\n');
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(text.as_bytes())
}

/// All runs, in the order in which they began.
pub(crate) fn read(path: &Path) -> Vec<CommandRun> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines();
    let lines: Vec<RecordLine> = lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
    runs(&lines)
}

/// Joins each begin with its end.
pub(crate) fn runs(lines: &[RecordLine]) -> Vec<CommandRun> {
    let mut runs: Vec<CommandRun> = Vec::new();
    let mut open: BTreeMap<(i32, &str, u64), usize> = BTreeMap::new();
    for line in lines {
        let run_key = (line.pid, line.token.as_str(), line.attempt);
        match line.code {
            None => {
                open.insert(run_key, runs.len());
                let begin = line.clone();
                runs.push(CommandRun { begin, end: None });
            }
            Some(code) => {
                let run = open.remove(&run_key).and_then(|index| runs.get_mut(index));
                if let Some(run) = run {
                    run.end = Some((line.at, code));
                }
            }
        }
    }
    runs
}
