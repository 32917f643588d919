//! Every source file says first what it is for.
//!
//! Whether the header is a good one is for a reader to judge; that there is one is for us.

use crate::tidy::{Tree, Violation};

pub(crate) fn violations(tree: &Tree) -> Vec<Violation> {
    let sources = tree.texts().iter().filter(|file| file.is_rust() && is_source(file.path()));
    sources
        .filter(|file| !file.text().starts_with("//! "))
        .map(|file| {
            let what = "the file does not begin with a module header (`//! What it is for`)";
            file.violation(1, what.to_owned())
        })
        .collect()
}

fn is_source(path: &str) -> bool {
    let mut parts = path.split('/');
    (parts.next(), parts.nth(1)) == (Some("crates"), Some("src"))
}

#[cfg(test)]
mod tests {
    use super::violations;
    use crate::tidy::rules::spoken;

    #[test]
    fn a_source_file_begins_with_its_header() {
        assert_eq!(spoken(violations, [("crates/a/src/b/c.rs", "//! Why.\nfn d() {}")]), [""; 0]);
        assert_eq!(
            spoken(violations, [("crates/a/src/b/c.rs", "fn d() {}")]),
            ["crates/a/src/b/c.rs:1: the file does not begin with a module header (`//! What it is for`)"]
        );
    }

    #[test]
    fn an_empty_header_or_a_late_one_is_none() {
        for text in ["", "//!\n", "use a::b;\n//! Why.\n", "// Why.\n"] {
            assert_eq!(spoken(violations, [("crates/a/src/lib.rs", text)]).len(), 1, "{text}");
        }
    }

    #[test]
    fn files_outside_src_need_none() {
        assert_eq!(spoken(violations, [("crates/a/examples/b.rs", ""), ("crates/a/build.rs", "")]), [""; 0]);
    }
}
