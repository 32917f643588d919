//! Which crate may use which.
//!
//! A pure judgement over what the manifests say (`workspace_packages` reads them): dependencies run one way,
//! and the crates below the pure line depend on nothing that brings a clock, randomness or files. Development
//! dependencies do not count: a test may use anything. Only the manifests of this workspace are judged, not
//! those of other people's crates.

use std::path::Path;

use cargo_metadata::{DependencyKind, MetadataCommand};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    pub name: String,
    /// Normal and build dependencies, without those for development.
    pub dependencies: Vec<Dependency>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The name of the package, whatever the dependency is renamed to.
    pub name: String,
    pub optional: bool,
}

pub fn workspace_packages(folder: &Path) -> Result<Vec<Package>, cargo_metadata::Error> {
    // Without `no_deps` cargo would resolve the workspace, and perhaps write a lock file.
    let metadata = MetadataCommand::new().current_dir(folder).no_deps().exec()?;
    Ok(metadata.packages.into_iter().map(package).collect())
}

fn package(described: cargo_metadata::Package) -> Package {
    let dependencies = described.dependencies.into_iter();
    Package {
        name: described.name.to_string(),
        dependencies: dependencies
            .filter(|dependency| dependency.kind != DependencyKind::Development)
            .map(|dependency| Dependency { name: dependency.name, optional: dependency.optional })
            .collect(),
    }
}

#[cfg(test)]
mod tests;

/// Crates of the product; each may use every crate after it.
const CRATES: [&str; 6] =
    ["undaunted", "undaunted-server", "undaunted-runner", "undaunted-store", "undaunted-engine", POLICY];
const POLICY: &str = "undaunted-policy";
/// Uses every crate, and no crate may use it.
const CHECKS: &str = "undaunted-checks";
/// Crates that are given time and random numbers and never fetch them.
const PURE: [&str; 2] = ["undaunted-engine", POLICY];

/// Dependencies that bring a clock, randomness, files or sockets.
const IMPURE: [&str; 20] = [
    "async-std",
    "chrono",
    "fastrand",
    "getrandom",
    "hyper",
    "mio",
    "nix",
    "quanta",
    "rand",
    "rand_core",
    "reqwest",
    "rusqlite",
    "rustix",
    "smol",
    "sqlx",
    "tempfile",
    "time",
    "tokio",
    "tokio-postgres",
    "ureq",
];

pub fn violations(packages: &[Package]) -> Vec<String> {
    let mut found: Vec<String> = packages.iter().flat_map(violations_of).collect();
    found.sort();
    found
}

fn violations_of(package: &Package) -> Vec<String> {
    let name = package.name.as_str();
    if name != CHECKS && place(name).is_none() {
        return vec![format!(
            "`{name}` has no place among the arrows: add it to the list in `arrows.rs` or remove it"
        )];
    }
    let dependencies = package.dependencies.iter();
    dependencies
        .flat_map(|dependency| {
            [wrong_arrow(name, dependency), impure(name, dependency), obligatory(name, dependency)]
        })
        .flatten()
        .collect()
}

fn place(name: &str) -> Option<usize> {
    CRATES.iter().position(|known| *known == name)
}

fn wrong_arrow(name: &str, dependency: &Dependency) -> Option<String> {
    let used = dependency.name.as_str();
    if used == CHECKS {
        return Some(format!("`{name}` uses `{CHECKS}`, which no crate may use"));
    }
    // Neither an outside crate nor `checks`, which may use everything, has a place.
    let (from, to) = (place(name)?, place(used)?);
    (to <= from).then(|| format!("`{name}` uses `{used}`, against the arrows: {}", CRATES.join(" → ")))
}

fn impure(name: &str, dependency: &Dependency) -> Option<String> {
    let used = dependency.name.as_str();
    // Policy offers tokio behind a feature; users without the feature do not get it.
    let excused = name == POLICY && used == "tokio" && dependency.optional;
    (PURE.contains(&name) && IMPURE.contains(&used) && !excused).then(|| {
        format!("`{name}` is pure and depends on `{used}`, which brings a clock, randomness or files")
    })
}

fn obligatory(name: &str, dependency: &Dependency) -> Option<String> {
    (name == POLICY && !dependency.optional).then(|| {
        format!(
            "`{name}` depends on `{}` without `optional = true`; by default it depends on nothing",
            dependency.name
        )
    })
}
