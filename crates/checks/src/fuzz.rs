//! Fuzzing of the policy and of the workflow language: any bytes in, a panic only when a law is
//! broken.
//!
//! The targets are pure functions of their input. Of the policy, one restores saved states from
//! bytes (`restore`), the other lets bytes decide what befalls a command or a breaker (`decide`). Of
//! the language, bytes are a file (`check`), a template (`template`), or a filter and an input
//! (`filter`). All look from outside: what an answer may be is worked out from what was asked and
//! what is shown of the answer (`promise` and the laws), not from the fields it came from. `fuzz/`
//! feeds them for as long as one likes, with coverage to guide it; `tests/fuzz.rs` feeds them mutants
//! of the corpus (`run`) for a few seconds in every `./verify`.

mod breaker;
mod bytes;
mod check;
mod decide;
mod diagnosis;
mod filter;
mod items;
mod law;
mod mutant;
mod promise;
mod restore;
mod run;
mod scene;
mod script;
mod template;
mod workflow;

pub use check::workflow_check;
pub use decide::policy_decide;
pub use filter::workflow_filter;
pub use restore::{SAVED, policy_restore};
pub use run::{Finding, Target, run};
pub use template::workflow_template;
