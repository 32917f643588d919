//! npm packages at the versions of a lock file, and the node that runs them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::process::{Reason, bound, finish};

/// A folder with installed packages and a driver.
pub(super) struct Installed(PathBuf);

impl Installed {
    /// Installs the packages of a peer's lock file, unless they are installed.
    pub(super) fn of(name: &str, sources: &Path, home: &Path) -> Result<Self, Reason> {
        let folder = home.join(name);
        let done = folder.join("installed");
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let copy = |from: PathBuf, to: &str| {
            let copied = fs::copy(&from, folder.join(to));
            copied.map_err(|error| format!("{}: {error}", from.display()))
        };
        copy(sources.join("contract.mjs"), "contract.mjs")?;
        for file in ["driver.mjs", "package.json", "package-lock.json"] {
            copy(sources.join(name).join(file), file)?;
        }
        let lock = fs::read(folder.join("package-lock.json")).unwrap_or_default();
        if fs::read(&done).ok().as_ref() != Some(&lock) {
            let mut npm = bound("npm");
            npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
            finish(npm.current_dir(&folder))?;
            fs::write(&done, lock).map_err(|error| error.to_string())?;
        }
        Ok(Self(folder))
    }

    /// Name and version of a package.
    pub(super) fn version(&self, package: &str) -> Result<String, Reason> {
        let file = self.0.join("node_modules").join(package).join("package.json");
        let text = fs::read_to_string(&file).map_err(|error| error.to_string())?;
        let facts: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let version = facts.get("version").and_then(Value::as_str);
        Ok(format!("{package} {}", version.unwrap_or("unknown")))
    }

    /// The node that came with the packages, and the driver.
    pub(super) fn driver(&self) -> Vec<OsString> {
        let node = self.0.join("node_modules/.bin/node");
        vec![node.into(), self.0.join("driver.mjs").into()]
    }
}
