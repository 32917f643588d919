//! The machine on which the figures were measured, without anything that identifies it.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use crate::process::{bound, finish};
use crate::section::whole;

/// The number of syncs that are timed.
const SYNCS: u32 = 300;

#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) facts: Vec<(&'static str, String)>,
}

impl Machine {
    /// Describes the machine, and the disk of a folder.
    pub(crate) fn look(data: &Path) -> Self {
        let unknown = || "unknown".to_owned();
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(unknown);
        let memory = field("/proc/meminfo", "MemTotal").and_then(|memory| gigabytes(&memory));
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        // The suffix names a build, which does not matter for speed.
        let release = release.trim().split('-').next().unwrap_or_default();
        let kind = finish(bound("stat").args(["-f", "-c", "%T"]).arg(data));
        let syncs = syncs(data).map_or_else(|_| unknown(), whole);
        let compiler = finish(bound("rustc").arg("--version"));
        let compiler = compiler.unwrap_or_else(|_| unknown());
        Self {
            facts: vec![
                ("processor", format!("{processor}, {cores} cores")),
                ("memory", memory.unwrap_or_else(unknown)),
                ("system", format!("Linux {release}, {}", std::env::consts::ARCH)),
                (
                    "disk",
                    format!(
                        "{}, {syncs} sequential append and `fdatasync` operations per second",
                        kind.as_deref().unwrap_or("unknown").trim()
                    ),
                ),
                ("compiler", format!("{}; {}", compiler.trim(), profile())),
            ],
        }
    }
}

/// The load average of the last minute.
pub(crate) fn load() -> String {
    let loads = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    loads.split(' ').next().unwrap_or("unknown").to_owned()
}

/// The optimisation settings; `bench/run` builds with the same environment.
fn profile() -> String {
    let set = |name: &str, otherwise: &str| {
        let value = std::env::var(format!("CARGO_PROFILE_RELEASE_{name}"));
        value.unwrap_or_else(|_| otherwise.to_owned())
    };
    let (lto, units) = (set("LTO", "thin"), set("CODEGEN_UNITS", "1"));
    format!("`lto = {lto}`, `codegen-units = {units}`")
}

fn gigabytes(memory: &str) -> Option<String> {
    let kilobytes: u64 = memory.trim_end_matches(" kB").parse().ok()?;
    Some(format!("{} GB", kilobytes.checked_div(1_000_000)?))
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn syncs(data: &Path) -> std::io::Result<f64> {
    let path = data.join("syncs");
    let mut file = File::create(&path)?;
    let began = Instant::now();
    for _ in 0..SYNCS {
        file.write_all(&[7; 128])?;
        file.sync_data()?;
    }
    let rate = f64::from(SYNCS) / began.elapsed().as_secs_f64();
    fs::remove_file(path)?;
    Ok(rate)
}
