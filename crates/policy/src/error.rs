//! Why a policy is refused.

use core::fmt;

/// An invalid setting.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// A value that the setting does not accept.
    OutOfRange {
        /// The setting, as written in a `retry_config`.
        field: &'static str,
        /// The refused value.
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
    /// A setting that is not allowed where it was found.
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
                write!(f, "`{field}` is {value}; it must be {accepted}")
            }
            Self::Conflict { field, first, second } => {
                write!(f, "`{field}` has two values, {first} and {second}")
            }
            Self::Misplaced { field, place } => write!(f, "`{field}` is not allowed in {place}"),
        }
    }
}

impl std::error::Error for PolicyError {}
