//! Rules about names, judged where they are given: files, modules, types, functions.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use crate::tidy::rust_source::{is_for_tests, items_in};
use crate::tidy::text_file::FileLanguage;
use crate::tidy::{SourceTree, TextFile, TidyViolation};

/// Names that say nothing, or that say there are two of a thing. Judged word by word: `futile` has no
/// `util` in it.
pub(crate) fn empty_words(tree: &SourceTree) -> Vec<TidyViolation> {
    tree.texts().iter().flat_map(|file| in_path(file).into_iter().chain(in_code(file))).collect()
}

fn in_path(file: &TextFile) -> Option<TidyViolation> {
    // Prose may be called what it is about.
    if !matches!(file.language(), FileLanguage::Rust | FileLanguage::JavaScript | FileLanguage::Shell) {
        return None;
    }
    let mut stems = file.path().split('/').map(|part| part.split('.').next().unwrap_or_default());
    let problem = stems.find_map(empty_word)?;
    Some(file.violation(1, format!("the path {problem}")))
}

fn in_code(file: &TextFile) -> Vec<TidyViolation> {
    let found = file.rust().items().iter().filter_map(|item| {
        let is_prefixed = item.keyword == "fn" && item.name.starts_with("test_");
        let prefixed = || "starts with `test_`: a test's name is a sentence about the product".to_owned();
        let problem = empty_word(&item.name).or_else(|| is_prefixed.then(prefixed))?;
        Some(file.violation(item.line, format!("`{} {}` {problem}", item.keyword, item.name)))
    });
    found.collect()
}

fn empty_word(name: &str) -> Option<String> {
    if name.starts_with("new_") {
        return Some("starts with `new_`: it will not stay new, say what it is".to_owned());
    }
    let word = words(name).into_iter().find(|word| says_nothing(word))?;
    Some(format!("has the word `{word}`: say what it is for"))
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

/// No type name is defined twice under `crates/*/src` and `crates/*/tests`, whatever its visibility: two
/// types of one name are told apart by their paths, which neither a search nor a sentence shows. Associated
/// types are free, and so are two definitions in one file for different `cfg`s.
pub(crate) fn repeated_type_names(tree: &SourceTree) -> Vec<TidyViolation> {
    let mut first: BTreeMap<String, (&str, bool)> = BTreeMap::new();
    let mut found = vec![];
    for file in tree.texts().iter().filter(|file| file.is_rust() && file.is_in_crate(&["src", "tests"])) {
        let mut types = DefinedTypes::default();
        if let Some(source) = file.rust().file() {
            types.visit_file(source);
        }
        for (name, line, is_conditional) in types.found {
            let known = *first.entry(name.clone()).or_insert((file.path(), is_conditional));
            let is_first = known == (file.path(), is_conditional) && types.first.insert(name.clone());
            if !is_first && known != (file.path(), true) {
                let what = format!("the type name `{name}` is taken in {}: say which it is", known.0);
                found.push(file.violation(line, what));
            }
        }
    }
    found
}

/// The types of a file: name, line, and whether the definition is for some `cfg` only.
#[derive(Default)]
struct DefinedTypes {
    found: Vec<(String, usize, bool)>,
    first: BTreeSet<String>,
    conditions: usize,
}

impl<'a> Visit<'a> for DefinedTypes {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        let is_conditional = usize::from(is_conditional(&module.attrs));
        self.conditions += is_conditional;
        visit::visit_item_mod(self, module);
        self.conditions -= is_conditional;
    }

    fn visit_item_macro(&mut self, item: &'a syn::ItemMacro) {
        let types = items_in(&item.mac).into_iter().filter(|it| ["struct", "enum"].contains(&&*it.keyword));
        self.found.extend(types.map(|it| (it.name, it.line, self.conditions > 0)));
    }

    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        self.add(&item.ident, &item.attrs);
    }

    fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
        self.add(&item.ident, &item.attrs);
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        self.add(&item.ident, &item.attrs);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'a syn::ItemType) {
        self.add(&item.ident, &item.attrs);
    }
}

impl DefinedTypes {
    fn add(&mut self, name: &syn::Ident, attributes: &[syn::Attribute]) {
        let is_conditional = self.conditions > 0 || is_conditional(attributes);
        self.found.push((name.to_string(), name.span().start().line, is_conditional));
    }
}

fn is_conditional(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|it| it.path().is_ident("cfg")) && !is_for_tests(attributes)
}

