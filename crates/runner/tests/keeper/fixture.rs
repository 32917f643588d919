//! A spool for one test.
//!
//! When the fixture is dropped, every process with its mark in the environment, or with a working directory
//! in its folder, is killed.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use undaunted_runner::keeper::{CommandSpec, KeeperClient, KeeperEvent, KeeperRefusal, WaitingKeeper};
use undaunted_runner::spool::{CommandExit, RecoveredSpool};

const ENGINE: &str = env!("CARGO_BIN_EXE_test-engine");
const MARK: &str = "TEST_FIXTURE";
/// Longer than any test takes on the slowest machine.
const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) struct KeeperFixture {
    folder: tempfile::TempDir,
}

impl KeeperFixture {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A fixture with a keeper.
    pub(crate) fn started() -> (Self, KeeperClient) {
        let fixture = Self::new();
        let (keeper, _) = fixture.keeper();
        (fixture, keeper)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn spool(&self) -> PathBuf {
        self.path("spool")
    }

    fn name(&self) -> String {
        format!("{MARK}={}", self.folder.path().display())
    }

    /// Connects to the keeper, or starts one.
    pub(crate) fn keeper(&self) -> (KeeperClient, RecoveredSpool) {
        self.keeper_with(&[])
    }

    /// As `keeper`, with these variables in the environment of a keeper that is started.
    pub(crate) fn keeper_with(&self, variables: &[&str]) -> (KeeperClient, RecoveredSpool) {
        self.keeper_in(&self.spool(), variables).unwrap()
    }

    pub(crate) fn keeper_in(
        &self,
        spool: &Path,
        variables: &[&str],
    ) -> Result<(KeeperClient, RecoveredSpool), undaunted_runner::keeper::KeeperError> {
        let mut args: Vec<OsString> = vec![self.name().into()];
        args.extend(variables.iter().map(OsString::from));
        args.extend([ENGINE.into(), "keeper".into()]);
        KeeperClient::start(Path::new("/usr/bin/env"), &args, spool)
    }

    /// A keeper without a spool.
    pub(crate) fn waiting_keeper(&self) -> WaitingKeeper {
        let args = [self.name().into(), ENGINE.into(), "keeper".into()];
        WaitingKeeper::start(Path::new("/usr/bin/env"), &args).unwrap()
    }

    /// A command: a script for the shell, in the fixture's folder.
    pub(crate) fn shell(&self, id: u64, script: &str) -> CommandSpec {
        CommandSpec {
            env: vec![
                ("PATH".into(), std::env::var_os("PATH").unwrap()),
                (MARK.into(), self.folder.path().into()),
            ],
            working_dir: self.folder.path().to_owned(),
            grace: Duration::from_millis(200),
            ..CommandSpec::new(id, ["/bin/sh", "-c", script])
        }
    }

    /// An engine in another process, which can be killed.
    pub(crate) fn engine(&self, scripts: &[&str]) -> Child {
        Command::new(ENGINE)
            .arg("engine")
            .arg(self.spool())
            .args(scripts)
            .env(MARK, self.folder.path())
            .stdin(Stdio::null())
            .stdout(fs::File::create(self.path("engine.out")).unwrap())
            .spawn()
            .unwrap()
    }

    /// Waits until `look` returns something. The only place where a test waits without an event.
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
        let path = self.path(name);
        Self::eventually(name, || {
            let text = fs::read_to_string(&path).ok()?;
            Some(text.split_once('\n')?.0.to_owned())
        })
    }

    /// The process whose number a command wrote to a file.
    pub(crate) fn pid(&self, name: &str) -> i32 {
        self.line(name).trim().parse().unwrap()
    }

    /// Whether a running process has its working directory in the folder.
    fn houses(&self, pid: i32) -> bool {
        let home = fs::read_link(format!("/proc/{pid}/cwd"));
        is_alive(pid) && home.is_ok_and(|home| home.starts_with(self.folder.path()))
    }

    pub(crate) fn lines(&self, name: &str) -> usize {
        fs::read_to_string(self.path(name)).map_or(0, |text| text.lines().count())
    }
}

impl Drop for KeeperFixture {
    fn drop(&mut self) {
        let name = self.name();
        // Again, if a process was created while others were killed.
        while processes()
            .into_iter()
            .filter(|pid| carries(*pid, &name) || self.houses(*pid))
            .inspect(|pid| kill(*pid))
            .count()
            > 0
        {}
    }
}

fn carries(pid: i32, name: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    is_alive(pid) && environment.split(|byte| *byte == 0).any(|each| each == name.as_bytes())
}

fn processes() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a process is running; a zombie is not.
pub(crate) fn is_alive(pid: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = text.rsplit_once(") ").map(|(_, rest)| rest.to_owned());
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}

pub(crate) fn kill(pid: i32) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
}

/// Kills a process, and waits until it is gone.
pub(crate) fn kill_and_wait(pid: i32) {
    kill(pid);
    KeeperFixture::eventually("the death of a process", || (!is_alive(pid)).then_some(()));
}

pub(crate) fn next_event(keeper: &KeeperClient) -> KeeperEvent {
    let event = keeper.events().recv_timeout(DEADLINE);
    event.expect("an event in time")
}

/// Waits for the end of an attempt, and skips events of others.
pub(crate) fn exited(keeper: &KeeperClient, id: u64) -> CommandExit {
    loop {
        match next_event(keeper) {
            KeeperEvent::Exited(exited) if exited.id == id => return exited,
            KeeperEvent::Exited(_) | KeeperEvent::Began(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn refused(keeper: &KeeperClient) -> (Option<u64>, KeeperRefusal) {
    loop {
        match next_event(keeper) {
            KeeperEvent::Refused { id, why } => return (id, why),
            KeeperEvent::Exited(_) | KeeperEvent::Began(_) => {}
            KeeperEvent::Gone => panic!("the keeper has gone"),
        }
    }
}

pub(crate) fn wait_until_gone(keeper: &KeeperClient) {
    while next_event(keeper) != KeeperEvent::Gone {}
}
