//! A public type has a name of its own in the product.
//!
//! Two types of one name are told apart by their paths, which neither a search nor a sentence shows. A
//! file may define a type twice, for builds with and without a feature.

use std::collections::BTreeMap;

use crate::tidy::text_file::line_of;
use crate::tidy::{Tree, Violation, rust_code};

const KEYWORDS: [&str; 4] = ["struct", "enum", "trait", "type"];

pub(crate) fn violations(tree: &Tree) -> Vec<Violation> {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let mut found = vec![];
    for file in tree.texts().iter().filter(|file| file.is_product()) {
        let code = file.code();
        let for_tests = file.code_for_tests();
        for defined in rust_code::definitions(code) {
            let before = code.get(..defined.start).unwrap_or_default();
            let is_public = before.trim_end().ends_with("pub");
            let in_test = for_tests.iter().any(|range| range.contains(&defined.start));
            if !is_public || in_test || !KEYWORDS.contains(&defined.keyword) {
                continue;
            }
            let known = first.entry(defined.name).or_insert(file.path());
            if *known != file.path() {
                let what = format!(
                    "`{}` is the name of a public type in {known} too: say which it is",
                    defined.name
                );
                found.push(file.violation(line_of(code, defined.start), what));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::violations;
    use crate::tidy::rules::spoken;

    #[test]
    fn a_public_name_is_given_once_in_the_product() {
        let files = [
            ("crates/engine/src/a.rs", "pub struct Held;\n"),
            ("crates/runner/src/b.rs", "\npub enum Held {}\n"),
        ];
        assert_eq!(
            spoken(violations, files),
            ["crates/runner/src/b.rs:2: `Held` is the name of a public type in crates/engine/src/a.rs too: \
              say which it is"]
        );
    }

    #[test]
    fn what_only_its_crate_sees_or_checks_define_is_not_counted() {
        let files = [
            ("crates/engine/src/a.rs", "pub struct Held;\npub struct Held;\n"),
            ("crates/engine/src/c.rs", "pub fn Held() {}\npub(crate) struct Held;\n"),
            ("crates/checks/src/b.rs", "pub struct Held;"),
            ("crates/engine/tests/b.rs", "pub struct Held;"),
            ("crates/store/src/d.rs", "#[cfg(test)]\nmod tests { pub struct Held; }"),
        ];
        assert_eq!(spoken(violations, files), [""; 0]);
    }
}
