//! Which known name somebody probably meant.
//!
//! A guess for a help text, never a decision: the name that was written is refused all the same.

/// Longer names are not compared: nobody mistypes them, and comparing takes quadratic time.
const LONGEST: usize = 64;

/// The candidate that differs least from the word, if it differs little.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let length = word.chars().count();
    if length > LONGEST {
        return None;
    }
    let most = length.div_ceil(3).min(3);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many characters must be inserted, deleted or replaced (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (line, a) in from.chars().enumerate() {
        let mut diagonal = line;
        let mut left = line.saturating_add(1);
        let mut cells = row.iter_mut();
        if let Some(first) = cells.next() {
            *first = left;
        }
        for (cell, b) in cells.zip(to.chars()) {
            let replaced = diagonal.saturating_add(usize::from(a != b));
            diagonal = *cell;
            left = replaced.min(diagonal.min(left).saturating_add(1));
            *cell = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_single_changes() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("item", "item", 0),
            ("itm", "item", 1),
            ("itme", "item", 2),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn only_a_near_name_is_offered() {
        let names = ["item", "map", "step", "workflow"];
        assert_eq!(nearest("itme", names), Some("item"));
        assert_eq!(nearest("mpa", names), None);
        assert_eq!(nearest("maps", names), Some("map"));
        assert_eq!(nearest("workfow", names), Some("workflow"));
        assert_eq!(nearest("quite-another", names), None);
        assert_eq!(nearest(&"item".repeat(100), names), None);
    }
}
