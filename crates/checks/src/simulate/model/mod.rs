//! A reference model: what a job without crashes must come to, worked out from the semantics alone.
//!
//! Naive, slow, and sharing nothing with the engine it is compared with. A small loop on virtual time (`run`)
//! over plain values, with its own delays, pool, breakers, tolerance and completion rule. It reads the case,
//! never the workflow's text. Starts and records take no time, and what is due starts at once. Where the
//! semantics leave something open it gives no answer (`Unspecified`), and random choices are taken from the
//! run (`ObservedChoices`).

mod breaker;
pub mod compare;
mod ends;
mod flow;
mod held;
mod judge;
mod plan;
mod prediction;
mod results;
mod run;
mod starts;
mod state;
mod terms;
#[cfg(test)]
mod tests;

pub use prediction::{
    DelayRange, ObservedChoices, PredictedAttempts, PredictedEnd, PredictedJobEnd, Prediction, predict,
    predict_with,
};
pub use run::Unspecified;
pub use terms::delay_before;
