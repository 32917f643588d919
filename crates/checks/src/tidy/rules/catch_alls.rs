//! A match over our own events, effects, inputs, messages, stages or kinds of work names every variant.
//!
//! The compiler then lists the places that a new one reaches; an arm that takes the rest would hide
//! them. Looks at patterns as they are written: a match is one of ours if an arm names an enum of the
//! product whose name is, or ends in, one of the words below.

use std::collections::BTreeSet;

use crate::tidy::rust_code::{definitions, in_name, matches};
use crate::tidy::text_file::{TextFile, line_of};
use crate::tidy::{Tree, Violation};

const WORDS: [&str; 11] =
    ["Action", "Ask", "Effect", "Event", "Fact", "Fate", "Input", "Message", "Post", "Report", "Stage"];

pub(crate) fn violations(tree: &Tree) -> Vec<Violation> {
    let files: Vec<_> = tree.texts().iter().filter(|file| file.is_product()).collect();
    let defined = files.iter().flat_map(|file| definitions(file.code()));
    let enums = defined.filter(|it| it.keyword == "enum").map(|it| it.name);
    let ours = enums.filter(|name| WORDS.iter().any(|word| name.ends_with(word)));
    let ours: BTreeSet<&str> = ours.collect();
    files.into_iter().flat_map(|file| in_file(file, &ours)).collect()
}

fn in_file(file: &TextFile, enums: &BTreeSet<&str>) -> Vec<Violation> {
    let code = file.code();
    let for_tests = file.code_for_tests();
    let found = matches(code).into_iter();
    let found = found.filter(|it| !for_tests.iter().any(|range| range.contains(&it.start)));
    let found = found.filter_map(|found| {
        let rest = found.arms.iter().find(|arm| arm.takes_all())?;
        let named = found.arms.iter().flat_map(|arm| named(arm.pattern));
        let named = named.map(|name| match name {
            "Self" => implemented(code, found.start),
            name => name,
        });
        let ours = named.into_iter().find(|name| enums.contains(name))?;
        let what = format!(
            "`{} =>` takes what is left of `{ours}`: name every variant, so that the compiler lists \
             this place for a new one",
            rest.pattern
        );
        Some(file.violation(line_of(code, rest.start), what))
    });
    found.collect()
}

/// The types whose variants a pattern names.
fn named(pattern: &str) -> impl Iterator<Item = &str> {
    let named = pattern.match_indices("::").filter_map(|(at, _)| pattern.get(..at));
    named.filter_map(|before| before.rsplit(|it| !in_name(it)).next())
}

/// The type whose `impl` a place stands in.
fn implemented(code: &str, at: usize) -> &str {
    let before = code.get(..at).unwrap_or_default();
    let head = before.rsplit("impl").next().unwrap_or_default();
    let head = head.split('{').next().unwrap_or_default();
    head.trim().rsplit(|it| !in_name(it)).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::violations;
    use crate::tidy::rules::spoken;

    /// The enums that the texts below match over.
    const ENUMS: &str = "enum Event {}\nenum JobEvent {}\nenum Effect {}\nenum Input {}\nenum Phase {}\n";

    fn said(text: &str) -> Vec<String> {
        spoken(violations, [("crates/engine/src/a.rs", text), ("crates/engine/src/b.rs", ENUMS)])
    }

    #[test]
    fn the_rest_of_an_enum_of_ours_is_not_taken_together() {
        let expected = "crates/engine/src/a.rs:3: `_ =>` takes what is left of `JobEvent`: name every variant, \
                        so that the compiler lists this place for a new one";
        let text = "match event {\n    Event::Job(JobEvent::Paused) => 1,\n    _ => 2,\n}";
        assert_eq!(said(&text.replace("Event::Job(JobEvent::Paused)", "JobEvent::Paused")), [expected]);
        assert_eq!(said(text).len(), 1);
        assert_eq!(said(&text.replace("_ =>", "other =>")).len(), 1);
        assert_eq!(said("impl Effect {\nfn f(self) { match self { Self::A => 1, _ => 2 } }\n}").len(), 1);
    }

    #[test]
    fn what_names_every_variant_is_fine_and_so_is_what_has_a_guard() {
        for text in [
            "match event { Event::Job(_) | Event::Step(_) => 1, Event::Item(_) => 2 }",
            "match input { Input::A { b: _ } => 1, Input::C if x => 2, _ if x => 3, Input::C => 4 }",
            "match a { SomeEvent::B => 1, _ => 2 }",
            "impl Phase { fn f(self) { match self { Self::A => 1, _ => 2 } } }",
        ] {
            assert_eq!(said(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn tests_and_checks_are_free() {
        let text = "match event { Event::Job(_) => 1, _ => 2 }";
        let inside = format!("#[cfg(test)]\nmod tests {{ fn a() {{ {text} }} }}");
        assert_eq!(said(&inside), [""; 0]);
        for path in ["crates/checks/src/a.rs", "crates/engine/tests/a.rs"] {
            let files = [(path, text), ("crates/engine/src/b.rs", ENUMS)];
            assert_eq!(spoken(violations, files), [""; 0]);
        }
    }
}
