//! What has happened: the facts of a journal, and how they are written.

mod attempt;
mod breaker;
pub(crate) mod codec;
mod completion;
mod fact;
mod flow;
mod imported;
mod job;
mod record;
mod text;

pub use attempt::{Failed, Kept, Retrying, Started, Stopped, Subject, Succeeded, Sum};
pub use breaker::{Held, Opened, Pass, Released};
pub use completion::{Late, Reached, Why};
pub use fact::Event;
pub use flow::{FlowRun, Parent};
pub use imported::ImportedCommand;
pub use job::{
    CompletionDefaults, Counts, Ended, NewItem, Passing, PolicyChange, Restored, Resumed,
    Submitted, WorkDefaultsStored,
};
pub use record::{FORMAT, Record, RecordError};
pub use text::Text;

pub(crate) use codec::cause::parts as cause_parts;
pub(crate) use codec::class::word as class_word;
pub(crate) use record::{read_versioned, read_versioned_as, versioned, versioned_as};
