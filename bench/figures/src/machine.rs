//! The machine on which figures are measured, without anything that identifies it.

use std::fs;
use std::process::Command;

/// A field of a file in `/proc`, or `unknown`.
#[must_use]
pub fn field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':'));
    value.map_or("unknown", |(_, value)| value.trim()).to_owned()
}

/// The model of the processor.
#[must_use]
pub fn processor() -> String {
    field("/proc/cpuinfo", "model name")
}

/// The number of cores, 0 if it is unknown.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(0, usize::from)
}

/// The name and number of the kernel.
#[must_use]
pub fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // The suffix names a build, which does not matter for speed.
    format!("Linux {}", release.trim().split('-').next().unwrap_or_default())
}

/// The load average of the last minute.
#[must_use]
pub fn load() -> String {
    let loads = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    loads.split(' ').next().unwrap_or("unknown").to_owned()
}

/// The version of the compiler, or `unknown`.
#[must_use]
pub fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output();
    let version = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    version.map_or_else(|| "unknown".to_owned(), |version| version.trim().to_owned())
}
