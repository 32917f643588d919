//! How a variable and a literal `${` are written, by where they stand.
//!
//! | where | a variable | `$${` |
//! |---|---|---|
//! | bare | `"${v}"` | `'${'` |
//! | in double quotes | `${v}` | `\${` |
//! | in a here-document | `${v}` | `\${` |
//! | in single quotes | `'"${v}"'` | `${` |
//!
//! Whatever it stands in, the value is one piece of one word. A quoted here-document with a reference is
//! made an unquoted one, so the third line applies; without one the last line applies to its `$${`. The
//! last line applies to `$'…'` too; the text after the variable is opened as `'` or, if it has
//! backslashes, as `$'`. In a comment nothing is changed, and in backquotes a `$${` that would need a
//! backslash is refused.

use crate::workflow::template::cursor::Layer;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    Bare,
    Double,
    /// In a here-document that is expanded.
    Body,
    Single,
}

impl Spot {
    pub(super) fn variable(self, name: &str) -> String {
        match self {
            Self::Bare => format!("\"${{{name}}}\""),
            Self::Single => format!("'\"${{{name}}}\"'"),
            Self::Double | Self::Body => format!("${{{name}}}"),
        }
    }

    /// A `${` that reaches the command as these two characters.
    pub(super) fn literal(self) -> &'static str {
        match self {
            // Quoted to the last character, or bash would read `$${a,b}` as alternatives.
            Self::Bare => "'${'",
            Self::Single => "${",
            Self::Double | Self::Body => "\\${",
        }
    }

    pub(super) fn layer(self) -> Layer {
        match self {
            Self::Double => Layer::Double,
            Self::Body => Layer::Body,
            Self::Bare | Self::Single => Layer::Bare,
        }
    }
}
