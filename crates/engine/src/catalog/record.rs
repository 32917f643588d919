//! The records of the catalog's journal.
//!
//! Numbers of variants and fields are part of the stored format: they are added, never reused.

use minicbor::{Decode, Encode};
use undaunted_policy::Timestamp;

use crate::event::{RecordError, codec, read_versioned, versioned};

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CatalogRecord {
    #[cbor(n(0), with = "codec::time")]
    pub at: Timestamp,
    #[n(1)]
    pub event: CatalogEvent,
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum CatalogEvent {
    #[n(0)]
    StepRegistered {
        #[n(0)]
        id: String,
        /// JSON.
        #[n(1)]
        definition: String,
    },
    #[n(1)]
    StepUpdated {
        #[n(0)]
        id: String,
        /// JSON.
        #[n(1)]
        definition: String,
    },
    /// New flows cannot use the step any more. Flows that have it keep it.
    #[n(2)]
    StepUnregistered {
        #[n(0)]
        id: String,
    },
    /// The result of a health check differs from the previous one.
    #[n(3)]
    StepHealthChanged {
        #[n(0)]
        id: String,
        #[n(1)]
        healthy: bool,
        #[n(2)]
        error: Option<String>,
    },
    /// A flow was started, restored, or resumed after it had ended.
    #[n(4)]
    FlowActivated {
        #[n(0)]
        flow: String,
        /// When it was submitted.
        #[cbor(n(1), with = "codec::time")]
        since: Timestamp,
        /// If empty, a known flow keeps its labels.
        #[n(2)]
        labels: Vec<(String, String)>,
        /// The flow whose step started this one.
        #[n(3)]
        parent: Option<String>,
    },
    /// The flow has ended, and no attempt of it runs or waits.
    #[n(5)]
    FlowDeactivated {
        #[n(0)]
        flow: String,
        #[n(1)]
        status: FlowStatus,
        #[n(2)]
        error: Option<String>,
        /// When it ended, which may be long before this was written.
        #[cbor(n(3), with = "codec::time")]
        ended: Timestamp,
    },
    #[n(6)]
    FlowArchiving {
        #[n(0)]
        flow: String,
    },
    #[n(7)]
    FlowArchived {
        #[n(0)]
        flow: String,
        #[n(1)]
        file: String,
    },
    #[n(8)]
    FlowRemoved {
        #[n(0)]
        flow: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum FlowStatus {
    #[n(0)]
    Active,
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
    pub fn encode(&self) -> Vec<u8> {
        versioned(self)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        read_versioned(bytes)
    }
}
