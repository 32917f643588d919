//! The events of a journal, and how they are stored.
//!
//! An event is a fact: stored once, never changed. Every form that was ever written is read by every later
//! release, which golden files in `tests/golden` check.

mod attempt;
mod breaker;
pub mod codec;
mod completion;
mod fact;
mod item;
mod job;
mod record;
mod step;
mod submitted;
mod text;
mod time_limit;

pub use attempt::{
    AttemptFailed, AttemptId, AttemptStarted, AttemptSucceeded, CommandStopped, ReservationWithdrawn,
    ResultArrived, RetryArithmetic, RetryScheduled, SpooledPart, StartReserved,
};
pub use breaker::{BreakerEvent, BreakerOpened, BreakerPass, StartHeld, StartReleased};
pub use completion::{CompletionReached, CompletionWhy, LateResult};
pub use fact::Event;
pub use item::ItemEvent;
pub use job::{
    EndCounts, ImportedAttempt, ImportedCommand, ImportedCorrelation, ImportedExecution, JobEnded, JobEvent,
    JobResumed, NewItem, PassedDeadline, PolicyChange, PoolChange, ResumedWork,
};
pub use record::{FORMAT, Record, RecordError, items_of};
pub use step::StepEvent;
pub use submitted::{CompletionDefaults, FlowRun, JobSubmitted, OutputPassing, ParentItem};
pub use text::{StoredText, WorkflowText};
pub use time_limit::{TimeLimit, TimeLimitKind};

pub(crate) use codec::{cause_parts, class_word};
pub(crate) use record::{read_versioned, read_versioned_as, versioned, versioned_as};
