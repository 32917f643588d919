//! What the journal says, held against what really happened.
//!
//! Pure: journal, record and what was done to the processes go in, broken promises come out. So its
//! own tests can show each of them being found.

mod attempts;
mod calls;
mod case;
mod history;
mod lateness;
mod limits;
mod results;
mod runs;
#[cfg(test)]
mod tests;

pub(crate) use case::{Call, Case, Deeds, compare};
