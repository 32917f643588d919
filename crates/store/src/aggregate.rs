//! Names of aggregates. A family is a word of the caller's choice: the store knows neither jobs nor breakers.

use std::fmt;

/// Names the owner of a journal, such as a job or a breaker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AggregateId {
    family: String,
    id: String,
}

impl AggregateId {
    /// The aggregate `id` of a family, such as `job`. Neither may be empty or contain a NUL character.
    pub fn new(family: impl Into<String>, id: impl Into<String>) -> Result<Self, InvalidAggregateId> {
        let (family, id) = (family.into(), id.into());
        let names = |part: &str| !part.is_empty() && !part.contains('\0');
        if !names(&family) || !names(&id) {
            return Err(InvalidAggregateId { family, id });
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
#[error("`{family}` and `{id}` do not name an aggregate: one is empty or contains a NUL character")]
pub struct InvalidAggregateId {
    pub family: String,
    pub id: String,
}
