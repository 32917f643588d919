//! A file as the rules see it.
//!
//! Decides what language a file is in and which files are tests, so that the rules agree on it. It does not
//! read the disk.

use super::TidyViolation;
use super::rust_source::RustSource;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileLanguage {
    Rust,
    JavaScript,
    Shell,
    Markdown,
    Other,
}

impl FileLanguage {
    pub(crate) fn is_code(self) -> bool {
        matches!(self, Self::Rust | Self::JavaScript | Self::Shell)
    }
}

pub struct TextFile {
    path: String,
    text: String,
    rust: RustSource,
    language: FileLanguage,
}

impl TextFile {
    /// A file at `path` (from the root, with `/` between its parts) that holds `text`.
    pub fn of(path: &str, text: &str) -> Self {
        let language = language(path, text);
        let rust = match language {
            FileLanguage::Rust => RustSource::parse(text),
            _ => RustSource::default(),
        };
        Self { path: path.to_owned(), text: text.to_owned(), rust, language }
    }

    /// From the root of the repository.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The syntax of a Rust file; empty for any other file.
    pub(crate) fn rust(&self) -> &RustSource {
        &self.rust
    }

    pub(crate) fn language(&self) -> FileLanguage {
        self.language
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.language == FileLanguage::Rust
    }

    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether the whole file is a test: it is called `tests.rs` or lies in a folder `tests`.
    pub(crate) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }

    /// Whether it lies in one of these folders of a crate.
    pub(crate) fn is_in_crate(&self, folders: &[&str]) -> bool {
        let mut parts = self.path().split('/');
        let (crates, folder) = (parts.next(), parts.nth(1));
        crates == Some("crates") && folder.is_some_and(|folder| folders.contains(&folder))
    }

    /// Whether it is a source file of the product, tests apart.
    pub(crate) fn is_product(&self) -> bool {
        let is_ours = !self.path.starts_with("crates/checks/");
        is_ours && self.is_in_crate(&["src"]) && self.is_rust() && !self.is_test()
    }

    pub(crate) fn violation(&self, line: usize, what: String) -> TidyViolation {
        TidyViolation { path: self.path.clone(), line, what }
    }
}

fn language(path: &str, text: &str) -> FileLanguage {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("rs") => FileLanguage::Rust,
        Some("js" | "mjs") => FileLanguage::JavaScript,
        Some("sh") => FileLanguage::Shell,
        Some("md") => FileLanguage::Markdown,
        // Commands like `verify` have no extension, but a shebang line.
        None if text.lines().next().is_some_and(|line| line.starts_with("#!") && line.ends_with("sh")) => {
            FileLanguage::Shell
        }
        _ => FileLanguage::Other,
    }
}

/// The line of a byte of `text`, counted from 1.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().iter().take(offset);
    before.filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::{FileLanguage, TextFile, line_of};

    #[test]
    fn a_command_without_extension_is_known_by_its_first_line() {
        assert_eq!(TextFile::of("verify", "#!/usr/bin/env bash\n").language(), FileLanguage::Shell);
        assert_eq!(TextFile::of("LICENSE", "Permission is granted\n").language(), FileLanguage::Other);
        assert_eq!(TextFile::of(".ci/run", "#!/usr/bin/env bash\n").language(), FileLanguage::Shell);
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
