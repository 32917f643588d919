//! Names that say nothing, or that say there are two of a thing.
//!
//! Looks at names where they are given (files, modules, types, functions), not where they are
//! used: what another library calls its things is its own affair. A name is judged word by
//! word, so `futile` does not fall for the letters inside it.

use crate::tidy::text_file::{Language, TextFile, line_of};
use crate::tidy::{Tree, Violation, rust_code};

pub(crate) fn violations(tree: &Tree) -> Vec<Violation> {
    tree.texts().iter().flat_map(|file| in_path(file).into_iter().chain(in_code(file))).collect()
}

fn in_path(file: &TextFile) -> Option<Violation> {
    // Prose may be called what it is about.
    if !matches!(file.language(), Language::Rust | Language::JavaScript | Language::Shell) {
        return None;
    }
    let mut stems = file.path().split('/').map(|part| part.split('.').next().unwrap_or_default());
    let problem = stems.find_map(empty_word)?;
    Some(file.violation(1, format!("the path {problem}")))
}

fn in_code(file: &TextFile) -> Vec<Violation> {
    let defined = rust_code::definitions(file.code()).into_iter();
    defined
        .filter_map(|found| {
            let problem = empty_word(found.name).or_else(|| prefixed_test(found))?;
            let line = line_of(file.code(), found.start);
            Some(file.violation(line, format!("`{} {}` {problem}", found.keyword, found.name)))
        })
        .collect()
}

fn empty_word(name: &str) -> Option<String> {
    if name.starts_with("new_") {
        return Some("starts with `new_`: it will not stay new, say what it is".to_owned());
    }
    let word = words(name).into_iter().find(|word| says_nothing(word))?;
    Some(format!("has the word `{word}`: say what it is for"))
}

fn prefixed_test(found: rust_code::Definition<'_>) -> Option<String> {
    let prefixed = found.keyword == "fn" && found.name.starts_with("test_");
    prefixed.then(|| "starts with `test_`: a test's name is a sentence about the product".to_owned())
}

fn says_nothing(word: &str) -> bool {
    ["manager", "helper", "legacy", "enhanced"].iter().any(|part| word.contains(part))
        || ["util", "utils", "v2"].iter().any(|end| word.ends_with(end))
        || ["utility", "utilities", "common"].contains(&word)
}

/// The words of a name in lower case: `RetryV2`, `retry_v2` and `retry-v2` are the same two.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for character in name.chars() {
        let starts_word = character.is_uppercase() && after_lower;
        if starts_word || !character.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && character.is_alphanumeric()
        {
            word.extend(character.to_lowercase());
        }
        after_lower = !character.is_uppercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::violations;
    use crate::tidy::rules::spoken;

    #[test]
    fn a_definition_with_an_empty_word_is_found_where_it_stands() {
        assert_eq!(
            spoken(violations, [("a.rs", "\npub struct JobManager;\n")]),
            ["a.rs:2: `struct JobManager` has the word `manager`: say what it is for"]
        );
        let empty =
            ["mod util;", "enum RetryV2 {}", "trait Common {}", "fn retry_v2() {}", "type LegacyJob = u8;"];
        for text in empty.into_iter().chain(["mod strutils;", "fn enhanced() {}", "fn helpers() {}"]) {
            assert_eq!(spoken(violations, [("a.rs", text)]).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_thing_called_after_its_age_is_found() {
        assert_eq!(
            spoken(violations, [("a.rs", "fn new_job() {}")]),
            ["a.rs:1: `fn new_job` starts with `new_`: it will not stay new, say what it is"]
        );
    }

    #[test]
    fn a_test_called_after_being_a_test_is_found() {
        assert_eq!(
            spoken(violations, [("tests/a.rs", "#[test]\nfn test_delay() {}")]),
            [
                "tests/a.rs:2: `fn test_delay` starts with `test_`: a test's name is a sentence about the product"
            ]
        );
    }

    #[test]
    fn files_and_folders_are_named_too() {
        for path in ["src/util.rs", "tests/common/mod.rs", "ui/string-utils.js", "scripts/new_setup.sh"] {
            assert_eq!(spoken(violations, [(path, "")]).len(), 1, "{path}");
        }
    }

    #[test]
    fn ordinary_names_are_left_alone() {
        let text = "fn new() {}\nstruct NewTry;\nfn futile_utilization() {}\nfn ipv4() {}\nmod uncommon;\nfn latest_() {}";
        assert_eq!(spoken(violations, [("src/contests.rs", text)]), [""; 0]);
    }

    #[test]
    fn uses_comments_literals_and_prose_are_left_alone() {
        let text =
            "use other::Manager;\n// fn helper()\nconst A: &str = \"fn new_a() {}\";\nfn f(a: JobManager) {}";
        assert_eq!(spoken(violations, [("a.rs", text), ("docs/common-questions.md", "")]), [""; 0]);
    }
}
