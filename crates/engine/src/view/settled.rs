//! A settled item of `map` as JSON, with what its command printed.

use serde::Serialize;
use serde_json::Value;
use undaunted_policy::Reason;

use super::status::ItemStatus;
use crate::id::ItemId;
use crate::item_bytes::item_value;
use crate::job::Job;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettledItemView {
    pub item: String,
    pub index: u32,
    pub input: Value,
    pub status: ItemStatus,
    pub reason: Option<Reason>,
    /// What the last attempt wrote to standard output; output that is not text is `{"base64": …}`.
    pub output: Value,
    pub stderr: Value,
}

impl SettledItemView {
    pub fn of(job: &Job, item: ItemId, [stdout, stderr]: [Vec<u8>; 2]) -> Self {
        let status = ItemStatus::of(job, item);
        Self {
            item: job.identity(item).to_owned(),
            index: item.index,
            input: serde_json::from_str(job.value(item)).unwrap_or_default(),
            status,
            reason: status.reason(),
            output: item_value(stdout),
            stderr: item_value(stderr),
        }
    }
}
