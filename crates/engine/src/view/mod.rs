//! Views of a job: plain data for JSON and for output to people.

mod attempt;
mod breaker;
mod counters;
mod event;
mod flow;
mod flow_event;
mod flow_item;
mod flow_plan;
mod forecast;
pub mod history;
mod index;
pub mod log;
mod projection;
mod report;
mod saved_projection;
mod shared;
mod signature;
mod standing;

pub use attempt::{AttemptView, SumView, attempt};
pub use breaker::breaker_event;
pub use counters::{CompletionShare, Counters, DELAY_BOUNDS, DelayCounts};
pub use event::{EventView, event, rfc3339};
pub use flow::{FlowView, flow};
pub use flow_event::{FlowEventView, flow_event};
pub use flow_plan::{AttributeLinks, PlanView, attribute_links, flow_plan, plan_preview};
pub use forecast::{Forecast, forecast};
pub use index::{Keys, Page, RecordIndex};
pub use projection::{JobEnd, LateItem, Projection, Resume, StepFailure, StepPast};
pub use report::{ItemCounts, Missing, Report, Status, report};
pub use shared::{
    BestEffort, BestEffortView, Holding, Tolerated, all_held, best_effort, best_effort_names,
    holding, tolerated,
};
pub use signature::signature;
pub use standing::{ItemStanding, JobStanding};

pub use crate::gate::prober;
