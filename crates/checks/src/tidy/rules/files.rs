//! Rules about whole files: their length, their header, `mod.rs`, and the one command that checks everything.

use crate::tidy::{SourceTree, TextFile, TidyViolation};

const LONGEST: usize = 600;

/// At most 600 lines. Tests in `tests.rs` or `tests/` do not count; tests inside a file do, because a
/// reader scrolls past them.
pub(crate) fn long_files(tree: &SourceTree) -> Vec<TidyViolation> {
    let files = tree.texts().iter().filter(|file| file.is_rust() && !file.is_test());
    let long = files.filter_map(|file| {
        let lines = file.text().lines().count();
        let what = format!("the file has {lines} lines, at most {LONGEST} are allowed: split it");
        (lines > LONGEST).then(|| file.violation(LONGEST + 1, what))
    });
    long.collect()
}

/// Every source file begins with a module header.
pub(crate) fn missing_headers(tree: &SourceTree) -> Vec<TidyViolation> {
    let sources = tree.texts().iter().filter(|file| file.is_rust() && file.is_in_crate(&["src"]));
    let without = sources.filter(|file| !file.text().starts_with("//! "));
    let what = "the file does not begin with a module header (`//! What it is for`)";
    without.map(|file| file.violation(1, what.to_owned())).collect()
}

/// A `mod.rs` only declares and re-exports: an editor shows a dozen tabs of that name.
pub(crate) fn code_in_mod_files(tree: &SourceTree) -> Vec<TidyViolation> {
    let files = tree.texts().iter().filter(|file| file.name() == "mod.rs");
    files.flat_map(in_mod_file).collect()
}

fn in_mod_file(file: &TextFile) -> Vec<TidyViolation> {
    let items = file.rust().file().map(|file| file.items.as_slice()).unwrap_or_default();
    let code = items.iter().filter(|item| match item {
        syn::Item::Use(_) => false,
        syn::Item::Mod(module) => module.content.is_some(),
        _ => true,
    });
    let count = code.count();
    let what = format!("`mod.rs` only declares and re-exports: move {count} items to a file with a name");
    (count > 0).then(|| file.violation(1, what)).into_iter().collect()
}

const COMMAND: &str = "./verify";
const SCRIPT: &str = ".ci/run";
const README: &str = "README.md";

/// The build server runs `./verify` and the README names it, so that people and machines check the same.
pub(crate) fn verify_is_the_one_command(tree: &SourceTree) -> Vec<TidyViolation> {
    let lines = |path| tree.text_at(path).into_iter().flat_map(|file| file.text().lines());
    let runs = lines(SCRIPT).any(|line| !line.trim_start().starts_with('#') && line.contains(COMMAND));
    let names = lines(README).any(|line| line.contains(COMMAND));
    let violation =
        |path: &str, what: &str| TidyViolation { path: path.to_owned(), line: 1, what: what.to_owned() };
    let script = (!runs).then(|| violation(SCRIPT, "the build server does not run `./verify`"));
    let readme = (!names).then(|| violation(README, "the README does not name `./verify`"));
    script.into_iter().chain(readme).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::check;

    #[test]
    fn six_hundred_lines_are_allowed_and_one_more_is_not_except_in_tests() {
        let (most, more) = ("//\n".repeat(600), "//\n".repeat(601));
        assert_eq!(check(long_files, [("a.rs", &most)]), [""; 0]);
        assert_eq!(
            check(long_files, [("a.rs", &more)]),
            ["a.rs:601: the file has 601 lines, at most 600 are allowed: split it"]
        );
        let others = [("src/a/tests.rs", &*more), ("tests/b.rs", &more), ("c.js", &more)];
        assert_eq!(check(long_files, others), [""; 0]);
    }

    #[test]
    fn a_source_file_begins_with_its_header() {
        assert_eq!(check(missing_headers, [("crates/a/src/b/c.rs", "//! Why.\nfn d() {}")]), [""; 0]);
        for text in ["fn d() {}", "", "//!\n", "use a::b;\n//! Why.\n", "// Why.\n"] {
            let found = check(missing_headers, [("crates/a/src/lib.rs", text)]);
            let expected = "crates/a/src/lib.rs:1: the file does not begin with a module header \
                            (`//! What it is for`)";
            assert_eq!(found, [expected], "{text}");
        }
        let elsewhere = [("crates/a/examples/b.rs", ""), ("crates/a/build.rs", "")];
        assert_eq!(check(missing_headers, elsewhere), [""; 0]);
    }

    #[test]
    fn a_mod_file_declares_and_re_exports_and_does_nothing_else() {
        let text = "//! Why.\n\n#![expect(a[0], reason = \"; fn\")]\nmod a;\n/// B; of course.\n#[cfg(test)]\npub mod b;\n\
                    pub(crate) mod c;\npub(in crate::x) use c::C;\nuse d::{\n    e,\n    f,\n};\npub use g::*;\n";
        assert_eq!(check(code_in_mod_files, [("src/mod.rs", text)]), [""; 0]);
        for text in [
            "fn b() {}",
            "mod a {\n}\n",
            "mod a { use b; }",
            "const A: [u8; 1] = { [0] };",
            "pub struct A;",
            "useful!();",
        ] {
            let expected =
                "src/mod.rs:1: `mod.rs` only declares and re-exports: move 1 items to a file with a name";
            assert_eq!(check(code_in_mod_files, [("src/mod.rs", text)]), [expected], "{text}");
        }
        assert_eq!(check(code_in_mod_files, [("src/model.rs", "pub fn b() {}")]), [""; 0]);
    }

    #[test]
    fn the_build_server_and_the_readme_agree_on_the_command() {
        let runs = (".ci/run", "#!/usr/bin/env bash\n./verify\n");
        let names = ("README.md", "Run `./verify`.\n");
        assert_eq!(check(verify_is_the_one_command, [runs, names]), [""; 0]);
        assert_eq!(
            check(verify_is_the_one_command, [(".ci/run", "# ./verify\n"), names]),
            [".ci/run:1: the build server does not run `./verify`"]
        );
        assert_eq!(check(verify_is_the_one_command, []).len(), 2);
        assert_eq!(
            check(verify_is_the_one_command, [runs]),
            ["README.md:1: the README does not name `./verify`"]
        );
    }
}
