//! The machine on which the figures were measured, without anything that identifies it.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use undaunted_bench_figures::machine;

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
        let memory = gigabytes(&machine::field("/proc/meminfo", "MemTotal"));
        let kind = finish(bound("stat").args(["-f", "-c", "%T"]).arg(data));
        let syncs = syncs(data).map_or_else(|_| "unknown".to_owned(), whole);
        Self {
            facts: vec![
                ("processor", format!("{}, {} cores", machine::processor(), machine::cores())),
                ("memory", memory.unwrap_or_else(|| "unknown".to_owned())),
                ("system", format!("{}, {}", machine::kernel(), std::env::consts::ARCH)),
                (
                    "disk",
                    format!(
                        "{}, {syncs} sequential append and `fdatasync` operations per second",
                        kind.as_deref().unwrap_or("unknown").trim()
                    ),
                ),
                ("compiler", format!("{}; {}", machine::compiler(), profile())),
            ],
        }
    }
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
