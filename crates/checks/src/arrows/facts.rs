//! What the manifests say about dependencies.
//!
//! Reads `cargo metadata` and keeps the few facts `arrows` judges. It judges nothing itself, so
//! the judgement can be tested with packages that do not exist.

use std::path::Path;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// A package of the workspace and what it is built from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The name in its manifest.
    pub name: String,
    /// Normal and build dependencies; those for development are left out.
    pub dependencies: Vec<Dependency>,
}

/// One line of a manifest's dependencies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The name of the package used, whatever the user calls it.
    pub name: String,
    /// Whether a feature must ask for it.
    pub optional: bool,
}

/// The packages of the workspace in `folder`.
///
/// # Errors
///
/// When `cargo metadata` cannot be run or refuses the workspace.
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
