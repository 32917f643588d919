//! Messages between engine and keeper, and the log of the spool.

use undaunted_checks::fuzz::keeper_bytes;

use crate::feed::{brings_up, fuzz};

#[test]
fn no_mutant_of_a_message_or_a_log_breaks_a_law() {
    fuzz(keeper_bytes, "keeper_bytes", 20_000);
}

#[test]
fn a_run_meets_every_message_and_every_state_of_a_log() {
    let expected = [
        "hello",
        "start",
        "cancel",
        "cancel all",
        "forget",
        "trust",
        "goodbye",
        "welcome",
        "ready",
        "running",
        "exited",
        "vanished",
        "refused",
        "stream",
        "log",
        "damaged log",
    ];
    brings_up(keeper_bytes, "keeper_bytes", 500, &expected);
}
