//! Why a policy was refused.

use core::fmt;

/// A setting that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// A value outside of what the setting accepts.
    OutOfRange {
        /// The setting, as written in a `retry_config`.
        field: &'static str,
        /// The value.
        value: String,
        /// What would be accepted.
        accepted: &'static str,
    },
    /// Two spellings of one setting with different values.
    Conflict {
        /// The setting, as written in a `retry_config`.
        field: &'static str,
        /// The value that came first.
        first: String,
        /// The value that came second.
        second: String,
    },
    /// A setting that has no meaning where it stands.
    Misplaced {
        /// The setting, as written in a `retry_config`.
        field: &'static str,
        /// Where it was found.
        place: &'static str,
    },
}

impl PolicyError {
    /// The setting that was refused.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::OutOfRange { field, .. } | Self::Conflict { field, .. } | Self::Misplaced { field, .. } => {
                field
            }
        }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { field, value, accepted } => {
                write!(f, "`{field}` is {value}; accepted is {accepted}")
            }
            Self::Conflict { field, first, second } => {
                write!(f, "`{field}` has two values, {first} and {second}")
            }
            Self::Misplaced { field, place } => write!(f, "`{field}` has no meaning in {place}"),
        }
    }
}

impl std::error::Error for PolicyError {}
