//! A `mod.rs` only declares and re-exports.
//!
//! Everybody's editor shows a dozen tabs called `mod.rs`; nothing worth finding should live in
//! one.

use crate::tidy::rust_code::{self, End};
use crate::tidy::text_file::{TextFile, line_of};
use crate::tidy::{Tree, Violation};

pub(crate) fn violations(tree: &Tree) -> Vec<Violation> {
    let files = tree.texts().iter().filter(|file| file.name() == "mod.rs");
    files.flat_map(in_file).collect()
}

fn in_file(file: &TextFile) -> Vec<Violation> {
    let code = file.code();
    let mut found = vec![];
    let mut rest = item(code);
    while !rest.is_empty() {
        if !declares(rest) {
            let line = line_of(code, code.len() - rest.len());
            let what = "`mod.rs` only declares and re-exports: move this to a file with a name";
            found.push(file.violation(line, what.to_owned()));
        }
        let length = match rust_code::end(rest, 0) {
            Some(End::Brace(end) | End::Semicolon(end)) => end,
            None => rest.len(),
        };
        rest = item(rest.split_at(length).1);
    }
    found
}

/// The code from its first item on: before it stand attributes, and the semicolon of a list in
/// braces.
fn item(code: &str) -> &str {
    let code = code.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
    let attribute = code.strip_prefix("#![").or_else(|| code.strip_prefix("#["));
    attribute.map_or(code, |inside| item(after_bracket(inside)))
}

/// What follows the bracket that closes the one just opened.
fn after_bracket(inside: &str) -> &str {
    let mut depth = 1_usize;
    let close = inside.find(|character| {
        match character {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    close.map_or("", |at| inside.split_at(at + 1).1)
}

fn declares(item: &str) -> bool {
    let visible = item.strip_prefix("pub").unwrap_or(item).trim_start();
    let bare = match visible.strip_prefix('(').and_then(|inside| inside.split_once(')')) {
        Some((_, after)) => after.trim_start(),
        None => visible,
    };
    match bare.split(|c| !rust_code::in_name(c)).next() {
        Some("use") => true,
        Some("mod") => matches!(rust_code::end(bare, 0), Some(End::Semicolon(_))),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::violations;
    use crate::tidy::rules::spoken;

    #[test]
    fn declarations_and_re_exports_are_what_it_is_for() {
        let text = "//! Why.\n\n#![expect(a[0], reason = \"; fn\")]\nmod a;\n/// B; of course.\n#[cfg(test)]\npub mod b;\n\
                    pub(crate) mod c;\npub(in crate::x) use c::C;\nuse d::{\n    e,\n    f,\n};\npub use g::*;\n";
        assert_eq!(spoken(violations, [("src/mod.rs", text)]), [""; 0]);
    }

    #[test]
    fn code_is_found_where_it_begins() {
        let text = "//! Why.\n\nmod a;\n\n/// Does b.\n#[must_use]\npub fn b() {\n    c();\n}\n";
        assert_eq!(
            spoken(violations, [("src/mod.rs", text)]),
            ["src/mod.rs:7: `mod.rs` only declares and re-exports: move this to a file with a name"]
        );
    }

    #[test]
    fn a_module_written_out_a_constant_or_a_type_is_code() {
        for text in [
            "mod a {\n}\n",
            "mod a { use b; }",
            "const A: [u8; 1] = { [0] };",
            "pub const A: u8 = 1;",
            "pub struct A;",
            "useful!();",
        ] {
            assert_eq!(spoken(violations, [("src/mod.rs", text)]).len(), 1, "{text}");
        }
    }

    #[test]
    fn each_item_is_found_once() {
        let text = "fn a() {\n    b();\n    c();\n}\n\nuse d::{e};\nfn f() {}\n";
        let found = spoken(violations, [("mod.rs", text)]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("mod.rs:1:") && found[1].starts_with("mod.rs:7:"), "{found:?}");
    }

    #[test]
    fn a_file_with_a_name_may_hold_code() {
        assert_eq!(spoken(violations, [("src/model.rs", "pub fn b() {}")]), [""; 0]);
    }
}
