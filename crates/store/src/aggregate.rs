//! Whose journal it is. The store does not know what a job or a breaker is: a family is a word the
//! caller chose.

use std::fmt;

/// What a journal belongs to: a job, say, or a breaker shared by jobs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AggregateId {
    family: String,
    id: String,
}

impl AggregateId {
    /// The aggregate `id` of a family, such as `job` or `breaker`. Neither may be empty or contain a zero
    /// character.
    pub fn new(family: impl Into<String>, id: impl Into<String>) -> Result<Self, NotAnAggregate> {
        let (family, id) = (family.into(), id.into());
        let names = |part: &str| !part.is_empty() && !part.contains('\0');
        if !names(&family) || !names(&id) {
            return Err(NotAnAggregate { family, id });
        }
        Ok(Self { family, id })
    }

    pub fn family(&self) -> &str {
        &self.family
    }

    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Display for AggregateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.family, self.id)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{family}` and `{id}` do not name an aggregate: one is empty or has a zero character")]
pub struct NotAnAggregate {
    pub family: String,
    pub id: String,
}
