//! Folders outside of the checkout: one that is kept, for what was installed, and one that is not, for
//! what is measured.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use crate::process::Reason;

/// How the folder for data is called, before the number of the process.
const PREFIX: &str = "undaunted-bench-";

/// Both folders. The one for data is removed at the end.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Where peers are installed; the next run finds them there.
    pub(crate) home: PathBuf,
    data: PathBuf,
}

impl Scratch {
    /// Makes the folders.
    ///
    /// # Errors
    /// One of them cannot be made.
    pub(crate) fn make() -> Result<Self, Reason> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let home = variable("UNDAUNTED_BENCH_HOME")
            .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("undaunted-bench")))
            .or_else(|| variable("HOME").map(|home| home.join(".cache/undaunted-bench")))
            .ok_or("neither UNDAUNTED_BENCH_HOME nor HOME is set")?;
        // `/tmp` may be memory, in which a sync costs nothing, and the server of a database that runs as
        // another user cannot look into the home of root.
        let parent = variable("UNDAUNTED_BENCH_DATA").unwrap_or_else(|| "/var/tmp".into());
        remove_left(&parent);
        let data = parent.join(format!("{PREFIX}{}", process::id()));
        let made = Self { home, data };
        for folder in [&made.home, &made.data] {
            fs::create_dir_all(folder)
                .map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
        }
        Ok(made)
    }

    /// Where data is written.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// An empty folder for one turn.
    ///
    /// # Errors
    /// What is left there from the last turn cannot be removed.
    pub(crate) fn turn(&self) -> Result<PathBuf, Reason> {
        let folder = self.data.join("turn");
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
        }
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        Ok(folder)
    }
}

/// Removes what runs have left that were killed.
fn remove_left(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let run = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let run = run.and_then(|run| run.parse::<u32>().ok());
        if run.is_some_and(|run| !Path::new(&format!("/proc/{run}")).exists()) {
            // Somebody else's stays.
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
    fn what_a_killed_run_has_left_is_removed_and_a_live_one_is_not() -> std::io::Result<()> {
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
