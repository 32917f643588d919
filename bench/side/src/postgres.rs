//! A private PostgreSQL server with default settings: `fsync` and `synchronous_commit` are on.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{Reason, Running, finish};

/// How long the server may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server, which is stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct Postgres {
    folder: PathBuf,
    port: u16,
    version: String,
    server: Running,
}

impl Postgres {
    /// Creates a database cluster in a folder and starts the server.
    pub(crate) fn start(data: &Path) -> Result<Self, Reason> {
        let programs = programs()?;
        let folder = data.join("postgres");
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let user = user(&folder)?;
        let user = user.as_ref();
        let database = folder.join("data");
        let mut make = as_user(user, &programs.join("initdb"));
        make.arg("--pgdata").arg(&database);
        finish(make.args(["--username", "bench", "--auth", "trust", "--encoding", "UTF8"]))?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let port = free.map_err(|error| error.to_string())?.port();
        let mut serve = as_user(user, &programs.join("postgres"));
        serve.arg("-D").arg(&database).arg("-k").arg(&folder);
        serve.args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        let mut started = Self {
            server: Running::start(&mut serve)?,
            version: finish(Command::new(programs.join("postgres")).arg("--version"))?,
            folder,
            port,
        };
        started.wait()?;
        Ok(started)
    }

    pub(crate) fn version(&self) -> &str {
        self.version.trim()
    }

    /// Creates an empty database and returns its URL.
    pub(crate) fn fresh(&self) -> Result<String, Reason> {
        self.say("drop database if exists turn with (force)")?;
        self.say("create database turn")?;
        // Pending writes of the last turn must not cost time in the next one.
        self.say("checkpoint")?;
        Ok(format!("postgresql://bench@127.0.0.1:{}/turn", self.port))
    }

    fn say(&self, statement: &str) -> Result<(), Reason> {
        let mut command = Command::new("psql");
        command.arg("-h").arg(&self.folder);
        command.args(["-p", &self.port.to_string(), "-U", "bench", "-d", "postgres"]);
        finish(command.args(["-qc", statement])).map(drop)
    }

    fn wait(&mut self) -> Result<(), Reason> {
        let began = Instant::now();
        while let Err(reason) = self.say("select 1") {
            if !self.server.lives() || began.elapsed() > PATIENCE {
                return Err(format!("PostgreSQL does not start: {reason}"));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

/// The folder of the programs; Debian has one for each version, outside of `PATH`.
fn programs() -> Result<PathBuf, Reason> {
    if let Some(found) = found() {
        return Ok(found);
    }
    install("postgresql")?;
    found().ok_or_else(|| "PostgreSQL is installed in an unknown folder".to_owned())
}

fn found() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let folders = versions.flatten().map(|version| version.path().join("bin"));
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let folders = folders.chain(std::env::split_paths(&on_path));
    let has_both = |folder: &PathBuf| folder.join("initdb").exists() && folder.join("postgres").exists();
    folders.filter(has_both).max()
}

/// Installs a Debian package.
pub(crate) fn install(package: &str) -> Result<(), Reason> {
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["-qy", "--no-install-recommends"]).args(words);
        let command = command.env("DEBIAN_FRONTEND", "noninteractive");
        finish(command.stdin(Stdio::null()))
    };
    let installed = apt(&["update"]).and_then(|_| apt(&["install", package]));
    let failed = |reason| format!("`{package}` is missing, and apt-get cannot install it: {reason}");
    installed.map(drop).map_err(failed)
}

/// The user for the server (name, and number of the group), because root may not run it. The folder is given to
/// that user.
fn user(folder: &Path) -> Result<Option<[String; 2]>, Reason> {
    let owner = fs::metadata(folder).map_err(|error| error.to_string())?;
    if owner.uid() != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let group = |name: &str| {
        let mut lines = users.lines().map(|line| line.split(':'));
        let mut line = lines.find(|line| line.clone().next() == Some(name))?;
        Some([name.to_owned(), line.nth(3)?.to_owned()])
    };
    let user = group("postgres").or_else(|| group("nobody"));
    let [name, group] = user.ok_or("root may not run PostgreSQL")?;
    finish(Command::new("chown").arg(&name).arg(folder))?;
    Ok(Some([name, group]))
}

fn as_user(user: Option<&[String; 2]>, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    if let Some([name, group]) = user {
        command.args(["--reuid", name, "--regid", group, "--init-groups"]);
    }
    command.args(["--pdeathsig", "QUIT", "--"]).arg(program);
    // It reads its working directory, which its user may not be allowed to see.
    command.current_dir("/").stdin(Stdio::null());
    command
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // After SIGINT it stops its children and frees its shared memory.
        self.server.stop("INT");
    }
}
