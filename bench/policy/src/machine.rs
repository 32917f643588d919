//! The machine on which the figures were measured, without anything that identifies it.

use std::fs;
use std::process::Command;
use std::thread;

/// The measured versions are those of the lock file.
const LOCK: &str = include_str!("../../Cargo.lock");
const PEERS: [&str; 6] = ["backon", "tokio-retry", "exponential-backoff", "tower", "failsafe", "criterion"];

/// The machine, the compiler and the versions of the peers.
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) system: String,
    pub(crate) compiler: String,
    pub(crate) versions: String,
    pub(crate) load: String,
}

impl Machine {
    pub(crate) fn look(load_before: &str) -> Self {
        Self {
            processor: processor().unwrap_or_else(unknown),
            cores: thread::available_parallelism().map_or(0, usize::from),
            system: system().unwrap_or_else(unknown),
            compiler: compiler().unwrap_or_else(unknown),
            versions: PEERS.map(version).join(", "),
            load: format!("{load_before} before, {} after", load()),
        }
    }
}

/// The load average of the last minute.
pub(crate) fn load() -> String {
    let loads = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    loads.split(' ').next().unwrap_or("unknown").to_owned()
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn processor() -> Option<String> {
    let all = fs::read_to_string("/proc/cpuinfo").ok()?;
    let field = |name: &str| {
        let line = all.lines().find(|line| line.starts_with(name))?;
        line.split_once(':').map(|(_, value)| value.trim())
    };
    Some(format!("{}, family {} model {}", field("model name")?, field("cpu family")?, field("model\t")?))
}

fn system() -> Option<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    // The suffix names a build, which does not matter for speed.
    let number = release.trim().split('-').next()?;
    Some(format!("Linux {number}, {}", std::env::consts::ARCH))
}

fn compiler() -> Option<String> {
    let said = Command::new("rustc").arg("--version").output().ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    Some(text.trim().to_owned())
}

fn version(package: &str) -> String {
    let name = format!("name = \"{package}\"");
    let mut after = LOCK.lines().skip_while(|line| *line != name);
    let line = after.nth(1).unwrap_or_default();
    let number = line.trim_start_matches("version = ").trim_matches('"');
    format!("{package} {number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_the_lock_file() {
        assert_eq!(version("backon"), "backon 1.6.0");
        assert_eq!(version("failsafe"), "failsafe 1.3.0");
    }
}