#[cfg(test)]
mod tests {
    use super::{empty_words, repeated_type_names};
    use crate::tidy::rules::check;

    #[test]
    fn a_definition_with_an_empty_word_is_found_where_it_stands() {
        assert_eq!(
            check(empty_words, [("a.rs", "\npub struct JobManager;\n")]),
            ["a.rs:2: `struct JobManager` has the word `manager`: say what it is for"]
        );
        let empty =
            ["mod util;", "enum RetryV2 {}", "trait Common {}", "fn retry_v2() {}", "type LegacyJob = u8;"];
        for text in empty.into_iter().chain(["mod strutils;", "fn enhanced() {}", "fn helpers() {}"]) {
            assert_eq!(check(empty_words, [("a.rs", text)]).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_thing_called_after_its_age_is_found() {
        assert_eq!(
            check(empty_words, [("a.rs", "fn new_job() {}")]),
            ["a.rs:1: `fn new_job` starts with `new_`: it will not stay new, say what it is"]
        );
    }

    #[test]
    fn a_test_called_after_being_a_test_is_found() {
        assert_eq!(
            check(empty_words, [("tests/a.rs", "#[test]\nfn test_delay() {}")]),
            [
                "tests/a.rs:2: `fn test_delay` starts with `test_`: a test's name is a sentence about the product"
            ]
        );
    }

    #[test]
    fn files_and_folders_are_named_too() {
        for path in ["src/util.rs", "tests/common/mod.rs", "ui/string-utils.js", "scripts/new_setup.sh"] {
            assert_eq!(check(empty_words, [(path, "")]).len(), 1, "{path}");
        }
    }

    #[test]
    fn ordinary_names_are_left_alone() {
        let text = "fn new() {}\nstruct NewTry;\nfn futile_utilization() {}\nfn ipv4() {}\nmod uncommon;\nfn latest_() {}";
        assert_eq!(check(empty_words, [("src/contests.rs", text)]), [""; 0]);
    }

    #[test]
    fn uses_comments_literals_and_prose_are_left_alone() {
        let text =
            "use other::Manager;\n// fn helper()\nconst A: &str = \"fn new_a() {}\";\nfn f(a: JobManager) {}";
        assert_eq!(check(empty_words, [("a.rs", text), ("docs/common-questions.md", "")]), [""; 0]);
    }

    #[test]
    fn a_type_name_is_given_once_whatever_its_visibility() {
        let files = [
            ("crates/engine/src/a.rs", "pub struct Held;\n#[cfg(test)]\nmod tests { struct Case; }\n"),
            ("crates/runner/src/b.rs", "\npub(crate) enum Held {}\n"),
            ("crates/runner/tests/c.rs", "fn f() { type Held = u8; }\ntrait Case {}\nmod a { struct Case; }"),
        ];
        let found = [("runner/src/b.rs:2", "Held"), ("runner/tests/c.rs:1", "Held")];
        let cases = [("runner/tests/c.rs:2", "Case"), ("runner/tests/c.rs:3", "Case")];
        let expected = found.into_iter().chain(cases).map(|(place, name)| {
            format!(
                "crates/{place}: the type name `{name}` is taken in crates/engine/src/a.rs: say which it is"
            )
        });
        assert_eq!(check(repeated_type_names, files), expected.collect::<Vec<_>>());
        let twice = [("crates/a/src/b.rs", "struct A; mod b { struct A; }")];
        assert_eq!(check(repeated_type_names, twice).len(), 1);
        let declared = [("crates/a/src/b.rs", "struct A; stored! { pub struct A { b: u8 = 0, } }")];
        assert_eq!(check(repeated_type_names, declared).len(), 1);
    }

    #[test]
    fn associated_types_conditions_and_examples_may_repeat_a_type_name() {
        let files = [
            (
                "crates/a/src/a.rs",
                "trait A { type Error; }\nimpl A for u8 { type Error = u8; }\nstruct Error;",
            ),
            ("crates/a/src/b.rs", "#[cfg(unix)]\nstruct B;\n#[cfg(not(unix))]\nstruct B;\n"),
            (
                "crates/a/src/c.rs",
                "#[cfg(unix)]\nmod d { type C = u8; }\n#[cfg(not(unix))]\nmod d { type C = u16; }",
            ),
            ("crates/a/examples/b.rs", "struct B;"),
            ("bench/src/b.rs", "struct B;"),
        ];
        assert_eq!(check(repeated_type_names, files), [""; 0]);
    }
}
