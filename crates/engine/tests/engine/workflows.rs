//! Random workflows: lists and maps with policies, handlers, captures, breakers, completion rules and
//! limits of all kinds.

use std::fmt::Write as _;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

/// The text of a workflow; a map has a step called `map`.
pub(crate) fn workflow() -> impl Strategy<Value = String> {
    prop_oneof![
        1 => (limits(), vec(command(), 1..4)).prop_map(|(limits, commands)| {
            format!("{limits}commands:\n{}", list(&commands, "  "))
        }),
        3 => (limits(), map(), of(command()), of(command())).prop_map(
            |(limits, map, setup, reduce)| {
                let part = |name: &str, command: Option<String>| {
                    command.map_or_else(String::new, |command| {
                        format!("{name}:\n{}", list(&[command], "  "))
                    })
                };
                let (setup, reduce) = (part("setup", setup), part("reduce", reduce));
                format!("{limits}mode: mapreduce\n{setup}{map}{reduce}")
            }
        ),
    ]
}

/// What holds for the whole job.
fn limits() -> impl Strategy<Value = String> {
    (of(1_u32..9), of(1_u32..4), of(5_u32..200)).prop_map(|(pool, share, deadline)| {
        let mut text = String::new();
        let lines = [
            pool.map(|pool| format!("retry_budget: {pool}")),
            share.map(|share| format!("retry_budget_per_workflow: {share}")),
            deadline.filter(|deadline| deadline % 3 == 0).map(|deadline| format!("deadline: {deadline}s")),
        ];
        for line in lines.into_iter().flatten() {
            let _ = writeln!(text, "{line}");
        }
        text
    })
}

fn map() -> BoxedStrategy<String> {
    let tolerance = prop_oneof![
        4 => Just(""),
        1 => Just("max_failures: 2"),
        1 => Just("continue_on_failure: false"),
        1 => Just("on_item_failure: skip"),
        1 => Just("failure_threshold: 0.3"),
    ];
    let input = prop_oneof![Just("a.json"), Just("{shell: ls}")];
    let parts = (1_u32..4, tolerance, of(3_u32..40), input, completion());
    (parts, vec(command(), 1..3)).prop_map(|(parts, commands)| {
        let (parallel, tolerance, deadline, input, completion) = parts;
        let deadline = deadline.map_or_else(String::new, |seconds| {
            format!("  timeout_config: {{agent_timeout_secs: {seconds}}}\n")
        });
        let commands = list(&commands, "    ");
        format!(
            "map:\n  input: {input}\n  max_parallel: {parallel}\n  error_policy: {{{tolerance}}}\n{completion}{deadline}  agent_template:\n{commands}"
        )
    })
    .boxed()
}

/// What the map waits for.
fn completion() -> impl Strategy<Value = String> {
    let rest = prop_oneof![Just("cancel"), Just("leave")];
    let rule = (0_u32..5, 1_u32..30, rest).prop_map(|(min, deadline, rest)| {
        format!(
            "  best_effort: true\n  best_effort_min_dcs: {min}\n  best_effort_deadline_seconds: {deadline}\n  on_complete: {rest}\n"
        )
    });
    prop_oneof![2 => Just(String::new()), 1 => rule]
}

/// A breaker that a command asks. Those of one name have the same settings everywhere.
fn breaker() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![
        3 => Just(None),
        2 => Just(Some("{name: holds, failure_threshold: 2, recovery_timeout: 7s}")),
        1 => Just(Some("{name: limited, failure_threshold: 1, half_open_max_calls: 1, recovery_timeout: 9s, max_hold: 4s}")),
        1 => Just(Some("{name: refuses, failure_threshold: 2, recovery_timeout: 5s, when_open: fail}")),
    ]
}

fn list(commands: &[String], indent: &str) -> String {
    let lines = commands.iter();
    let lines = lines.map(|command| format!("{indent}- {{{command}}}\n"));
    lines.collect()
}

/// The inside of one command, in one line.
fn command() -> BoxedStrategy<String> {
    let capture = prop_oneof![
        3 => Just(""),
        1 => Just(", capture_output: got, capture_format: number"),
    ];
    let interrupt = prop_oneof![3 => Just(""), 1 => Just(", on_interrupt: stop")];
    let follow = prop_oneof![3 => Just(""), 1 => Just(", on_success: {shell: more}")];
    let gated = (of(retry()), breaker(), any::<bool>()).prop_map(|(retry, breaker, holds)| {
        let mut text = retry.map_or_else(String::new, |retry| format!(", {retry}"));
        if let Some(breaker) = breaker {
            if holds {
                text = text.replace("then: stop", "then: hold");
                text = text.replace("then: skip", "then: hold");
            }
            let _ = write!(text, ", breaker: {breaker}");
        }
        text
    });
    (gated, of(handler()), capture, interrupt, follow)
        .prop_map(|(gated, handler, capture, interrupt, follow)| {
            let handler = handler.map_or_else(String::new, |it| format!(", on_failure: {it}"));
            format!("shell: work{gated}{handler}{capture}{interrupt}{follow}")
        })
        .boxed()
}

fn retry() -> BoxedStrategy<String> {
    let attempts =
        prop_oneof![4 => (0_u32..4).prop_map(|n| n.to_string()), 1 => Just("unlimited".to_owned())];
    let backoff = prop_oneof![
        Just("fixed"),
        Just("{linear: {increment: 2s}}"),
        Just("exponential"),
        Just("fibonacci"),
        Just("{custom: {delays: [1s, 0s, 7s]}}"),
    ];
    let jitter = prop_oneof![Just("false"), Just("true"), Just("full"), Just("decorrelated")];
    let rules = prop_oneof![
        4 => Just(""),
        1 => Just(", rules: [{exit_code: 3, then: dead_letter}]"),
        1 => Just(", rules: [{exit_code: 3, then: skip}]"),
        1 => Just(", rules: [{exit_code: 3, then: stop}]"),
        1 => Just(", rules: [{exit_code: 127, then: retry, retry_config: {attempts: 5, retry_budget: 4s}}]"),
    ];
    (attempts, backoff, jitter, of(0_u32..9), rules)
        .prop_map(|(attempts, backoff, jitter, budget, rules)| {
            let budget = budget.map_or_else(String::new, |it| format!(", retry_budget: {it}s"));
            format!(
                "retry_config: {{attempts: {attempts}, backoff: {backoff}, jitter: {jitter}{budget}{rules}}}"
            )
        })
        .boxed()
}

fn handler() -> BoxedStrategy<String> {
    let commands = vec(of(retry()), 1..3).prop_map(|commands| {
        let commands = commands.into_iter().map(|retry| {
            let retry = retry.map_or_else(String::new, |retry| format!(", {retry}"));
            format!("{{shell: mend{retry}}}")
        });
        commands.collect::<Vec<_>>().join(", ")
    });
    (commands, 0_u32..3, any::<bool>())
        .prop_map(|(commands, rounds, fail)| {
            format!("{{commands: [{commands}], max_attempts: {rounds}, fail_workflow: {fail}}}")
        })
        .boxed()
}
