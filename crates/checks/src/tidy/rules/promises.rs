//! A promise names the tests that show it, and these tests exist.
//!
//! Reads the tables in `docs/promises/`: the first column of a row is the promise, the others name tests as
//! code, `path/of/file.rs::name_of_the_test`. Without a test the last column says `not built:` or `not
//! testable:` and why. Whether a test shows what its row says is left to reviewers.

use crate::tidy::markdown::{self, TableCell, TableRow};
use crate::tidy::text_file::{FileLanguage, TextFile};
use crate::tidy::{SourceTree, TidyViolation};

const FOLDER: &str = "docs/promises/";
const EXCUSES: [&str; 2] = ["not built:", "not testable:"];

pub(crate) fn violations(tree: &SourceTree) -> Vec<TidyViolation> {
    let pages = tree.texts().iter().filter(|file| is_page(file));
    pages.flat_map(|page| on_page(tree, page)).collect()
}

fn is_page(file: &TextFile) -> bool {
    file.language() == FileLanguage::Markdown && file.path().strip_prefix(FOLDER) == Some(file.name())
}

fn on_page(tree: &SourceTree, page: &TextFile) -> Vec<TidyViolation> {
    let rows = markdown::rows(page.text());
    if rows.is_empty() {
        // Most likely a table that is not written as one, which would not be checked.
        return vec![page.violation(1, "has no promise: they stand in the rows of a table".into())];
    }
    let problems = rows.iter().flat_map(|row| {
        let problems = in_row(tree, row).into_iter();
        problems.map(|what| page.violation(row.line, what))
    });
    problems.collect()
}

fn in_row(tree: &SourceTree, row: &TableRow) -> Vec<String> {
    // The promise itself may contain code.
    let cells = row.cells.get(1..).unwrap_or_default();
    let mut tests = cells.iter().flat_map(|cell| &cell.code).filter(|code| names_test(code)).peekable();
    if tests.peek().is_none() && !cells.last().is_some_and(excuses) {
        let what = "names no test: write `path/of/file.rs::name_of_the_test`, \
                    or `not built:` or `not testable:` and why";
        return vec![what.to_owned()];
    }
    tests.filter_map(|test| missing(tree, test)).collect()
}

fn names_test(code: &str) -> bool {
    code.contains("::") || code.contains(".rs")
}

fn excuses(cell: &TableCell) -> bool {
    EXCUSES.iter().any(|excuse| {
        let reason = cell.text.strip_prefix(excuse);
        reason.is_some_and(|reason| !reason.trim().is_empty())
    })
}

fn missing(tree: &SourceTree, test: &str) -> Option<String> {
    let Some((path, name)) = test.split_once("::") else {
        return Some(format!("`{test}` names no test: write `path/of/file.rs::name_of_the_test`"));
    };
    let Some(file) = tree.text_at(path) else {
        return Some(format!("`{test}` leads to no file"));
    };
    let is_there = file.rust().items().iter().any(|it| it.is_test && it.name == name);
    (!is_there).then(|| format!("`{test}` leads to no test of {path}"))
}

#[cfg(test)]
mod tests {
    use super::violations;
    use crate::tidy::rules::check;

    const KILL: (&str, &str) = (
        "crates/cli/tests/kill.rs",
        "#[test]\nfn a_wait_goes_on() {}\n\nfn world() {}\n\n\
         proptest! {\n    #[test]\n    fn it_runs_once(n in 0..9) {}\n}\n\n// fn gone()\n",
    );
    const NO_TEST: &str = "names no test: write `path/of/file.rs::name_of_the_test`, \
                           or `not built:` or `not testable:` and why";

    /// The violations of a page with this row, which is in line 3.
    fn check_row(row: &str) -> Vec<String> {
        let page = format!("| promise | shown by |\n|---|---|\n{row}\n");
        let check_row = check(violations, [("docs/promises/runner.md", &page), KILL]);
        let place = "docs/promises/runner.md:3: ";
        check_row.iter().map(|check_row| check_row.replace(place, "")).collect()
    }

    #[test]
    fn a_promise_with_its_tests_is_left_alone() {
        for row in [
            "| A wait goes on. | `crates/cli/tests/kill.rs::a_wait_goes_on` |",
            "| `a::b` runs once. | `crates/cli/tests/kill.rs::it_runs_once`, `crates/cli/tests/kill.rs::a_wait_goes_on` |",
            "| A wait goes on. | `crates/cli/tests/kill.rs::a_wait_goes_on` with `--fast` |",
        ] {
            assert_eq!(check_row(row), [""; 0], "{row}");
        }
    }

    #[test]
    fn a_promise_without_a_test_is_found() {
        for row in [
            "| A wait goes on. | |",
            "| A wait goes on. | by hand |",
            "| `crates/cli/tests/kill.rs::a_wait_goes_on` | `--fast` |",
            "| A wait goes on. |",
        ] {
            assert_eq!(check_row(row), [NO_TEST], "{row}");
        }
    }

    #[test]
    fn a_promise_without_a_test_may_say_why() {
        for row in [
            "| It runs on the moon. | not built: no moon |",
            "| It is nice. | not testable: a matter of `taste` |",
        ] {
            assert_eq!(check_row(row), [""; 0], "{row}");
        }
        for row in [
            "| It runs on the moon. | not built: |",
            "| It runs on the moon. | not built |",
            "| It runs on the moon. | it is not built: no moon |",
            "| not built: no moon | |",
        ] {
            assert_eq!(check_row(row), [NO_TEST], "{row}");
        }
    }

    #[test]
    fn an_excuse_does_not_hide_a_test_that_is_gone() {
        assert_eq!(
            check_row("| It. | not built: half of it; `crates/cli/tests/kill.rs::gone` |"),
            ["`crates/cli/tests/kill.rs::gone` leads to no test of crates/cli/tests/kill.rs"]
        );
    }

    #[test]
    fn a_file_that_is_gone_is_found() {
        assert_eq!(
            check_row("| A wait goes on. | `tests/kill.rs::a_wait_goes_on` |"),
            ["`tests/kill.rs::a_wait_goes_on` leads to no file"]
        );
    }

    #[test]
    fn a_name_that_is_no_test_is_found_beside_one_that_is() {
        for name in ["world", "gone", "a_wait", "tests::a_wait_goes_on", ""] {
            let row = format!(
                "| It. | `crates/cli/tests/kill.rs::a_wait_goes_on` `crates/cli/tests/kill.rs::{name}` |"
            );
            let expected =
                format!("`crates/cli/tests/kill.rs::{name}` leads to no test of crates/cli/tests/kill.rs");
            assert_eq!(check_row(&row), [expected]);
        }
    }

    #[test]
    fn a_file_alone_is_no_test() {
        assert_eq!(
            check_row("| A wait goes on. | `crates/cli/tests/kill.rs` |"),
            ["`crates/cli/tests/kill.rs` names no test: write `path/of/file.rs::name_of_the_test`"]
        );
    }

    #[test]
    fn a_page_without_a_row_is_found() {
        let page = ("docs/promises/a.md", "| A wait goes on. | by hand |\n");
        assert_eq!(
            check(violations, [page]),
            ["docs/promises/a.md:1: has no promise: they stand in the rows of a table"]
        );
    }

    #[test]
    fn other_pages_promise_nothing() {
        let table = "| a | b |\n|---|---|\n| A wait goes on. | |\n";
        assert_eq!(check(violations, [("docs/a.md", table), ("docs/promises/a.txt", table)]), [""; 0]);
    }
}
