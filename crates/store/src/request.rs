//! Requests to the owner of an aggregate, such as to cancel or to pause.
//!
//! A request is stored when it is made and deleted by the append that acts upon it
//! ([`Append::taken`](crate::Append)), so it is acted upon exactly once, whichever process crashes.

use std::fmt;

/// Later requests have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRequest {
    pub id: RequestId,
    /// In the caller's encoding.
    pub bytes: Vec<u8>,
}
