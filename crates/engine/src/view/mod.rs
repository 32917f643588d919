//! Views of jobs: plain data that text and JSON are rendered from.

mod answer;
mod attempt;
mod breaker;
mod budget;
mod catalog;
mod context;
mod counters;
mod dead;
mod entry;
mod event;
mod explanation;
mod flow;
mod flow_event;
mod flow_item;
mod flow_plan;
mod forecast;
pub mod history;
mod hold;
mod index;
mod item;
mod job;
mod line;
pub mod log;
mod projection;
mod report;
mod resumes;
mod rule;
mod settled;
mod shared;
mod signature;
mod status;
mod time;
mod timeline;

pub use answer::{
    ArchivedView, CancelRequestView, DroppedView, ErrorBody, ErrorView, ImportedView, PausedView,
    RedrivenView, RemovedView,
};
pub use attempt::{AttemptView, BalanceView, DecisionView, attempt};
pub use breaker::{
    BreakerChangeView, BreakerHistoryView, BreakerSettingsView, BreakerView, ProbeView, breaker_event,
};
pub use budget::{BudgetView, TopUpRequestView, TopUpView};
pub use catalog::{CatalogView, FlowDigest, FlowLine, FlowPage, StepHealthView};
pub use context::ViewContext;
pub use counters::{CompletionShare, DELAY_BOUNDS, DelayCounts, JobCounters};
pub use dead::{DeadLetterGroup, DeadLetterLine, DeadLetterView, group_dead_letters};
pub use entry::{
    ArrivedEntry, AttemptEntry, EntryView, HandlerSuccessEntry, HeldEntry, NextView, ReleasedEntry,
    StopEntry, StopsView,
};
pub use event::{EventView, event};
pub use explanation::{ItemStates, JobExplanation};
pub use flow::flow;
pub use flow_event::{FlowEventView, flow_event};
pub use flow_plan::{AttributeLinks, attribute_links, flow_plan, plan_preview};
pub use forecast::{Forecast, ForecastStop, forecast};
pub use hold::HoldView;
pub use index::{IndexKeys, ItemPage, RecordIndex};
pub use item::{InspectedItemView, ItemView, address, is_plain, quoted};
pub use job::{HeldView, JobView, StageView, StepView, WaitingView, waiting};
pub use line::JobLine;
pub use projection::{EndRecord, LateItem, Projection, ResumeRecord, StepFailure, StepHistory};
pub use report::{CompletionView, ItemCounts, JobReport, JobStatus, MissingItem, report};
pub use resumes::{RestoredView, ResumeView, ResumesView};
pub use rule::{rule_in_words, value_in_words};
pub use settled::SettledItemView;
pub use shared::{
    BestEffortView, JobBreakerView, LISTED, LateView, PoolView, SharedLimits, ToleranceView, all_held,
};
pub use signature::{signature, signature_id};
pub use status::{ItemStatus, LiveJobStatus};
pub use time::{DelayView, InstantView, MillisView, millis, rfc3339};
pub use timeline::{TimelineHold, TimelineView, worth_drawing};

pub use crate::dispatch::prober;
