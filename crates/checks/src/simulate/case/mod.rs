//! Random jobs, and what their commands do.
//!
//! A case is a description of our own: plain values, from which the text of a workflow is written
//! (`text`) and which the model reads instead of that text, so that nobody shares the engine's
//! reading of it. The script (`act`) says how each attempt goes. Everything comes from a die
//! (`draw`), so a seed repeats it, and a case can be made smaller (`smaller`) one thing at a time.

mod act;
mod command;
mod draw;
mod flow;
mod retry;
mod smaller;
#[cfg(test)]
mod tests;
mod text;
mod whole;

pub use act::{Act, How, Script};
pub use command::{Breaker, Call, Command, Format, Handler};
pub use flow::{Flow, FlowStep, Kind, Role, Taken, WorkBackoff, WorkConfig};
pub use retry::{Attempts, Backoff, FailureKind, Jitter, Retry, Rule, Then, When};
pub use text::is_gated;
pub use whole::{Case, Completion, Map, Shape, Tolerance};
