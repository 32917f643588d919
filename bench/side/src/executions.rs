//! The executions as a program outside of the engines sees them: one line each, with the item and the time.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::process::Running;

const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The executions that were read so far, in the order of their lines.
#[derive(Debug)]
pub(crate) struct Executions {
    path: PathBuf,
    file: Option<File>,
    /// The beginning of a line that is not complete.
    rest: String,
    /// The times of the executions, in milliseconds since 1970.
    pub(crate) times: Vec<f64>,
    items: BTreeSet<u32>,
}

impl Executions {
    /// The executions that a process writes to this file.
    pub(crate) fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
            rest: String::new(),
            times: Vec::new(),
            items: BTreeSet::new(),
        }
    }

    /// Reads the lines that were written since the last call.
    pub(crate) fn poll(&mut self) {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &mut self.file else { return };
        // The file has only digits, spaces and line ends.
        if file.read_to_string(&mut self.rest).is_err() {
            return;
        }
        let whole = self.rest.rfind('\n').map_or(0, |end| end.saturating_add(1));
        let lines: String = self.rest.drain(..whole).collect();
        for line in lines.lines() {
            let mut words = line.split(' ');
            let item = words.next().and_then(|word| word.parse().ok());
            let time = words.next().and_then(|word| word.parse().ok());
            if let (Some(item), Some(time)) = (item, time) {
                self.items.insert(item);
                self.times.push(time);
            }
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.times.len()
    }

    /// The number of items that were executed at least once.
    pub(crate) fn distinct(&self) -> usize {
        self.items.len()
    }

    /// Polls until the condition holds. Gives up when nothing has changed for `patience`, or when the writer has
    /// ended and nothing more is there. Returns whether the condition holds.
    pub(crate) fn until(
        &mut self,
        writer: &mut Running,
        patience: Duration,
        done: impl Fn(&Self) -> bool,
    ) -> bool {
        let mut changed = Instant::now();
        loop {
            let (before, lived) = (self.count(), writer.lives());
            self.poll();
            if done(self) {
                return true;
            }
            if self.count() > before {
                changed = Instant::now();
            } else if !lived || changed.elapsed() > patience {
                return false;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

pub(crate) fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    #[test]
    fn a_line_counts_when_it_is_whole_and_an_item_only_once() -> std::io::Result<()> {
        let path = std::env::temp_dir().join(format!("executions-{}", std::process::id()));
        let mut written = File::create(&path)?;
        let mut executions = Executions::of(&path);
        written.write_all(b"1 1000\n2 1001\n1 10")?;
        executions.poll();
        assert_eq!((executions.count(), executions.distinct()), (2, 2));
        written.write_all(b"02\n")?;
        executions.poll();
        assert_eq!((executions.count(), executions.distinct()), (3, 2));
        assert_eq!(executions.times.last(), Some(&1002.0));
        fs::remove_file(path)
    }
}
