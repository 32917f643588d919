//! Fuzzing of the policy: any bytes in, a panic only when a law is broken.
//!
//! Two targets, pure functions of their input: one restores saved states from bytes (`restore`),
//! the other lets bytes decide what befalls a command or a breaker (`decide`). They look from
//! outside: what an answer may be is worked out from the saved form of a policy (`promise`, `law`),
//! not from the fields the answer came from. `fuzz/` feeds them for as long as one likes, with
//! coverage to guide it; `tests/fuzz.rs` feeds them mutants of the corpus (`run`) for a few seconds
//! in every `./verify`.

mod breaker;
mod bytes;
mod decide;
mod law;
mod mutant;
mod promise;
mod restore;
mod run;
mod scene;

pub use decide::policy_decide;
pub use restore::{SAVED, policy_restore};
pub use run::{Finding, Target, run};
