//! What somebody asks of an aggregate's owner: to cancel, to pause.
//!
//! A request is stored when it is made, and goes with the append that acts upon it
//! ([`Append::taken`](crate::Append)): it is acted upon once, whoever crashes when.

use std::fmt;

/// Which request. Later ones have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Something asked of an aggregate's owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub id: RequestId,
    /// What is asked, in the caller's words.
    pub bytes: Vec<u8>,
}
