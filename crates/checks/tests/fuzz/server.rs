//! What clients send: HTTP requests and async results.

use undaunted_checks::fuzz::{http_request, webhook_result};

use crate::feed::{brings_up, fuzz};

#[test]
fn no_mutant_of_a_request_breaks_a_law() {
    fuzz(http_request, "http_request", 300);
}

#[test]
fn a_run_meets_every_kind_of_answer() {
    let expected = [
        "done",
        "made",
        "wrong",
        "unknown",
        "foreign",
        "missing",
        "wrong method",
        "conflict",
        "not JSON",
        "metrics",
        "socket",
        "subscribed",
        "not subscribed",
        "too early",
        "refused without words",
    ];
    brings_up(http_request, "http_request", 100, &expected);
}

#[test]
fn no_mutant_of_a_result_breaks_a_law() {
    fuzz(webhook_result, "webhook_result", 8000);
}

#[test]
fn a_run_meets_every_kind_of_result_and_of_token() {
    let expected = ["given", "failed", "unreadable", "running", "waiting", "over", "nowhere", "arrived"];
    brings_up(webhook_result, "webhook_result", 500, &expected);
}
