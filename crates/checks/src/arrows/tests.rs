//! Violations of the arrows in workspaces that do not exist.

use super::{Dependency, Package, violations};

fn package<const N: usize>(name: &str, dependencies: [(&str, bool); N]) -> Package {
    let dependencies = dependencies.into_iter();
    Package {
        name: name.to_owned(),
        dependencies: dependencies
            .map(|(name, optional)| Dependency { name: name.to_owned(), optional })
            .collect(),
    }
}

const OPTIONAL: bool = true;
const ALWAYS: bool = false;

#[test]
fn a_crate_may_use_every_crate_to_its_right() {
    let packages = [
        package("undaunted", [("undaunted-runner", ALWAYS), ("undaunted-policy", ALWAYS)]),
        package("undaunted-runner", [("undaunted-engine", ALWAYS), ("tokio", ALWAYS)]),
        package("undaunted-engine", [("undaunted-policy", ALWAYS), ("serde", ALWAYS)]),
        package("undaunted-policy", [("serde", OPTIONAL)]),
    ];
    assert_eq!(violations(&packages), [""; 0]);
}

#[test]
fn an_arrow_to_the_left_is_a_violation() {
    let packages = [package("undaunted-engine", [("undaunted-store", ALWAYS)])];
    assert_eq!(
        violations(&packages),
        ["`undaunted-engine` uses `undaunted-store`, against the arrows: undaunted → undaunted-server → \
          undaunted-runner → undaunted-store → undaunted-engine → undaunted-policy"]
    );
}

#[test]
fn an_arrow_to_the_left_is_a_violation_even_when_a_feature_must_ask_for_it() {
    let packages = [package("undaunted-policy", [("undaunted-engine", OPTIONAL)])];
    assert_eq!(violations(&packages).len(), 1);
}

#[test]
fn checks_use_everything_and_no_crate_uses_checks() {
    let green = [package("undaunted-checks", [("undaunted", ALWAYS), ("rand", ALWAYS)])];
    assert_eq!(violations(&green), [""; 0]);
    let red = [package("undaunted", [("undaunted-checks", ALWAYS)])];
    assert_eq!(violations(&red), ["`undaunted` uses `undaunted-checks`, which no crate may use"]);
}

#[test]
fn a_package_without_a_place_is_named() {
    let packages = [package("undaunted-extras", [])];
    let found = violations(&packages);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("`undaunted-extras` has no place"), "{found:?}");
}

#[test]
fn randomness_in_a_pure_crate_are_a_violation_whether_optional_or_not() {
    for optional in [ALWAYS, OPTIONAL] {
        let packages = [package("undaunted-engine", [("rand", optional)])];
        assert_eq!(
            violations(&packages),
            ["`undaunted-engine` is pure and depends on `rand`, which brings a clock, randomness or files"]
        );
    }
}

#[test]
fn only_policy_may_offer_tokio_and_only_on_request() {
    assert_eq!(violations(&[package("undaunted-policy", [("tokio", OPTIONAL)])]), [""; 0]);
    assert_eq!(violations(&[package("undaunted-engine", [("tokio", OPTIONAL)])]).len(), 1);
    // Two violations: it brings a clock, and it is not optional.
    assert_eq!(violations(&[package("undaunted-policy", [("tokio", ALWAYS)])]).len(), 2);
}

#[test]
fn policy_depends_on_nothing_by_default() {
    let packages = [package("undaunted-policy", [("serde", ALWAYS)])];
    assert_eq!(
        violations(&packages),
        ["`undaunted-policy` depends on `serde` without `optional = true`; by default it depends on nothing"]
    );
}

#[test]
fn violations_come_sorted() {
    let packages =
        [package("undaunted-second", []), package("undaunted-engine", [("time", ALWAYS), ("rand", ALWAYS)])];
    let found = violations(&packages);
    assert_eq!(found.len(), 3);
    assert!(found.is_sorted());
}
