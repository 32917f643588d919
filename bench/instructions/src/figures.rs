//! Figures on record, and how those of today differ.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use crate::Failure;

/// By how many hundredths a case may cost more before that is an error. Counting is exact, but another
/// machine has other versions of what a program copies memory with.
const TOLERANCE: u64 = 5;

/// Instructions for one round, by what is done in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    instructions: BTreeMap<String, u64>,
}

/// What is to be said about a comparison.
pub(crate) struct Told {
    pub(crate) text: String,
    pub(crate) is_worse: bool,
}

impl Figures {
    pub(crate) fn add(&mut self, name: &str, instructions: u64) {
        self.instructions.insert(name.to_owned(), instructions);
    }

    pub(crate) fn read(path: &str) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        Self::parse(&text).map_err(|line| format!("{path}: `{line}` is no figure").into())
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut figures = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let read = line.split_once(' ');
            let read = read.and_then(|(number, name)| Some((number.parse().ok()?, name)));
            let (number, name) = read.ok_or_else(|| line.to_owned())?;
            figures.add(name, number);
        }
        Ok(figures)
    }

    /// How the figures of today differ from these.
    pub(crate) fn compare(&self, now: &Self) -> Told {
        let mut told = Told { text: String::new(), is_worse: false };
        for (name, after) in &now.instructions {
            let before = self.instructions.get(name).copied();
            let verdict = match before {
                None => "not on record",
                Some(before) if is_more(*after, before) => "MORE",
                Some(before) if is_more(before, *after) => "less: worth writing down",
                Some(_) => "the same",
            };
            told.is_worse |= matches!(verdict, "MORE" | "not on record");
            let before = before.map_or_else(|| "-".to_owned(), |before| before.to_string());
            // Writing to memory cannot fail.
            let _ = writeln!(told.text, "{before:>8} {after:>8}  {name}: {verdict}");
        }
        for name in self.instructions.keys() {
            if !now.instructions.contains_key(name) {
                told.is_worse = true;
                let _ = writeln!(told.text, "{name}: on record, and counted no more");
            }
        }
        told
    }
}

fn is_more(after: u64, before: u64) -> bool {
    let allowed = before.saturating_mul(TOLERANCE.saturating_add(100)) / 100;
    after > allowed
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# Instructions for one round of each, counted by valgrind; written by `bless`.")?;
        for (name, instructions) in &self.instructions {
            writeln!(f, "{instructions} {name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(of: &[(&str, u64)]) -> Figures {
        let mut figures = Figures::default();
        for (name, instructions) in of {
            figures.add(name, *instructions);
        }
        figures
    }

    #[test]
    fn what_is_written_is_read_again() {
        let figures = figures(&[("a delay", 12), ("a verdict", 345)]);
        assert_eq!(Figures::parse(&figures.to_string()).unwrap(), figures);
        assert_eq!(Figures::parse("many a delay").unwrap_err(), "many a delay");
    }

    #[test]
    fn only_what_is_clearly_more_is_worse() {
        let before = figures(&[("a", 1000)]);
        for (after, worse) in [(1050, false), (1051, true), (900, false)] {
            let told = before.compare(&figures(&[("a", after)]));
            assert_eq!(told.is_worse, worse, "{after}: {}", told.text);
        }
    }

    #[test]
    fn a_case_on_one_side_only_is_told() {
        let (one, two) = (figures(&[("a", 1)]), figures(&[("a", 1), ("b", 1)]));
        assert!(one.compare(&two).is_worse);
        assert!(two.compare(&one).is_worse);
    }
}
