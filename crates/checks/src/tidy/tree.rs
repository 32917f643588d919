//! The files of the repository, read once.
//!
//! A file counts when git tracks it or would offer to, so ignored files do not. Without git (an unpacked
//! archive) everything outside `target` counts. Rules never touch the disk; tests build a tree in memory.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, str};

use super::TextFile;

#[derive(Debug, thiserror::Error)]
#[error("`{}` cannot be read", path.display())]
pub struct TreeError {
    path: PathBuf,
    source: io::Error,
}

#[derive(Default)]
pub struct SourceTree {
    paths: BTreeSet<String>,
    texts: Vec<TextFile>,
}

impl SourceTree {
    pub fn read(root: &Path) -> Result<Self, TreeError> {
        let mut tree = Self::default();
        let paths = match tracked(root) {
            Some(paths) => paths,
            None => walked(root)?,
        };
        for path in paths {
            let at = root.join(&path);
            // Git still lists a file that was just deleted; a symbolic link is not a file.
            if !at.symlink_metadata().is_ok_and(|found| found.is_file()) {
                continue;
            }
            let bytes = fs::read(&at).map_err(|source| TreeError { path: at, source })?;
            if let Ok(text) = str::from_utf8(&bytes) {
                tree.texts.push(TextFile::of(&path, text));
            }
            tree.paths.insert(path);
        }
        Ok(tree)
    }

    pub fn of(texts: Vec<TextFile>) -> Self {
        let paths = texts.iter().map(|file| file.path().to_owned()).collect();
        Self { paths, texts }
    }

    pub fn texts(&self) -> &[TextFile] {
        &self.texts
    }

    pub(crate) fn text_at(&self, path: &str) -> Option<&TextFile> {
        self.texts.iter().find(|file| file.path() == path)
    }

    /// Whether a file or a folder lies at this path; the root is the empty path.
    pub(crate) fn holds(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.paths.contains(path)
            || self.paths.range(folder.clone()..).next().is_some_and(|next| next.starts_with(&folder))
    }
}

/// The files that git tracks or would offer to; `None` outside of a repository.
fn tracked(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        // In a git hook these point at the repository being committed to.
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .output()
        .ok()?;
    let listed = str::from_utf8(&output.stdout).ok()?;
    let paths: BTreeSet<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
    // An empty list means that a repository further up ignores this folder; the rules would then check
    // nothing.
    (output.status.success() && !paths.is_empty()).then(|| paths.into_iter().map(str::to_owned).collect())
}

fn walked(root: &Path) -> Result<Vec<String>, TreeError> {
    let mut found = vec![];
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let at = root.join(&folder);
        let unreadable = |source| TreeError { path: at.clone(), source };
        for entry in fs::read_dir(&at).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = folder.join(entry.file_name());
            let is_folder = entry.file_type().map_err(unreadable)?.is_dir();
            if !is_folder {
                found.extend(path.to_str().map(|path| path.replace('\\', "/")));
            } else if !["target", ".git"].iter().any(|left_out| path.ends_with(left_out)) {
                folders.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{SourceTree, TextFile};

    #[test]
    fn a_tree_holds_its_files_and_their_folders() {
        let tree = SourceTree::of(vec![TextFile::of("docs/guide/start.md", "")]);
        for path in ["", "docs", "docs/guide", "docs/guide/start.md"] {
            assert!(tree.holds(path), "{path}");
        }
        for path in ["doc", "docs/gui", "docs/guide/start", "guide"] {
            assert!(!tree.holds(path), "{path}");
        }
    }
}
