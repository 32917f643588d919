//! How fast commands are started: through the keeper, and by plain threads for comparison.
//!
//! `cargo run --release -p undaunted-runner --example spawn_rate -- [COMMANDS]`, on a quiet machine.

use std::collections::VecDeque;
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use undaunted_runner::keeper::{self, CommandSpec, KeeperClient, KeeperEvent};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let [word, folder] = arguments.as_slice()
        && word == "keeper"
    {
        return match keeper::main(Path::new(folder)) {
            Ok(never) => match never {},
            Err(error) => Err(error.into()),
        };
    }
    let count = match arguments.first().and_then(|count| count.to_str()) {
        Some(count) => count.parse()?,
        None => 5_000,
    };
    for width in [2, 8] {
        report("plain threads", width, count, threads(width, count)?);
        report("keeper", width, count, kept(width, count, 0)?);
        report("keeper, reserved", width, count, kept(width, count, width)?);
    }
    Ok(())
}

fn report(how: &str, width: u64, count: u64, took: Duration) {
    let micros = took.as_micros().max(1);
    let rate = u128::from(count) * 1_000_000 / micros;
    println!("{how:<16} width {width}: {count} commands in {took:.2?}, {rate} a second");
}

/// `width` threads, each of which starts a command and waits for it.
fn threads(width: u64, count: u64) -> Result<Duration, Box<dyn Error>> {
    let started = AtomicU64::new(0);
    let began = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..width)
            .map(|_| {
                scope.spawn(|| {
                    while started.fetch_add(1, Ordering::Relaxed) < count {
                        let mut command = Command::new("/bin/true");
                        command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
                    }
                    Ok::<(), std::io::Error>(())
                })
            })
            .collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok::<(), Box<dyn Error>>(())
    })?;
    Ok(began.elapsed())
}

/// The keeper, with `width` commands at a time, and so many reserved ones. Every end is on record before the next
/// start.
fn kept(width: u64, count: u64, reserved: u64) -> Result<Duration, Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("spawn-rate-{}", std::process::id()));
    let own = std::env::current_exe()?;
    let (keeper, _) = KeeperClient::start(&own, &[OsString::from("keeper")], &folder)?;
    let env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let spec = |id| CommandSpec {
        env: env.clone(),
        working_dir: PathBuf::from("/"),
        ..CommandSpec::new(id, ["/bin/true"])
    };
    let began = Instant::now();
    let mut waiting: VecDeque<u64> = (0..count).collect();
    let slots = u32::try_from(width)?;
    let run = |id| if reserved > 0 { keeper.reserve(spec(id), slots) } else { keeper.run(spec(id)) };
    for id in waiting.drain(..usize::try_from((width + reserved).min(count))?) {
        run(id)?;
    }
    keeper.flush();
    let mut ended = 0;
    while ended < count {
        match keeper.events().recv()? {
            KeeperEvent::Exited(exited) => {
                ended += 1;
                keeper.forget(exited.id);
                if let Some(id) = waiting.pop_front() {
                    run(id)?;
                    keeper.flush();
                }
            }
            KeeperEvent::Began(_) => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    let took = began.elapsed();
    keeper.disconnect();
    std::fs::remove_dir_all(&folder)?;
    Ok(took)
}
