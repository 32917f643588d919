//! `undaunted doctor`: whether this machine can run jobs.

use std::env;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::exit::Exit;
use crate::jobs::Jobs;
use crate::screen::json;

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  undaunted doctor")]
pub(crate) struct DoctorArgs {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

struct DoctorFinding {
    what: &'static str,
    fine: bool,
    says: String,
    /// Whether jobs need it to run.
    needed: bool,
}

pub(crate) fn run(store: Option<&Path>, args: &DoctorArgs) -> Result<Exit> {
    let findings = [
        store_finding(store),
        program("sh", true, "runs `shell:` commands"),
        program("claude", false, "runs `claude:` commands; set others in `agents:`"),
        readable("/proc/self/stat", "used to find and stop processes"),
        readable("/proc/sys/kernel/random/boot_id", "used to tell boots apart"),
        process_descriptors(),
        open_files(),
    ];
    let mut out = io::stdout().lock();
    for finding in &findings {
        let state = match (finding.fine, finding.needed) {
            (true, _) => "ok",
            (false, true) => "missing",
            (false, false) => "absent",
        };
        if args.json {
            let (what, says) = (finding.what, finding.says.as_str());
            json(&mut out, &DoctorFindingJson { what, state, says })?;
        } else {
            writeln!(out, "{state:<8} {:<20} {}", finding.what, finding.says)?;
        }
    }
    let fit = findings.iter().all(|finding| finding.fine || !finding.needed);
    Ok(if fit { Exit::Done } else { Exit::Failed })
}

#[derive(Serialize)]
struct DoctorFindingJson<'f> {
    what: &'f str,
    state: &'f str,
    says: &'f str,
}

fn store_finding(named: Option<&Path>) -> DoctorFinding {
    let (fine, says) = match Jobs::open(named) {
        Ok(jobs) => (true, jobs.location.to_string()),
        Err(refused) => (false, refused.to_string().replace('\n', ";")),
    };
    DoctorFinding { what: "store", fine, says, needed: true }
}

fn program(name: &'static str, needed: bool, what_for: &str) -> DoctorFinding {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|folder| folder.join(name));
    let found = found.into_iter().find(|file| file.is_file());
    DoctorFinding {
        what: name,
        fine: found.is_some(),
        says: match found {
            Some(file) => format!("{} ({what_for})", file.display()),
            None => format!("not found in PATH ({what_for})"),
        },
        needed,
    }
}

fn readable(file: &'static str, what_for: &str) -> DoctorFinding {
    let read = std::fs::read(file);
    DoctorFinding {
        what: file.rsplit('/').next().unwrap_or(file),
        fine: read.is_ok(),
        says: match read {
            Ok(_) => format!("{file} ({what_for})"),
            Err(error) => format!("cannot read {file}: {error} ({what_for})"),
        },
        needed: true,
    }
}

fn process_descriptors() -> DoctorFinding {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split('.').map(|part| part.parse::<u32>().ok());
    let version = (numbers.next().flatten(), numbers.next().flatten());
    let fine = matches!(version, (Some(major), Some(minor)) if (major, minor) >= (5, 3));
    DoctorFinding {
        what: "Linux 5.3",
        fine,
        says: format!("{} (process descriptors)", release.trim()),
        needed: true,
    }
}

fn open_files() -> DoctorFinding {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3));
    let soft = soft.and_then(|soft| soft.parse::<u64>().ok()).unwrap_or(u64::MAX);
    DoctorFinding {
        what: "open files",
        fine: soft >= 256,
        says: format!("{soft} (each running command needs two)"),
        needed: false,
    }
}
