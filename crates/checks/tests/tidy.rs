//! The conventions of this repository, checked on this repository.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use undaunted_checks::repository;
use undaunted_checks::tidy::{SourceTree, TextFile, TidyViolation, violations};

#[test]
fn the_repository_is_tidy() {
    let tree = SourceTree::read(repository()).expect("the repository can be read");
    let lines: Vec<String> = violations(&tree).iter().map(TidyViolation::to_string).collect();
    assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
}

#[test]
fn the_file_you_are_reading_is_looked_at() {
    let tree = SourceTree::read(repository()).expect("the repository can be read");
    assert!(paths(&tree).contains(&"crates/checks/tests/tidy.rs"));
}

#[test]
fn violations_of_all_rules_come_at_once_and_sorted() {
    let files = [
        ("src/b.rs", concat!("fn new_a() {}\n// FIX", "ME")),
        ("src/a.rs", "struct Legacy;"),
        ("c.md", "[a](b)"),
    ];
    let texts = files.map(|(path, text)| TextFile::of(path, text));
    let found = violations(&SourceTree::of(texts.into()));
    let places: Vec<_> = found.iter().map(|violation| (violation.path.as_str(), violation.line)).collect();
    assert_eq!(
        places,
        [(".ci/run", 1), ("README.md", 1), ("c.md", 1), ("src/a.rs", 1), ("src/b.rs", 1), ("src/b.rs", 2)]
    );
}

#[test]
fn with_git_a_file_counts_before_it_is_added_and_not_when_ignored_or_deleted() {
    let folder = folder("with_git").expect("a folder for the test");
    for (path, text) in [(".gitignore", "/out\n"), ("gone.rs", ""), ("target.rs", ""), ("out/made.rs", "")] {
        write(&folder, path, text.as_bytes()).expect("a file for the test");
    }
    for arguments in [["init", "--quiet"], ["add", "gone.rs"]] {
        let mut git = Command::new("git");
        git.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE");
        assert!(git.args(arguments).current_dir(&folder).status().expect("git runs").success());
    }
    fs::remove_file(folder.join("gone.rs")).expect("the file can go");
    let tree = SourceTree::read(&folder).expect("the folder can be read");
    assert_eq!(paths(&tree), [".gitignore", "target.rs"]);
}

#[test]
fn without_git_everything_counts_but_what_was_built() {
    // The repository around this folder ignores it, which counts as no repository.
    let folder = folder("without_git").expect("a folder for the test");
    for (path, bytes) in [
        ("README.md", b"a".as_slice()),
        ("bench/src/a.rs", b"a"),
        ("bench/target/b.rs", b"a"),
        ("target/c.rs", b"a"),
        ("picture.png", b"\xff\xfe"),
    ] {
        write(&folder, path, bytes).expect("a file for the test");
    }
    let tree = SourceTree::read(&folder).expect("the folder can be read");
    assert_eq!(paths(&tree), ["README.md", "bench/src/a.rs"]);
}

fn paths(tree: &SourceTree) -> Vec<&str> {
    tree.texts().iter().map(TextFile::path).collect()
}

/// An empty folder for one test, where cargo lets tests write.
fn folder(name: &str) -> io::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn write(folder: &Path, path: &str, bytes: &[u8]) -> io::Result<()> {
    let at = folder.join(path);
    at.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(at, bytes)
}
