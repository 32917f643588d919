//! The records of the catalog's journal.

use undaunted_policy::Timestamp;

use crate::event::{RecordError, codec, read_versioned, versioned};
use crate::stored::stored;

stored! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CatalogRecord {
        pub at: Timestamp = 0 with "codec::time",
        pub event: CatalogEvent = 1,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum CatalogEvent {
        StepRegistered {
            id: String = 0,
            /// JSON.
            definition: String = 1,
        } = 0 => "step_registered",
        StepUpdated {
            id: String = 0,
            /// JSON.
            definition: String = 1,
        } = 1 => "step_updated",
        /// New flows cannot use the step any more. Flows that have it keep it.
        StepUnregistered { id: String = 0 } = 2 => "step_unregistered",
        /// The result of a health check differs from the previous one.
        StepHealthChanged {
            id: String = 0,
            healthy: bool = 1,
            error: Option<String> = 2,
        } = 3 => "step_health_changed",
        /// A flow was started, restored, or resumed after it had ended.
        FlowActivated {
            flow: String = 0,
            /// When it was submitted.
            since: Timestamp = 1 with "codec::time",
            /// If empty, a known flow keeps its labels.
            labels: Vec<(String, String)> = 2,
            /// The flow whose step started this one.
            parent: Option<String> = 3,
        } = 4 => "flow_activated",
        /// The flow has ended, and no attempt of it runs or waits.
        FlowDeactivated {
            flow: String = 0,
            status: FlowStatus = 1,
            error: Option<String> = 2,
            /// When it ended, which may be long before this was written.
            ended: Timestamp = 3 with "codec::time",
        } = 5 => "flow_deactivated",
        FlowArchiving { flow: String = 0 } = 6 => "flow_archiving",
        FlowArchived { flow: String = 0, file: String = 1 } = 7 => "flow_archived",
        FlowRemoved { flow: String = 0 } = 8 => "flow_removed",
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FlowStatus {
        Active = 0 => "active",
        Completed = 1 => "completed",
        Failed = 2 => "failed",
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
