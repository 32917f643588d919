//! Times one command in a process of its own.
//!
//! The kernel reports the peak memory of all ended children of a process together, including the memory of the
//! parent when it started them. So a small process that starts nothing else ([`alone`]) starts each command.

use std::error::Error;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

/// The time, memory and output of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The time until the first line.
    pub(crate) first: Duration,
    pub(crate) all: Duration,
    /// Peak resident set, in kilobytes.
    pub(crate) memory: u64,
    /// Lines that it printed.
    pub(crate) lines: u64,
}

/// Runs a command through [`alone`].
pub(crate) fn turn(command: &[&str]) -> Result<Turn, Box<dyn Error>> {
    let mut alone = Command::new(std::env::current_exe()?);
    let alone = alone.arg("alone").args(command).stdin(Stdio::null());
    let output = alone.stderr(Stdio::piped()).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    Turn::read(&said).ok_or_else(|| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        format!("{}: {}", command.join(" "), complaint.trim()).into()
    })
}

/// Runs a command as the only child of this process and prints its figures.
pub(crate) fn alone(command: &[&str]) -> Result<(), Box<dyn Error>> {
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let began = Instant::now();
    let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn()?;
    let mut output = child.stdout.take().ok_or("no output")?;
    let (mut first, mut lines) = (None, 0_u64);
    let mut piece = vec![0; 1 << 16];
    loop {
        let read = output.read(&mut piece)?;
        let read = piece.get(..read).unwrap_or_default();
        if read.is_empty() {
            break;
        }
        let ends = read.iter().filter(|byte| **byte == b'\n').count();
        if ends > 0 {
            let _ = first.get_or_insert_with(|| began.elapsed());
        }
        lines = lines.saturating_add(u64::try_from(ends)?);
    }
    let status = child.wait()?;
    let all = began.elapsed();
    if !status.success() {
        return Err(status.to_string().into());
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let turn = Turn { first: first.unwrap_or(all), all, memory: u64::try_from(usage.max_rss())?, lines };
    turn.write(&mut std::io::stdout())?;
    Ok(())
}

impl Turn {
    fn write(self, to: &mut impl Write) -> std::io::Result<()> {
        let Self { first, all, memory, lines } = self;
        let (first, all) = (first.as_nanos(), all.as_nanos());
        writeln!(to, "{first} {all} {memory} {lines}")
    }

    fn read(line: &str) -> Option<Self> {
        let mut numbers = line.split_whitespace().map_while(|number| number.parse().ok());
        Some(Self {
            first: Duration::from_nanos(numbers.next()?),
            all: Duration::from_nanos(numbers.next()?),
            memory: numbers.next()?,
            lines: numbers.next()?,
        })
    }
}

/// The bytes of all files in a folder, recursively.
pub(crate) fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => bytes_in(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Turn;

    #[test]
    fn a_printed_turn_is_read_back() -> std::io::Result<()> {
        let turn =
            Turn { first: Duration::from_millis(3), all: Duration::from_secs(2), memory: 7000, lines: 12 };
        let mut line = Vec::new();
        turn.write(&mut line)?;
        assert_eq!(Turn::read(&String::from_utf8_lossy(&line)), Some(turn));
        assert_eq!(Turn::read("3 error"), None);
        Ok(())
    }
}
