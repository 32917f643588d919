//! Marks of unfinished work, which belong in an issue and not in the tree.
//!
//! In Rust the macros count only as code: a page or a message may speak of them. The marks
//! count everywhere, comments above all. Clippy knows the macros too, but not scripts.

use crate::tidy::rust_code::in_name;
use crate::tidy::text_file::{Language, TextFile};
use crate::tidy::{Tree, Violation};

const MACROS: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];
// In two parts, so that this file does not carry the marks itself.
const MARKS: [&str; 2] = [concat!("FIX", "ME"), concat!("X", "XX")];

pub(crate) fn violations(tree: &Tree) -> Vec<Violation> {
    tree.texts().iter().flat_map(in_file).collect()
}

fn in_file(file: &TextFile) -> Vec<Violation> {
    let code = match file.language() {
        Language::Rust => file.code(),
        Language::JavaScript | Language::Shell => file.text(),
        Language::Markdown | Language::Other => return vec![],
    };
    let macros = found(code, &MACROS);
    let marks = found(file.text(), &MARKS);
    macros
        .chain(marks)
        .map(|(line, mark)| {
            file.violation(line, format!("`{mark}` marks unfinished work: finish it or open an issue"))
        })
        .collect()
}

fn found<'a>(text: &'a str, marks: &'a [&'a str]) -> impl Iterator<Item = (usize, &'a str)> {
    let lines = text.lines().zip(1..);
    lines.flat_map(move |(line, number)| {
        marks.iter().filter(move |mark| stands_alone(line, mark)).map(move |mark| (number, *mark))
    })
}

/// Whether the mark occurs as a word of its own: a template for `mktemp` is no mark.
fn stands_alone(line: &str, mark: &str) -> bool {
    line.match_indices(mark).any(|(at, _)| {
        let (before, rest) = line.split_at(at);
        let after = rest.strip_prefix(mark).unwrap_or_default();
        // A macro's `!` is followed by a bracket; `!=` compares a thing that has this name.
        !before.ends_with(in_name) && !after.starts_with(in_name) && !after.starts_with('=')
    })
}

#[cfg(test)]
mod tests {
    use super::violations;
    use crate::tidy::rules::spoken;

    #[test]
    fn a_macro_of_unfinished_work_is_found() {
        assert_eq!(
            spoken(violations, [("a.rs", "fn a() {\n    todo!()\n}")]),
            ["a.rs:2: `todo!` marks unfinished work: finish it or open an issue"]
        );
        for text in ["unimplemented!(\"a\")", "let a = dbg!(b);", "std::dbg!(b)"] {
            assert_eq!(spoken(violations, [("a.rs", text)]).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_mark_in_a_comment_is_found_in_every_language() {
        let fix = concat!("// FIX", "ME: later");
        let cross = concat!("# X", "XX later");
        assert_eq!(spoken(violations, [("a.rs", fix), ("b.js", fix), ("c.sh", cross)]).len(), 3);
        assert_eq!(spoken(violations, [("verify", &format!("#!/bin/sh\n{cross}"))]).len(), 1);
    }

    #[test]
    fn finished_work_is_left_alone() {
        let rust = "// No `todo!` is left.\nlet a = \"dbg!\";\nif todo != 1 { mastodo!() }\nif todo!=1 {}";
        assert_eq!(spoken(violations, [("a.rs", rust), ("b.sh", "mktemp -d run.XXXXXX")]), [""; 0]);
    }

    #[test]
    fn prose_may_speak_of_marks() {
        assert_eq!(spoken(violations, [("a.md", concat!("No FIX", "ME, no `todo!`."))]), [""; 0]);
    }
}
