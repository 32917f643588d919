//! What the manifests say about dependencies, read with `cargo metadata`.
//!
//! Separate from the judgement in `arrows`, so that the judgement can be tested with packages that do not
//! exist.

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
