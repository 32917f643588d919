//! The command line as its callers see it: the real binary, its output and its exit codes.

#![expect(clippy::expect_used, reason = "a broken expectation is a red test")]

mod binary;
mod check;
mod dead_letters;
mod documents;
mod exec;
mod home;
mod map;
mod progress;
mod pty;
mod readme;
mod schedule;
mod schema;
mod unwatched;
mod upkeep;
