//! Recorded figures, and their comparison with new ones.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use crate::Failure;

/// The percentage by which a case may exceed its recorded figure. Counting is exact, but another
/// machine has other versions of what a program copies memory with.
const TOLERANCE: u64 = 5;

/// The instructions for one round, by the name of the case.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    instructions: BTreeMap<String, u64>,
}

pub(crate) struct FiguresComparison {
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

    /// Compares new figures with these recorded ones.
    pub(crate) fn compare(&self, now: &Self) -> FiguresComparison {
        let mut comparison = FiguresComparison { text: String::new(), is_worse: false };
        for (name, after) in &now.instructions {
            let before = self.instructions.get(name).copied();
            let verdict = match before {
                None => "not recorded",
                Some(before) if is_more(*after, before) => "MORE",
                Some(before) if is_more(before, *after) => "less; record it with `bless`",
                Some(_) => "unchanged",
            };
            comparison.is_worse |= matches!(verdict, "MORE" | "not recorded");
            let before = before.map_or_else(|| "-".to_owned(), |before| before.to_string());
            // Writing to memory cannot fail.
            let _ = writeln!(comparison.text, "{before:>8} {after:>8}  {name}: {verdict}");
        }
        for name in self.instructions.keys() {
            if !now.instructions.contains_key(name) {
                comparison.is_worse = true;
                let _ = writeln!(comparison.text, "{name}: recorded, but no longer counted");
            }
        }
        comparison
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
    fn written_figures_are_read_back() {
        let figures = figures(&[("a delay", 12), ("a verdict", 345)]);
        assert_eq!(Figures::parse(&figures.to_string()).unwrap(), figures);
        assert_eq!(Figures::parse("many a delay").unwrap_err(), "many a delay");
    }

    #[test]
    fn only_a_clear_increase_is_worse() {
        let before = figures(&[("a", 1000)]);
        for (after, worse) in [(1050, false), (1051, true), (900, false)] {
            let comparison = before.compare(&figures(&[("a", after)]));
            assert_eq!(comparison.is_worse, worse, "{after}: {}", comparison.text);
        }
    }

    #[test]
    fn a_case_on_one_side_only_is_worse() {
        let (one, two) = (figures(&[("a", 1)]), figures(&[("a", 1), ("b", 1)]));
        assert!(one.compare(&two).is_worse);
        assert!(two.compare(&one).is_worse);
    }
}
