//! In the events of a job, what names a step, an item, a command or an attempt has the type of that, not
//! a number.
//!
//! Numbers can be swapped without anything noticing, and an event is stored for good.

use crate::tidy::rust_code::in_name;
use crate::tidy::text_file::{TextFile, line_of};
use crate::tidy::{Tree, Violation};

const NAMES: [&str; 5] = ["step", "item", "command", "attempt", "start"];

pub(crate) fn violations(tree: &Tree) -> Vec<Violation> {
    let files = tree.texts().iter();
    let files = files.filter(|file| file.is_rust() && !file.is_test());
    let files = files.filter(|file| file.path().starts_with("crates/engine/src/event/"));
    files.flat_map(in_file).collect()
}

fn in_file(file: &TextFile) -> Vec<Violation> {
    let code = file.code();
    let found = NAMES.iter().flat_map(|name| {
        let found = code.match_indices(name).map(|(at, _)| at);
        found.filter_map(move |at| {
            let before = code.get(..at)?.chars().next_back();
            if before.is_some_and(in_name) {
                return None;
            }
            let rest = code.get(at + name.len()..)?.trim_start().strip_prefix(':')?;
            let kind = rest.trim_start().trim_start_matches("Option<");
            let number = ["u32", "u64", "usize"].into_iter().find(|number| {
                let rest = kind.strip_prefix(number);
                rest.is_some_and(|rest| !rest.starts_with(in_name))
            })?;
            let what = format!("`{name}` is a `{number}`: give it the type of what it names");
            Some(file.violation(line_of(code, at), what))
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::violations;
    use crate::tidy::rules::spoken;

    fn said(text: &str) -> Vec<String> {
        spoken(violations, [("crates/engine/src/event/a.rs", text)])
    }

    #[test]
    fn a_number_that_names_something_has_its_type() {
        assert_eq!(
            said("struct A {\n    pub step: u32,\n}"),
            ["crates/engine/src/event/a.rs:2: `step` is a `u32`: give it the type of what it names"]
        );
        assert_eq!(said("fn a(item: Option<u64>) {}").len(), 1);
    }

    #[test]
    fn types_and_other_numbers_are_fine() {
        let text = "struct A { step: StepId, next_start: u64, items: u32, restart: u32 }\nstep::u32";
        assert_eq!(said(text), [""; 0]);
        let elsewhere = [("crates/engine/src/job/a.rs", "struct A { step: u32 }")];
        assert_eq!(spoken(violations, elsewhere), [""; 0]);
    }
}
