//! The keeper's process, from start to exit.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, RwLock, Weak};
use std::time::{Duration, Instant};

use super::connection;
use super::ledger::KeeperLedger;
use super::recover::{RecoveredRun, recover_spool};
use super::shared::{KeeperShared, KeeperState};
use super::{KeeperError, reaper};
use crate::locked;
use crate::process::{ProcessMark, random_name};
use crate::spool::{OutputSlots, Spool, SpoolError};
use crate::with_causes;

/// How long to wait for the first engine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Written to stdout when another keeper has the spool.
pub(crate) const LOCKED: &str = "locked";

/// Runs the keeper of the spool in this folder, for as long as it has an engine or a command.
///
/// To be called by a process that [`KeeperClient::start`](super::KeeperClient::start) has started, from its
/// main thread and before any other thread exists. Its stdin is a connection to the engine that started it;
/// on stdout it writes a line if it cannot start. It returns only if it cannot start; a keeper with nothing
/// to do exits.
pub fn main(folder: &Path) -> Result<Infallible, KeeperError> {
    let (shared, listener) = match begin(folder) {
        Ok(begun) => begun,
        Err(error) => {
            let complaint = match &error {
                KeeperError::Spool(SpoolError::Locked { .. }) => LOCKED.to_owned(),
                error => with_causes(error),
            };
            // The engine may have died; the error is returned as well.
            drop(print_line(&complaint));
            return Err(error);
        }
    };
    let begun = first_engine().and_then(|first| run_threads(&shared, listener, first));
    begun.map_err(KeeperError::Silent)?;
    reaper::reap(&shared)
}

/// Every running command needs a few open files, and the usual soft limit is low. If it cannot be raised,
/// fewer commands can run at a time.
fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

fn begin(folder: &Path) -> Result<(Arc<KeeperShared>, UnixListener), KeeperError> {
    abort_on_panic();
    allow_many_files();
    let system = KeeperError::Processes;
    // Fails only for the leader of a group, which no engine has started.
    rustix::process::setsid().map_err(|error| system(error.into()))?;
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).map_err(|error| system(error.into()))?;
    let spool = Spool::open(folder)?;
    let lock = spool.lock()?;
    let name = match ProcessMark::own() {
        // Passed in the environment, so that a child is recognized before it has become a command.
        Some(ProcessMark { keeper: name, id: None }) => name,
        _ => random_name().map_err(system)?,
    };
    let recovered = recover_spool(&spool, &lock, name.clone())?;
    let unusable = SpoolError::unusable(spool.folder());
    let slots = OutputSlots::clear(&spool).map_err(unusable)?;
    let listener = spool.listen().map_err(unusable)?;
    let RecoveredRun { log, segments, damage } = recovered;
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let shared = Arc::new_cyclic(|shared| KeeperShared {
        own: Weak::clone(shared),
        most_workers: cores.saturating_mul(2).clamp(4, 16),
        name,
        pid: own.as_raw_pid(),
        ledger: Mutex::new(KeeperLedger::new(log, damage)),
        slots,
        segments,
        spawning: RwLock::default(),
        state: Mutex::new(KeeperState {
            patience: Instant::now().checked_add(PATIENCE),
            ..KeeperState::default()
        }),
        work: Condvar::new(),
        alarm: Condvar::new(),
        children: Condvar::new(),
        engine_left: Condvar::new(),
        spool,
        _lock: lock,
    });
    Ok((shared, listener))
}

fn run_threads(
    shared: &Arc<KeeperShared>,
    listener: UnixListener,
    first: Option<UnixStream>,
) -> io::Result<()> {
    // First, since the engine that started this keeper waits for an answer.
    if let Some(first) = first {
        let shared = Arc::clone(shared);
        thread("engine", move || {
            connection::serve(&shared, first);
            shared.end_patience();
        })?;
    } else {
        shared.start_timer(&mut locked(&shared.state));
    }
    shared.add_worker(&mut locked(&shared.state))?;
    let listening = Arc::clone(shared);
    thread("engines", move || {
        for stream in listener.incoming().flatten() {
            let shared = Arc::clone(&listening);
            // Without a thread the connection is closed, and the engine retries.
            drop(thread("engine", move || {
                connection::serve(&shared, stream);
            }));
        }
    })
}

pub(super) fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = std::thread::Builder::new().name(name.to_owned());
    builder.stack_size(256 << 10).spawn(run).map(drop)
}

/// Aborts on a panic: a keeper that has lost a thread would forget commands; a dead one is recovered.
fn abort_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::abort();
    }));
}

fn print_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", line.replace('\n', " "))?;
    out.flush()
}

/// The connection to the engine that started this keeper, if one has. Closes stdin and stdout, since
/// the engine waits for their end.
fn first_engine() -> io::Result<Option<UnixStream>> {
    let given = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Not a socket if a user has typed the command.
    let first = given.peer_addr().is_ok().then_some(given);
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(first)
}
