//! What must come of a case when nobody crashes, worked out from the semantics alone.
//!
//! A second opinion: naive, slow, and sharing nothing with the engine it is compared with. A small
//! loop on virtual time (`run`) over plain values, with its own delays, pool, breakers, tolerance
//! and completion rule. It reads the case, never the workflow's text. Starts and records take no time, and what
//! is due starts at once. Where the semantics leave something open it gives no answer (`Open`),
//! and where they leave a choice to chance it is told what was drawn (`Seen`).

mod breaker;
pub mod compare;
mod delay;
mod ends;
mod failure;
mod flow;
mod held;
mod judge;
mod plan;
mod predict;
mod prediction;
mod results;
mod run;
mod seen;
mod starts;
mod state;
mod terms;
#[cfg(test)]
mod tests;

pub use predict::{predict, predict_seen};
pub use prediction::{Fate, JobEnd, Made, Prediction, Range};
pub use run::Open;
pub use seen::Seen;
