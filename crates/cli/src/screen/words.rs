//! Small things that everything shown has in common.

use std::env;
use std::io::IsTerminal;

/// A number and what it counts: `1 error`, `2 errors`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Whether colours would be seen and are wanted.
pub(crate) fn is_colourful(out: &impl IsTerminal) -> bool {
    out.is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The last line of a text, with everything written out that a terminal would obey.
pub(crate) fn one_line(text: &str) -> String {
    plain(text.trim_end().lines().next_back().unwrap_or_default())
}

/// `retry 2 of 3 (attempt 3 of 4)`: whoever sees one number sees the other.
pub(crate) fn retry_of(retry: u32, allowed: Option<u32>) -> String {
    let attempt = u64::from(retry).saturating_add(1);
    match allowed {
        Some(bound) => {
            let executions = u64::from(bound).saturating_add(1);
            format!("retry {retry} of {bound} (attempt {attempt} of {executions})")
        }
        None => format!("retry {retry} (attempt {attempt})"),
    }
}

/// A text on one line, with everything written out that a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => plain.push(' '),
            // These turn the direction of writing around, for the rest of the line too.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                plain.extend(character.escape_unicode());
            }
            control if control.is_control() => plain.extend(control.escape_debug()),
            other => plain.push(other),
        }
    }
    plain
}

/// A text as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "-_./:@%+=,".contains(sign);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}
