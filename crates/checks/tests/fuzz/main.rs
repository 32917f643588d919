//! A few seconds of fuzzing in every run, and proof that it would notice.
//!
//! The seed is `UNDAUNTED_SEED`, or else 1, so that every machine tries the same inputs; a
//! failure names the seed and the command that repeats it. `UNDAUNTED_FUZZ_INPUTS` makes a run as long
//! as one likes. `fuzz/` holds the same targets for `cargo fuzz`.

mod feed;
mod files;
mod itself;
mod journal;
mod keeper;
mod policy;
mod server;
mod workflow;
