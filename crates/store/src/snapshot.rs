//! A state saved to shorten recovery.
//!
//! Everything a snapshot says the journal says too: one that is missing, damaged or from a journal
//! longer than ours costs time and nothing else.

use crate::version::Version;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The version of the last record it includes.
    pub at: Version,
    /// The state, in the caller's words.
    pub bytes: Vec<u8>,
}

/// What was found when the latest snapshot was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The latest that can be used.
    pub latest: Option<Snapshot>,
    /// Why later ones could not be, one sentence each. To be reported, not to be stopped by.
    pub ignored: Vec<String>,
}
