//! Finds definitions in code without comments and literals.
//!
//! Braces are matched, not indentation, so the answer does not depend on the formatter. It
//! looks at names and extents only; what a body means is no concern of tidiness.

use std::ops::Range;

use super::in_name;

const KEYWORDS: [&str; 6] = ["mod", "struct", "enum", "trait", "fn", "type"];
const TEST_ATTRIBUTES: [&str; 2] = ["#[cfg(test)]", "#[cfg(all(test"];
const TESTS: [&str; 2] = ["#[test]", "#[tokio::test"];

/// A name given to something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Definition<'a> {
    pub(crate) keyword: &'a str,
    pub(crate) name: &'a str,
    /// The byte at which the keyword begins.
    pub(crate) start: usize,
    /// The byte after the name.
    pub(crate) after_name: usize,
}

/// Every module, type, trait and function the code defines, in order.
pub(crate) fn definitions(code: &str) -> Vec<Definition<'_>> {
    let mut found = vec![];
    let mut before: Option<(usize, &str)> = None;
    for (start, name) in words(code) {
        if let Some((keyword_start, keyword)) = before {
            let between = code.get(keyword_start + keyword.len()..start).unwrap_or_default();
            // `fn(u8)` is a type and `fn $name` a pattern; neither names anything.
            if KEYWORDS.contains(&keyword) && between.trim().is_empty() {
                let after_name = start + name.len();
                found.push(Definition { keyword, name, start: keyword_start, after_name });
            }
        }
        before = Some((start, name));
    }
    found
}

fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    code.split(|character| !in_name(character)).filter_map(move |word| {
        let start = at;
        at += word.len();
        // The separator was one character, perhaps of several bytes.
        at += code.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        (!word.is_empty()).then_some((start, word))
    })
}

/// How an item ends, with the byte after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Brace(usize),
    Semicolon(usize),
}

/// The end of the item whose head is at `from`, or nothing if it never ends.
pub(crate) fn end(code: &str, from: usize) -> Option<End> {
    // Semicolons and braces inside brackets belong to types: `[u8; 4]`, `[u8; { N }]`.
    let mut brackets = 0_usize;
    let mut braces = 0_usize;
    for (at, character) in code.get(from..)?.char_indices() {
        match character {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            ';' if brackets == 0 && braces == 0 => return Some(End::Semicolon(from + at + 1)),
            '{' if brackets == 0 || braces > 0 => braces += 1,
            '}' if braces == 1 => return Some(End::Brace(from + at + 1)),
            '}' => braces = braces.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// The byte after the body of the item whose head is at `from`, if it has a body.
pub(crate) fn body_end(code: &str, from: usize) -> Option<usize> {
    match end(code, from)? {
        End::Brace(end) => Some(end),
        End::Semicolon(_) => None,
    }
}

/// The parts of the code that are compiled for tests only.
pub(crate) fn items_for_tests(code: &str) -> Vec<Range<usize>> {
    let mut found = vec![];
    for attribute in TEST_ATTRIBUTES {
        for (start, _) in code.match_indices(attribute) {
            if let Some(end) = body_end(code, start) {
                found.push(start..end);
            }
        }
    }
    found
}

/// Whether the code has a test of this name; one in a macro counts if it is written out there.
pub(crate) fn has_test(code: &str, name: &str) -> bool {
    definitions(code).iter().filter(|found| found.keyword == "fn" && found.name == name).any(|found| {
        // Between an attribute and its function stand other attributes, which end nothing.
        let before = code.get(..found.start).unwrap_or_default();
        let head = before.rsplit(['{', '}', ';']).next().unwrap_or_default();
        TESTS.iter().any(|attribute| head.contains(attribute))
    })
}

#[cfg(test)]
mod tests {
    use super::{End, body_end, definitions, end, has_test, items_for_tests};

    fn names(code: &str) -> Vec<(&str, &str)> {
        definitions(code).iter().map(|found| (found.keyword, found.name)).collect()
    }

    #[test]
    fn every_kind_of_definition_is_found() {
        let code = "pub(crate) mod a;\nstruct B;\nenum C {}\ntrait D {\n    type E;\n    async fn f();\n}";
        let expected =
            [("mod", "a"), ("struct", "B"), ("enum", "C"), ("trait", "D"), ("type", "E"), ("fn", "f")];
        assert_eq!(names(code), expected);
    }

    #[test]
    fn a_function_pointer_and_a_macro_variable_name_nothing() {
        assert_eq!(names("x: fn(u8) -> u8, fn $name() {}, r#type: u8"), []);
    }

    #[test]
    fn a_definition_knows_where_it_stands() {
        let code = "é fn f() {}";
        let found = definitions(code)[0];
        assert_eq!(&code[found.start..found.after_name], "fn f");
    }

    #[test]
    fn a_body_ends_at_its_own_brace() {
        let code = "fn f(a: [u8; { N }]) { if x { y(|| { 1 }) } } z }";
        assert_eq!(body_end(code, 0), code.find(" z"));
    }

    #[test]
    fn a_declaration_has_no_body() {
        let code = "fn f(a: [u8; 4]); fn g() {}";
        assert_eq!(body_end(code, 0), None);
        assert_eq!(end(code, 0), code.find(" fn g").map(End::Semicolon));
    }

    #[test]
    fn a_test_is_a_function_under_its_attribute() {
        let code = "#[test]\nfn a() { fn inner() {} }\nfn b() {}\n#[cfg(test)]\nfn c() {}\n\
                    #[tokio::test(start_paused = true)]\nasync fn d() {}\n#[test]\n#[ignore]\nfn e() {}\n\
                    proptest! {\n    #![proptest_config(x)]\n    #[test]\n    fn f(x in 0..9) {}\n}\n\
                    macro_rules! g { () => { #[test] fn $g() {} } }\nfn h() {}";
        for name in ["a", "d", "e", "f"] {
            assert!(has_test(code, name), "{name}");
        }
        for name in ["inner", "b", "c", "g", "h", "nowhere"] {
            assert!(!has_test(code, name), "{name}");
        }
    }

    #[test]
    fn modules_for_tests_are_found_and_those_in_their_own_file_are_not_here() {
        let code = "fn a() {}\n#[cfg(test)]\n#[expect(x)]\nmod tests {\n    fn b() {}\n}\nfn c() {}";
        let found = items_for_tests(code);
        assert_eq!(found.len(), 1);
        assert!(code[found[0].clone()].starts_with("#[cfg"));
        assert!(code[found[0].clone()].ends_with("fn b() {}\n}"));
        assert!(items_for_tests("#[cfg(test)]\nmod tests;\nfn a() {}").is_empty());
        assert_eq!(items_for_tests("#[cfg(all(test, unix))]\nmod tests {}").len(), 1);
    }
}
