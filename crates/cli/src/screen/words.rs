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
