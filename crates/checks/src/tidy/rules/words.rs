//! Rules about words: places of one machine, sentences without an agent, marks of unfinished work.
//!
//! The words are written in two parts here, so that this file does not break its own rules.

use crate::tidy::{SourceTree, TextFile, TidyViolation};

const FOLDERS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/tmp/ba", "sh_jobs")];
const HOSTS: [&str; 6] = [
    concat!("index.cra", "tes.io"),
    concat!("static.cra", "tes.io"),
    concat!("registry.npm", "js.org"),
    concat!("files.python", "hosted.org"),
    concat!("py", "pi.org"),
    concat!("deb.deb", "ian.org"),
];
/// The tools write the registry into their lock files.
const LOCK_FILES: [&str; 2] = ["Cargo.lock", "package-lock.json"];

/// A path of one machine, or a host that tools download from, is wrong on every other machine.
pub(crate) fn foreign_places(tree: &SourceTree) -> Vec<TidyViolation> {
    let files = tree.texts().iter().filter(|file| !LOCK_FILES.contains(&file.name()));
    files.flat_map(|file| in_lines(file, foreign_in)).collect()
}

fn foreign_in(line: &str) -> Vec<String> {
    let in_a_path = |c: char| c.is_alphanumeric() || "._-*}])".contains(c);
    let begins_a_path = |folder: &&&str| {
        line.match_indices(**folder).any(|(at, _)| !line.split_at(at).0.ends_with(in_a_path))
    };
    let folders = FOLDERS.iter().filter(begins_a_path);
    let folders = folders.map(|it| format!("`{it}` is a folder of one machine: use a relative path"));
    let hosts = HOSTS.iter().filter(|host| line.contains(**host));
    let hosts = hosts.map(|it| format!("`{it}` is a registry: the tool's own settings say where it is"));
    folders.chain(hosts).collect()
}

const AGENTLESS: [&str; 5] = [
    concat!("who", "ever"),
    concat!("some", "body"),
    concat!("no", "body"),
    concat!("any", "body"),
    concat!("gone ", "on with"),
];
/// Files that have to quote these words, such as the name of a group of the system.
const QUOTING: [&str; 1] = ["bench/side/src/postgres.rs"];

/// A sentence names its agent: the worker, the runner, the store, the caller.
pub(crate) fn missing_agents(tree: &SourceTree) -> Vec<TidyViolation> {
    let prose = |file: &&TextFile| {
        [".rs", ".md", ".yaml"].iter().any(|end| file.path().ends_with(end))
            && !QUOTING.contains(&file.path())
    };
    let files = tree.texts().iter().filter(prose);
    files.flat_map(|file| in_lines(file, |line| agentless_in(&line.to_lowercase()))).collect()
}

fn agentless_in(line: &str) -> Vec<String> {
    let found = AGENTLESS.iter().filter(|word| stands_alone(line, word, char::is_alphanumeric));
    found.map(|word| format!("`{word}` names no agent: say who or what it is")).collect()
}

const MARKS: [&str; 2] = [concat!("FIX", "ME"), concat!("X", "XX")];

/// Marks of unfinished work, which belongs in an issue. Clippy finds the macros.
pub(crate) fn unfinished_marks(tree: &SourceTree) -> Vec<TidyViolation> {
    let files = tree.texts().iter().filter(|file| file.language().is_code());
    files.flat_map(|file| in_lines(file, marks_in)).collect()
}

fn marks_in(line: &str) -> Vec<String> {
    let in_name = |c: char| c == '_' || c.is_alphanumeric();
    let found = MARKS.iter().filter(|mark| stands_alone(line, mark, in_name));
    found.map(|mark| format!("`{mark}` marks unfinished work: finish it or open an issue")).collect()
}

/// Whether a word occurs on its own, not as part of a longer one.
fn stands_alone(line: &str, word: &str, in_word: impl Fn(char) -> bool) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let (before, rest) = line.split_at(at);
        let after = rest.strip_prefix(word).unwrap_or_default();
        !before.ends_with(&in_word) && !after.starts_with(&in_word)
    })
}

fn in_lines(file: &TextFile, problems: impl Fn(&str) -> Vec<String>) -> Vec<TidyViolation> {
    let lines = file.text().lines().zip(1..);
    lines
        .flat_map(|(line, number)| problems(line).into_iter().map(move |it| (number, it)))
        .map(|(number, what)| file.violation(number, what))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::check;

    #[test]
    fn a_folder_of_one_machine_and_a_registry_are_found_in_any_text() {
        let text = concat!("\nrun \"/ho", "me/ann/undaunted\"\n");
        assert_eq!(
            check(foreign_places, [("notes.txt", text)]),
            [concat!("notes.txt:2: `/ho", "me/` is a folder of one machine: use a relative path")]
        );
        for text in [
            concat!("cd /wo", "rk/x"),
            concat!("file:///ro", "ot/x"),
            concat!("(/tmp/ba", "sh_jobs.0)"),
            concat!("curl https://static.cra", "tes.io/x"),
        ] {
            assert_eq!(check(foreign_places, [("a.md", text)]).len(), 1, "{text}");
        }
    }

    #[test]
    fn the_middle_of_a_path_lock_files_and_websites_are_left_alone() {
        let text =
            concat!("https://example.org/ho", "me/x {folder}/wo", "rk/item $DIR/ro", "ot/a ../wo", "rk/b");
        let host = concat!("https://registry.npm", "js.org/x");
        let page = "https://crates.io/crates/undaunted-policy https://docs.rs/undaunted-policy";
        let files =
            [("a.md", text), ("Cargo.lock", host), ("ui/package-lock.json", host), ("README.md", page)];
        assert_eq!(check(foreign_places, files), [""; 0]);
    }

    #[test]
    fn a_sentence_without_an_agent_is_found_in_code_and_in_prose() {
        let word = concat!("no", "body");
        assert_eq!(
            check(missing_agents, [("a.rs", &format!("\n// What {word} reads.\n"))]),
            [format!("a.rs:2: `{word}` names no agent: say who or what it is")]
        );
        let name = format!("fn {word}_waits() {{}}");
        let more = concat!("Who", "ever asks. It is gone ", "on with.");
        assert_eq!(check(missing_agents, [("a.rs", &*name), ("b.md", more)]).len(), 3);
        let other = format!("{word}!");
        assert_eq!(check(missing_agents, [("a.txt", &*other), ("b.md", "no body, anybodys")]), [""; 0]);
    }

    #[test]
    fn a_mark_of_unfinished_work_is_found_in_every_language_and_not_in_prose() {
        let fix = concat!("// FIX", "ME: later");
        let cross = concat!("# X", "XX later");
        let script = format!("#!/bin/sh\n{cross}");
        let files = [("a.rs", fix), ("b.js", fix), ("c.sh", cross), ("verify", &script)];
        assert_eq!(check(unfinished_marks, files).len(), 4);
        assert_eq!(check(unfinished_marks, [("b.sh", "mktemp -d run.XXXXXX"), ("a.md", fix)]), [""; 0]);
    }
}
