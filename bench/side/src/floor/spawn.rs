//! Threads that start a command and wait for it, and do nothing else.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use crate::process::Reason;

/// The number of cores of the machine for which the targets were set.
const THREADS: u32 = 2;

/// Starts `/bin/true` this many times and returns the commands per second. Like the other contestants it passes
/// the number of a line, because `true` does less without an argument.
pub(crate) fn spawn(commands: u32) -> Result<f64, Reason> {
    let started = AtomicU32::new(0);
    let work = || {
        loop {
            let line = started.fetch_add(1, Ordering::Relaxed);
            if line >= commands {
                return Ok(());
            }
            let mut command = Command::new("/bin/true");
            command.arg(line.to_string()).stdin(Stdio::null()).stdout(Stdio::null()).status()?;
        }
    };
    let began = Instant::now();
    let ended: Vec<std::io::Result<()>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().filter_map(|thread| thread.join().ok());
        joined.collect()
    });
    let took = began.elapsed().as_secs_f64();
    for end in ended {
        end.map_err(|error| error.to_string())?;
    }
    Ok(f64::from(commands) / took)
}
