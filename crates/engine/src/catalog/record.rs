//! The records of the catalog's journal.
//!
//! Numbers of variants and fields are part of the stored format: they are added, never used again.

use minicbor::{Decode, Encode};
use undaunted_policy::Timestamp;

use crate::event::{RecordError, codec, read_versioned, versioned};

/// Something that has changed the catalog.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CatalogRecord {
    #[n(0)]
    #[cbor(with = "codec::time")]
    pub at: Timestamp,
    #[n(1)]
    pub event: CatalogEvent,
}

/// What changes the catalog.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum CatalogEvent {
    /// Somebody says how a step is called, for the first time.
    #[n(0)]
    StepRegistered {
        #[n(0)]
        id: String,
        /// Its definition, as JSON.
        #[n(1)]
        definition: String,
    },
    /// A step that is there is called in another way from now on.
    #[n(1)]
    StepUpdated {
        #[n(0)]
        id: String,
        /// Its definition, as JSON.
        #[n(1)]
        definition: String,
    },
    /// A step can be planned no more. Flows that have it keep it.
    #[n(2)]
    StepUnregistered {
        #[n(0)]
        id: String,
    },
    /// A step was looked at, and is not as it was before.
    #[n(3)]
    StepHealthChanged {
        #[n(0)]
        id: String,
        /// Whether it is there.
        #[n(1)]
        healthy: bool,
        /// What was wrong, if something was.
        #[n(2)]
        error: Option<String>,
    },
    /// A flow is under way: it was started, restored, or goes on after it had ended.
    #[n(4)]
    FlowActivated {
        #[n(0)]
        flow: String,
        /// When it was submitted.
        #[n(1)]
        #[cbor(with = "codec::time")]
        since: Timestamp,
        /// By what it is found. Of a flow that is known, none means those it has.
        #[n(2)]
        labels: Vec<(String, String)>,
        /// The flow whose step it is, if it is one's.
        #[n(3)]
        parent: Option<String>,
    },
    /// A flow has ended, and nothing of it runs or waits.
    #[n(5)]
    FlowDeactivated {
        #[n(0)]
        flow: String,
        #[n(1)]
        status: FlowStatus,
        /// Why, if it failed.
        #[n(2)]
        error: Option<String>,
        /// When it ended, which may be long before this was written.
        #[n(3)]
        #[cbor(with = "codec::time")]
        ended: Timestamp,
    },
    /// A flow that has ended is being moved to a file.
    #[n(6)]
    FlowArchiving {
        #[n(0)]
        flow: String,
    },
    /// A flow is in a file, and no longer here.
    #[n(7)]
    FlowArchived {
        #[n(0)]
        flow: String,
        #[n(1)]
        file: String,
    },
    /// A flow is no longer in the store.
    #[n(8)]
    FlowRemoved {
        #[n(0)]
        flow: String,
    },
}

/// How a flow stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum FlowStatus {
    /// It has not ended.
    #[n(0)]
    Active,
    /// Its goals were reached.
    #[n(1)]
    Completed,
    #[n(2)]
    Failed,
}

impl FlowStatus {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

impl CatalogEvent {
    pub const fn word(&self) -> &'static str {
        match self {
            Self::StepRegistered { .. } => "step_registered",
            Self::StepUpdated { .. } => "step_updated",
            Self::StepUnregistered { .. } => "step_unregistered",
            Self::StepHealthChanged { .. } => "step_health_changed",
            Self::FlowActivated { .. } => "flow_activated",
            Self::FlowDeactivated { .. } => "flow_deactivated",
            Self::FlowArchiving { .. } => "flow_archiving",
            Self::FlowArchived { .. } => "flow_archived",
            Self::FlowRemoved { .. } => "flow_removed",
        }
    }
}

impl CatalogRecord {
    /// The record as bytes.
    pub fn encode(&self) -> Vec<u8> {
        versioned(self)
    }

    /// The record these bytes are.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        read_versioned(bytes)
    }
}
