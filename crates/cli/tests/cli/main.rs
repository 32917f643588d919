//! The command line as its callers see it: the real binary, its output and its exit codes.

#![expect(clippy::expect_used, reason = "a broken expectation is a red test")]

mod archive;
mod binary;
mod check;
mod dead_letters;
mod documents;
mod embedded;
mod exec;
mod explain;
mod flaky;
mod guides;
mod home;
mod hostile;
mod inputs;
mod json;
mod logs;
mod map;
mod outages;
mod plain;
mod progress;
mod pty;
mod readme;
mod schedule;
mod schema;
mod shared;
mod show;
mod state;
mod unlike;
mod unwatched;
mod upkeep;
