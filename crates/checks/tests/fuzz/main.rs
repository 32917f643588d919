//! A few seconds of fuzzing in every run, and proof that it notices mistakes.
//!
//! The seed is `UNDAUNTED_SEED`, or else 1; a failure prints the command that repeats it.
//! `UNDAUNTED_FUZZ_INPUTS` makes a run longer. `fuzz/` holds the same targets for `cargo fuzz`.

mod feed;
mod files;
mod itself;
mod journal;
mod keeper;
mod policy;
mod server;
mod workflow;
