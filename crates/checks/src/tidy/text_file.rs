//! One file of the repository as the rules see it.
//!
//! Knows what kind of file it is and which of its lines are tests, so that no rule has its own
//! opinion about either. It does not read the disk.

use std::ops::Range;

use super::{Violation, rust_code};

/// What a file is written in, as far as a rule cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    JavaScript,
    Shell,
    Markdown,
    Other,
}

/// A file that holds text.
#[derive(Debug, Clone)]
pub struct TextFile {
    path: String,
    text: String,
    code: String,
    language: Language,
}

impl TextFile {
    /// A file at `path` (from the root, with `/` between its parts) that holds `text`.
    #[must_use]
    pub fn of(path: &str, text: &str) -> Self {
        let language = language(path, text);
        let code = match language {
            Language::Rust => rust_code::only_code(text),
            _ => String::new(),
        };
        Self { path: path.to_owned(), text: text.to_owned(), code, language }
    }

    /// Where it lies, from the root.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text of a Rust file with comments and literals blanked out, line for line; empty for
    /// any other file.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    pub(crate) fn language(&self) -> Language {
        self.language
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.language == Language::Rust
    }

    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether the whole file is a test: it is called `tests.rs` or lies in a folder `tests`.
    pub(crate) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }

    /// Whether it is a source file of the product, tests apart.
    pub(crate) fn is_product(&self) -> bool {
        let mut parts = self.path().split('/');
        let (crates, name, src) = (parts.next(), parts.next(), parts.next());
        let product = ["policy", "engine", "store", "runner", "server", "cli"];
        (crates, src) == (Some("crates"), Some("src"))
            && name.is_some_and(|name| product.contains(&name))
            && self.is_rust()
            && !self.is_test()
    }

    /// The parts of `code` that are compiled for tests only.
    pub(crate) fn code_for_tests(&self) -> Vec<Range<usize>> {
        rust_code::items_for_tests(&self.code)
    }

    pub(crate) fn violation(&self, line: usize, what: String) -> Violation {
        Violation { path: self.path.clone(), line, what }
    }
}

fn language(path: &str, text: &str) -> Language {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("rs") => Language::Rust,
        Some("js" | "mjs") => Language::JavaScript,
        Some("sh") => Language::Shell,
        Some("md") => Language::Markdown,
        // Commands like `verify` have no extension; their first line says who runs them.
        None if text.lines().next().is_some_and(|line| line.starts_with("#!") && line.ends_with("sh")) => {
            Language::Shell
        }
        _ => Language::Other,
    }
}

/// The line of a byte of `text`, counted from 1.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().iter().take(offset);
    before.filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::{Language, TextFile, line_of};

    #[test]
    fn a_command_without_extension_is_known_by_its_first_line() {
        assert_eq!(TextFile::of("verify", "#!/usr/bin/env bash\n").language(), Language::Shell);
        assert_eq!(TextFile::of("LICENSE", "Permission is granted\n").language(), Language::Other);
        assert_eq!(TextFile::of(".ci/run", "#!/usr/bin/env bash\n").language(), Language::Shell);
    }

    #[test]
    fn tests_are_known_by_their_path() {
        for path in ["crates/a/tests/b.rs", "crates/a/src/b/tests.rs"] {
            assert!(TextFile::of(path, "").is_test(), "{path}");
        }
        for path in ["crates/a/src/contests.rs", "crates/a/src/b.rs"] {
            assert!(!TextFile::of(path, "").is_test(), "{path}");
        }
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!([0, 1, 2, 3].map(|offset| line_of("a\nb\n", offset)), [1, 1, 2, 2]);
    }
}
