//! The arrows of the design, checked on this workspace.

use undaunted_checks::{arrows, repository};

#[test]
fn the_crates_of_this_workspace_follow_the_arrows() {
    let packages = arrows::workspace_packages(repository()).expect("cargo metadata answers");
    let violations = arrows::violations(&packages);
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn a_dependency_for_development_is_not_an_arrow() {
    let packages = arrows::workspace_packages(repository()).expect("cargo metadata answers");
    let policy = packages.iter().find(|package| package.name == "undaunted-policy");
    let dependencies = &policy.expect("policy is in the workspace").dependencies;
    // Policy offers tokio as a feature and always uses it in its own tests; only the feature counts.
    let tokio: Vec<_> = dependencies.iter().filter(|used| used.name == "tokio").collect();
    assert_eq!(tokio.len(), 1, "{dependencies:?}");
    assert!(tokio.iter().all(|used| used.optional));
}
