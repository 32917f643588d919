//! A file is a room with one purpose: at most 600 lines.
//!
//! Tests moved to `tests.rs` or `tests/` do not count; tests inside a file do, because a
//! reader scrolls past them. Aiming for 150 is left to people.

use crate::tidy::{Tree, Violation};

const MOST: usize = 600;

pub(crate) fn violations(tree: &Tree) -> Vec<Violation> {
    let files = tree.texts().iter().filter(|file| file.is_rust() && !file.is_test());
    files
        .filter_map(|file| {
            let lines = file.text().lines().count();
            (lines > MOST).then(|| {
                let what =
                    format!("the file has {lines} lines, {MOST} is the most: give its second purpose a file");
                file.violation(MOST + 1, what)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::violations;
    use crate::tidy::rules::spoken;

    #[test]
    fn six_hundred_lines_are_allowed_and_one_more_is_not() {
        let (most, more) = ("//\n".repeat(600), "//\n".repeat(601));
        assert_eq!(spoken(violations, [("a.rs", &most)]), [""; 0]);
        assert_eq!(
            spoken(violations, [("a.rs", &more)]),
            ["a.rs:601: the file has 601 lines, 600 is the most: give its second purpose a file"]
        );
    }

    #[test]
    fn tests_and_other_languages_may_be_longer() {
        let long = "//\n".repeat(601);
        assert_eq!(
            spoken(violations, [("src/a/tests.rs", &long), ("tests/b.rs", &long), ("c.js", &long)]),
            [""; 0]
        );
    }
}
