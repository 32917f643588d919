//! `undaunted doctor`: whether this machine can run jobs.

use std::env;
use std::io::Write;
use std::path::Path;

use clap::Args;
use rustix::fs::{Access, access};
use serde::Serialize;

use crate::screen::print;
use crate::{CommandError, Exit, Result, StorePlace, StoreUse};

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  undaunted doctor")]
pub(crate) struct DoctorArgs {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct DoctorFinding {
    what: &'static str,
    state: &'static str,
    says: String,
}

impl DoctorFinding {
    fn new(what: &'static str, fine: bool, says: String) -> Self {
        Self { what, state: if fine { "ok" } else { MISSING }, says }
    }

    /// For what jobs can run without.
    fn optional(what: &'static str, fine: bool, says: String) -> Self {
        Self { what, state: if fine { "ok" } else { "absent" }, says }
    }
}

/// The state of what jobs cannot run without.
const MISSING: &str = "missing";

pub(crate) fn run(store: Option<&Path>, args: &DoctorArgs) -> Result<Exit> {
    let (is_shell, shell) = program("sh", "runs `shell:` commands");
    let (is_claude, claude) = program("claude", "runs `claude:` commands; add other programs in `agents:`");
    let findings = [
        store_finding(store),
        DoctorFinding::new("sh", is_shell, shell),
        DoctorFinding::optional("claude", is_claude, claude),
        readable("/proc/self/stat", "used to find and stop processes"),
        readable("/proc/sys/kernel/random/boot_id", "used to detect reboots"),
        process_descriptors(),
        open_files(),
    ];
    for finding in &findings {
        print(finding, args.json, |out, DoctorFinding { what, state, says }| {
            writeln!(out, "{state:<8} {what:<20} {says}")
        })?;
    }
    let fit = findings.iter().all(|finding| finding.state != MISSING);
    Ok(if fit { Exit::Done } else { Exit::Failed })
}

fn store_finding(named: Option<&Path>) -> DoctorFinding {
    match usable_store(named) {
        Ok(place) => DoctorFinding::new("store", true, place),
        Err(refused) => DoctorFinding::new("store", false, refused.to_string().replace("\n  help: ", "; ")),
    }
}

/// The location of the store, if jobs can be added to it. Creates nothing.
fn usable_store(named: Option<&Path>) -> Result<String> {
    let place = StorePlace::named(named)?;
    let location = place.location().to_string();
    if place.is_created()? {
        place.open_for(StoreUse::Change)?;
        return Ok(location);
    }
    let existing = Path::new(&location).ancestors().find(|path| path.exists());
    let existing = existing.unwrap_or(Path::new("/"));
    if existing.is_dir() && access(existing, Access::WRITE_OK | Access::EXEC_OK).is_ok() {
        return Ok(format!("{location} (the first job creates it)"));
    }
    let message = format!("cannot create a store in `{location}`: `{}` is not writable", existing.display());
    Err(CommandError::Store { message, help: Some("choose another folder with --store".to_owned()) })
}

fn program(name: &str, what_for: &str) -> (bool, String) {
    let path = env::var_os("PATH").unwrap_or_default();
    let file = env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    match file {
        Some(file) => (true, format!("{} ({what_for})", file.display())),
        None => (false, format!("not found in PATH ({what_for})")),
    }
}

fn readable(file: &'static str, what_for: &str) -> DoctorFinding {
    let name = file.rsplit('/').next().unwrap_or(file);
    match std::fs::read(file) {
        Ok(_) => DoctorFinding::new(name, true, format!("{file} ({what_for})")),
        Err(error) => DoctorFinding::new(name, false, format!("cannot read {file}: {error} ({what_for})")),
    }
}

fn process_descriptors() -> DoctorFinding {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split('.').map(|part| part.parse::<u32>().ok());
    let version = (numbers.next().flatten(), numbers.next().flatten());
    let fine = matches!(version, (Some(major), Some(minor)) if (major, minor) >= (5, 3));
    DoctorFinding::new("Linux 5.3", fine, format!("{} (process descriptors)", release.trim()))
}

fn open_files() -> DoctorFinding {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3));
    let soft = soft.and_then(|soft| soft.parse::<u64>().ok()).unwrap_or(u64::MAX);
    DoctorFinding::optional("open files", soft >= 256, format!("{soft} (each running command needs two)"))
}
