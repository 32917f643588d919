//! The machine on which the figures were measured, without anything that identifies it.

use undaunted_bench_figures::machine;

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
        let field = |name| machine::field("/proc/cpuinfo", name);
        let (family, model) = (field("cpu family"), field("model\t"));
        Self {
            processor: format!("{}, family {family} model {model}", machine::processor()),
            cores: machine::cores(),
            system: format!("{}, {}", machine::kernel(), std::env::consts::ARCH),
            compiler: machine::compiler(),
            versions: PEERS.map(version).join(", "),
            load: format!("{load_before} before, {} after", machine::load()),
        }
    }
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
