//! What is shown of a job: plain data for machines and for whoever puts it into words.

mod event;
pub mod history;
mod report;

pub use event::{EventView, event, rfc3339};
pub use report::{Missing, Report, Status, report};
