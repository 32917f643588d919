//! The signature of an error: its text without the parts that differ from item to item.
//!
//! Failures of the same kind differ in numbers, ids, paths and URLs; without these their texts are equal.

use crate::fnv::Fnv1a;

/// Names a signature in a command or a URL: 16 hexadecimal digits that depend only on its text.
pub fn signature_id(signature: &str) -> String {
    format!("{:016x}", Fnv1a::of(signature.bytes()))
}

/// The last line, with numbers, ids and paths folded.
pub fn signature(error: &str) -> String {
    let line = error.lines().rfind(|line| !line.trim().is_empty());
    let line = line.unwrap_or_default().trim();
    let mut folded = String::new();
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        if !folded.is_empty() {
            folded.push(' ');
        }
        fold_word(word, &mut folded);
    }
    folded
}

/// Punctuation around the word stays.
fn fold_word(word: &str, to: &mut String) {
    let inner = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '~');
    let Some(at) = word.find(inner).filter(|_| !inner.is_empty()) else {
        to.push_str(word);
        return;
    };
    let (before, rest) = word.split_at(at);
    let (_, after) = rest.split_at(inner.len());
    to.push_str(before);
    if inner.contains("://") {
        to.push_str("URL");
    } else if is_path(inner) {
        to.push_str("PATH");
    } else {
        fold_parts(inner, to);
    }
    to.push_str(after);
}

fn is_path(word: &str) -> bool {
    let rooted = word.starts_with('/') || word.starts_with("~/");
    rooted || (word.matches('/').count() >= 2)
}

/// `item-17:` becomes `item-N:`.
fn fold_parts(word: &str, to: &mut String) {
    if is_id(word) {
        to.push_str("ID");
        return;
    }
    let is_part = |c: char| c.is_ascii_alphanumeric();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let part = rest.find(|c| is_part(c) != is_part(first));
        let (part, behind) = rest.split_at(part.unwrap_or(rest.len()));
        if is_part(first) && is_id(part) {
            to.push_str("ID");
        } else {
            fold_digits(part, to);
        }
        rest = behind;
    }
}

fn fold_digits(part: &str, to: &mut String) {
    let mut in_number = false;
    for c in part.chars() {
        if c.is_ascii_digit() {
            if !in_number {
                to.push('N');
            }
            in_number = true;
        } else {
            to.push(c);
            in_number = false;
        }
    }
}

/// Eight or more hexadecimal digits, hyphens among them allowed, not only letters or only digits.
fn is_id(word: &str) -> bool {
    let digits = word.chars().filter(char::is_ascii_hexdigit).count();
    let hyphens = word.chars().filter(|c| *c == '-').count();
    let all = word.chars().count() == digits.saturating_add(hyphens);
    let mixed = word.chars().any(|c| c.is_ascii_digit()) && word.chars().any(|c| c.is_ascii_alphabetic());
    all && mixed && digits >= 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_signature_never_changes() {
        assert_eq!(signature_id(""), "cbf29ce484222325");
        assert_eq!(signature_id("host nN at PATH: refused"), "22c70a75cdfcd6ad");
    }

    #[test]
    fn numbers_ids_paths_and_urls_are_folded() {
        for (error, folded) in [
            ("", ""),
            ("exit status 7: boom", "exit status N: boom"),
            ("item-17: no answer", "item-N: no answer"),
            ("cannot open '/data/a/17.csv': No such file", "cannot open 'PATH': No such file"),
            ("curl: (22) https://example.org/a?b=1 returned 503", "curl: (N) URL returned N"),
            ("job 3f9a0c12be of 123e4567-e89b-12d3-a456-426614174000 failed", "job ID of ID failed"),
            ("two lines\nthe last   one 5", "the last one N"),
            ("deadbeef face", "deadbeef face"),
            ("v1.2.3 at 12:30:59", "vN.N.N at N:N:N"),
        ] {
            assert_eq!(signature(error), folded, "{error}");
        }
    }
}
