//! Taking secrets out of output that is shown piece by piece.
//!
//! A secret may span two pieces, or be cut by a gap where output was dropped. So a possible beginning of
//! one is pending back until the next piece decides, and what a gap has cut is taken out too.

use crate::secrets::Secrets;

const STARS: &[u8] = b"***";

#[derive(Clone, Debug)]
pub struct Redaction {
    /// The longest first, so that a secret that contains another is replaced as a whole.
    secrets: Vec<Vec<u8>>,
    pending: Vec<u8>,
    /// The next byte follows a gap.
    after_gap: bool,
}

impl Redaction {
    pub fn of(secrets: &Secrets) -> Self {
        let values = secrets.values().iter();
        let values = values.map(|(_, value)| value.as_bytes().to_vec());
        let mut secrets: Vec<_> = values.filter(|value| !value.is_empty()).collect();
        secrets.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self { secrets, pending: Vec::new(), after_gap: false }
    }

    /// Takes a piece, and returns what may be shown now.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.pending.extend_from_slice(piece);
        self.give(RedactionBoundary::More)
    }

    pub fn finish(&mut self) -> Vec<u8> {
        self.give(RedactionBoundary::End)
    }

    /// Output was dropped here: returns what is before it, without the beginning of a secret.
    pub fn gap(&mut self) -> Vec<u8> {
        let given = self.give(RedactionBoundary::Gap);
        self.after_gap = true;
        given
    }

    fn give(&mut self, boundary: RedactionBoundary) -> Vec<u8> {
        let text = std::mem::take(&mut self.pending);
        let mut given = Vec::with_capacity(text.len());
        let mut rest = text.as_slice();
        if self.after_gap && !rest.is_empty() {
            self.after_gap = false;
            let cut = self.secrets.iter().map(|secret| overlap(secret, rest));
            let cut = cut.max().unwrap_or_default();
            if cut > 0 {
                given.extend_from_slice(STARS);
                rest = rest.get(cut..).unwrap_or_default();
            }
        }
        while let Some((first, behind)) = rest.split_first() {
            let begins = |secret: &&Vec<u8>| secret.len() > rest.len() && secret.starts_with(rest);
            if boundary == RedactionBoundary::More && self.secrets.iter().any(|secret| begins(&secret)) {
                self.pending = rest.to_vec();
                return given;
            }
            if let Some(secret) = self.secrets.iter().find(|it| rest.starts_with(it)) {
                given.extend_from_slice(STARS);
                rest = rest.get(secret.len()..).unwrap_or_default();
            } else if boundary == RedactionBoundary::Gap && self.secrets.iter().any(|secret| begins(&secret))
            {
                given.extend_from_slice(STARS);
                return given;
            } else {
                given.push(*first);
                rest = behind;
            }
        }
        given
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RedactionBoundary {
    More,
    Gap,
    End,
}

/// The length of the longest end of `text` that `other` begins with, without being all of `other`.
fn overlap(text: &[u8], other: &[u8]) -> usize {
    let most = text.len().min(other.len().saturating_sub(1));
    let fits = |length: &usize| {
        let end = text.get(text.len().saturating_sub(*length)..);
        end.is_some_and(|end| other.starts_with(end))
    };
    (1..=most).rev().find(fits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redaction(values: &[&str]) -> Redaction {
        let values = values.iter().map(|value| ("S".to_owned(), (*value).to_owned()));
        Redaction::of(&Secrets::from_values(values.collect()))
    }

    fn shown(mut redaction: Redaction, pieces: &[&str]) -> String {
        let mut all = Vec::new();
        for piece in pieces {
            all.extend(redaction.push(piece.as_bytes()));
        }
        all.extend(redaction.finish());
        String::from_utf8(all).unwrap_or_default()
    }

    #[test]
    fn a_secret_across_pieces_is_taken_out_and_what_only_began_as_one_is_not() {
        let text = shown(redaction(&["hunter2"]), &["a hun", "ter", "2 b hunt", " c hu"]);
        assert_eq!(text, "a *** b hunt c hu");
    }

    #[test]
    fn nothing_is_held_back_that_cannot_be_a_secret() {
        let mut redaction = redaction(&["hunter2"]);
        assert_eq!(redaction.push(b"line\n"), b"line\n");
        assert_eq!(redaction.push(b"line hun"), b"line ");
    }

    #[test]
    fn a_secret_that_holds_or_meets_another_goes_as_a_whole() {
        let text = shown(redaction(&["abc", "xabcx"]), &["xa", "bcx abc"]);
        assert_eq!(text, "*** ***");
        let text = shown(redaction(&["abc", "cde"]), &["ab", "c", "d abc"]);
        assert_eq!(text, "***d ***");
        let text = shown(redaction(&["abc", "abcd"]), &["abc", "d abc"]);
        assert_eq!(text, "*** ***");
    }

    #[test]
    fn a_secret_that_a_gap_cut_is_taken_out_on_both_sides() {
        let mut redaction = redaction(&["hunter2"]);
        let mut all = redaction.push(b"pass hunt");
        all.extend(redaction.gap());
        all.extend(redaction.push(b"er2 end"));
        all.extend(redaction.finish());
        assert_eq!(String::from_utf8_lossy(&all), "pass ****** end");
    }
}
