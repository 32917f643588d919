//! A match over our own events, effects, inputs or messages names every one of them.
//!
//! The compiler then lists the places that a new one reaches; an arm that takes the rest would hide
//! them. Looks at patterns as they are written: a match is one of ours if an arm names one of the
//! enums below.

use crate::tidy::rust_code::{in_name, matches};
use crate::tidy::text_file::{TextFile, line_of};
use crate::tidy::{Tree, Violation};

const ENUMS: [&str; 13] = [
    "BreakerEvent",
    "CatalogEvent",
    "Effect",
    "Event",
    "Fact",
    "Input",
    "ItemEvent",
    "JobEvent",
    "JobMessage",
    "KeeperEvent",
    "Message",
    "News",
    "StepEvent",
];

pub(crate) fn violations(tree: &Tree) -> Vec<Violation> {
    let files = tree.texts().iter().filter(|file| file.is_product());
    files.flat_map(in_file).collect()
}

fn in_file(file: &TextFile) -> Vec<Violation> {
    let code = file.code();
    let for_tests = file.code_for_tests();
    let found = matches(code).into_iter();
    let found = found.filter(|it| !for_tests.iter().any(|range| range.contains(&it.start)));
    let found = found.filter_map(|found| {
        let rest = found.arms.iter().find(|arm| arm.takes_all())?;
        let enums = found.arms.iter();
        let ours = enums.flat_map(|arm| ours(arm.pattern)).next();
        let ours = ours.or_else(|| {
            let own = found.arms.iter().any(|arm| arm.pattern.contains("Self::"));
            own.then(|| implemented(code, found.start)).flatten()
        })?;
        let what = format!(
            "`{} =>` takes what is left of `{ours}`: name every variant, so that the compiler lists \
             this place for a new one",
            rest.pattern
        );
        Some(file.violation(line_of(code, rest.start), what))
    });
    found.collect()
}

/// The enums of the list that a pattern names.
fn ours(pattern: &str) -> impl Iterator<Item = &'static str> {
    let named = pattern.match_indices("::").filter_map(|(at, _)| {
        let before = pattern.get(..at)?;
        before.rsplit(|it| !in_name(it)).next()
    });
    let named: Vec<&str> = named.collect();
    ENUMS.into_iter().filter(move |it| named.contains(it))
}

/// The enum of the list whose `impl` a place stands in.
fn implemented(code: &str, at: usize) -> Option<&'static str> {
    let before = code.get(..at)?;
    let head = before.get(before.rfind("impl")?..)?.split('{').next()?;
    let name = head.trim().rsplit(|it| !in_name(it)).next()?;
    ENUMS.into_iter().find(|it| *it == name)
}

#[cfg(test)]
mod tests {
    use super::violations;
    use crate::tidy::rules::spoken;

    fn said(text: &str) -> Vec<String> {
        spoken(violations, [("crates/engine/src/a.rs", text)])
    }

    #[test]
    fn the_rest_of_an_enum_of_ours_is_not_taken_together() {
        let expected = "crates/engine/src/a.rs:3: `_ =>` takes what is left of `JobEvent`: name every variant, \
                        so that the compiler lists this place for a new one";
        let text = "match event {\n    Event::Job(JobEvent::Paused) => 1,\n    _ => 2,\n}";
        assert_eq!(
            said(&text.replace("Event::Job(JobEvent::Paused)", "JobEvent::Paused")),
            [expected]
        );
        assert_eq!(said(text).len(), 1);
        assert_eq!(said(&text.replace("_ =>", "other =>")).len(), 1);
        assert_eq!(
            said("impl Effect {\nfn f(self) { match self { Self::A => 1, _ => 2 } }\n}").len(),
            1
        );
    }

    #[test]
    fn what_names_every_variant_is_fine_and_so_is_what_has_a_guard() {
        for text in [
            "match event { Event::Job(_) | Event::Step(_) => 1, Event::Item(_) => 2 }",
            "match input { Input::A { b: _ } => 1, Input::C if x => 2, _ if x => 3, Input::C => 4 }",
            "match a { SomeEvent::B => 1, _ => 2 }",
            "impl Stage { fn f(self) { match self { Self::A => 1, _ => 2 } } }",
        ] {
            assert_eq!(said(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn tests_and_checks_are_free() {
        let text = "match event { Event::Job(_) => 1, _ => 2 }";
        let inside = format!("#[cfg(test)]\nmod tests {{ fn a() {{ {text} }} }}");
        assert_eq!(said(&inside), [""; 0]);
        assert_eq!(
            spoken(violations, [("crates/checks/src/a.rs", text)]),
            [""; 0]
        );
        assert_eq!(
            spoken(violations, [("crates/engine/tests/a.rs", text)]),
            [""; 0]
        );
    }
}
