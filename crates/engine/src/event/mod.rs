//! The events of a journal, and how they are stored.

mod attempt;
mod breaker;
pub mod codec;
mod completion;
mod fact;
mod flow;
mod imported;
mod item;
mod job;
mod record;
mod step;
mod text;
mod workflow_text;

pub use attempt::{
    AttemptFailed, AttemptId, AttemptStarted, AttemptSucceeded, CommandStopped, RetryArithmetic,
    RetryScheduled, SpooledPart,
};
pub use breaker::{BreakerEvent, BreakerOpened, BreakerPass, StartHeld, StartReleased};
pub use completion::{CompletionReached, CompletionWhy, LateResult};
pub use fact::Event;
pub use flow::{FlowRun, ParentItem};
pub use imported::ImportedCommand;
pub use item::ItemEvent;
pub use job::{
    CompletionDefaults, EndCounts, JobEnded, JobEvent, JobResumed, JobSubmitted, NewItem, OutputPassing,
    PolicyChange, RestoredWork,
};
pub use record::{FORMAT, Record, RecordError, items_of};
pub use step::StepEvent;
pub use text::StoredText;
pub use workflow_text::WorkflowText;

pub(crate) use codec::cause::parts as cause_parts;
pub(crate) use codec::class::word as class_word;
pub(crate) use record::{read_versioned, read_versioned_as, versioned, versioned_as};
