//! Folders outside of the checkout: one for installed peers, which is kept, and one for measured data, which is
//! removed at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use crate::process::Reason;

/// The name of the data folder, without the process id.
const PREFIX: &str = "undaunted-bench-";

#[derive(Debug)]
pub(crate) struct Scratch {
    /// Where peers are installed, also for later runs.
    pub(crate) home: PathBuf,
    data: PathBuf,
}

impl Scratch {
    /// Makes the folders.
    pub(crate) fn make() -> Result<Self, Reason> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let home = variable("UNDAUNTED_BENCH_HOME")
            .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("undaunted-bench")))
            .or_else(|| variable("HOME").map(|home| home.join(".cache/undaunted-bench")))
            .ok_or("neither UNDAUNTED_BENCH_HOME nor HOME is set")?;
        // `/tmp` may be in memory, where a sync costs nothing, and a database server that runs as another user
        // cannot read the home of root.
        let parent = variable("UNDAUNTED_BENCH_DATA").unwrap_or_else(|| "/var/tmp".into());
        remove_left(&parent);
        let data = parent.join(format!("{PREFIX}{}", process::id()));
        let made = Self { home, data };
        for folder in [&made.home, &made.data] {
            fs::create_dir_all(folder)
                .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        }
        Ok(made)
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Creates an empty folder for one turn.
    pub(crate) fn turn(&self) -> Result<PathBuf, Reason> {
        let folder = self.data.join("turn");
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
        }
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        Ok(folder)
    }
}

/// Removes the data folders of killed runs.
fn remove_left(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let run = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let run = run.and_then(|run| run.parse::<u32>().ok());
        if run.is_some_and(|run| !Path::new(&format!("/proc/{run}")).exists()) {
            // A folder of another user stays.
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.data));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_killed_run_is_removed_and_that_of_a_live_one_is_not() -> std::io::Result<()> {
        let parent = std::env::temp_dir().join(format!("left-{}", process::id()));
        let (dead, live) = (format!("{PREFIX}4294967295"), format!("{PREFIX}{}", process::id()));
        for folder in [dead.as_str(), &live, "else"] {
            fs::create_dir_all(parent.join(folder))?;
        }
        remove_left(&parent);
        assert!(!parent.join(dead).exists());
        assert!(parent.join(live).exists() && parent.join("else").exists());
        fs::remove_dir_all(parent)
    }
}
