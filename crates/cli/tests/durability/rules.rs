//! Which failures are retried, and on which terms: the table of rules, and the order of reasons.

use serde_json::json;

use crate::history::{all, assert_fields, has_event, one, only_probes_start_while_open, text};
use crate::sandbox::Sandbox;

/// Each item fails in its own way.
const TABLE: &str = "
mode: mapreduce
map:
  input: {shell: 'printf \"%s\\n\" three four five term row later missing other both'}
  agent_template:
    - shell: |
        echo ${item} >> log
        case ${item} in
          three) exit 3;;
          four) exit 4;;
          five) exit 5;;
          term) kill -TERM $$;;
          row) echo a bad row >&2; exit 1;;
          later) echo later; exit 1;;
          missing) exit 127;;
          both) echo a bad row >&2; exit 4;;
        esac
        exit 1
      retry_config:
        attempts: 4
        backoff: fixed
        initial_delay: 3ms
        rules:
          - {exit_code: 3, then: retry, retry_config: {attempts: 1}}
          - {exit_code: [4, 5], then: stop}
          - {signal: TERM, then: skip}
          - {stderr: 'bad (row|line)', then: dead_letter}
          - {output: '^later', then: retry, retry_config: {attempts: 2, initial_delay: 4ms}}
          - {class: permanent, then: retry, retry_config: {attempts: 1}}
      on_failure: {shell: 'echo handler-${item} >> log', fail_workflow: true}
";

#[test]
fn the_first_rule_that_matches_decides_about_a_failure() {
    let (sandbox, report) = Sandbox::run_workflow(TABLE, 4);
    let runs = sandbox.runs("log");
    let letters = sandbox.dead_letters();
    for (item, ran, reason, handled) in [
        ("three", 2, "attempts", true),
        ("four", 1, "rule", true),
        ("five", 1, "rule", true),
        ("row", 1, "rule", false),
        ("later", 3, "attempts", true),
        ("missing", 2, "attempts", true),
        ("other", 5, "attempts", true),
        // It matches two rules; the first one decides.
        ("both", 1, "rule", true),
    ] {
        assert_eq!(runs.get(item), Some(&ran), "{item}");
        let letter = letters.iter().find(|letter| letter["item"] == item);
        let letter = letter.unwrap_or_else(|| panic!("{item} is no dead letter: {letters:#?}"));
        assert_eq!(letter["reason"], reason, "{item}");
        assert_eq!(
            letter["attempts"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|attempt| attempt["handler"] == false)
                .count(),
            ran,
            "{item}"
        );
        assert_eq!(runs.contains_key(&format!("handler-{item}")), handled, "{item}");
    }
    assert_eq!(runs.get("term"), Some(&1));
    assert_eq!(runs.get("handler-term"), None);
    assert_fields!(report["items"], {"dead": 8, "skipped": 1});
    let events = sandbox.lawful_events();
    assert_eq!(one(&events, "item_skipped")["item"], "term");
    // The terms of a rule are merged over those of the command.
    let delays = |item: &str| -> Vec<_> {
        let scheduled = all(&events, "retry_scheduled");
        let of_item = scheduled.into_iter().filter(|event| event["item"] == item);
        of_item.map(|event| event["delay_ms"].clone()).collect()
    };
    assert_eq!(delays("later"), [json!(4), json!(4)]);
    assert_eq!(delays("three"), [json!(3)]);
    let rules = all(&events, "attempt_failed");
    let rule = |item: &str| rules.iter().find(|event| event["item"] == item).unwrap()["rule"].clone();
    assert_eq!((rule("both"), rule("row")), (json!(1), json!(3)));
}

#[test]
fn counters_stay_those_of_the_command_whichever_rule_sets_the_terms() {
    let (sandbox, report) = Sandbox::run_workflow(
        "
- shell: |
    echo $UNDAUNTED_ATTEMPT >> log
    test $UNDAUNTED_ATTEMPT -le 2 && exit 3
    exit 1
  retry_config:
    attempts: 3
    backoff: fixed
    initial_delay: 3ms
    rules: [{exit_code: 3, then: retry, retry_config: {attempts: 9}}]
",
        1,
    );
    // Two retries come from the rule, and the command allows three in all.
    assert_eq!(sandbox.lines("log").len(), 4);
    assert_eq!(report["reason"], "attempts");
}

/// Runs an item whose failure several limits refuse to retry: the first retry, if there is one, comes at
/// once, the next would come in an hour. Returns the reason and the number of runs.
fn refused(limits: &str, item: &str, config: &str) -> (String, usize) {
    let (sandbox, report) = Sandbox::run_workflow(
        &format!(
            "
mode: mapreduce
{limits}
map:
  input: {{shell: seq 1 1}}
  {item}
  agent_template:
    - shell: |
        echo run >> log
        test $UNDAUNTED_ATTEMPT = 1 && exit 3
        exit 1
      retry_config:
        backoff: fixed
        initial_delay: 1h
        max_delay: 1h
        {config}
        rules:
          - {{exit_code: 3, then: retry, retry_config: {{initial_delay: 3ms}}}}
"
        ),
        4,
    );
    (text(&report["reason"]), sandbox.lines("log").len())
}

#[test]
fn the_first_check_that_refuses_is_the_reason() {
    let pool = "retry_budget: 1";
    let soon = "timeout_config: {agent_timeout_secs: 20}";
    let wide = "retry_budget: 9\nretry_budget_per_workflow: 1";
    for (limits, item, config, reason, ran) in [
        (pool, soon, "{attempts: 1, retry_budget: 1s}", "attempts", 2),
        (pool, soon, "{attempts: 9, retry_budget: 1s}", "retry_budget", 2),
        (pool, soon, "{attempts: 9}", "deadline", 2),
        (pool, "", "{attempts: 9}", "job_budget_exhausted", 2),
        (wide, "", "{attempts: 9}", "workflow_budget_exhausted", 2),
        (pool, soon, "{attempts: 0, retry_budget: 1ms}", "attempts", 1),
        (pool, soon, "{attempts: 9, retry_budget: 1ms}", "retry_budget", 1),
    ] {
        let config = config.trim_matches(['{', '}']).replace(", ", "\n        ");
        assert_eq!(refused(limits, item, &config), (reason.to_owned(), ran), "{config}");
    }
}

#[test]
fn permanent_failures_and_refusals_by_a_rule_come_before_any_count() {
    let workflow = "
retry_budget: 1
commands:
  - shell: echo run >> log; exit CODE
    retry_config: {attempts: 0, retry_budget: 1ms, rules: [{exit_code: 9, then: stop}]}
";
    for (code, reason) in [("127", "permanent"), ("9", "rule"), ("1", "attempts")] {
        let sandbox = Sandbox::of(&workflow.replace("CODE", code));
        assert_eq!(sandbox.run().exits(1).json()["reason"], reason);
        assert_eq!(sandbox.lines("log").len(), 1);
    }
}

#[test]
fn retry_on_narrows_what_is_retried() {
    let workflow = "
- shell: echo run >> log; echo 'TEXT' >&2; exit 1
  retry_config: {attempts: 1, initial_delay: 3ms, retry_on: [LIST]}
";
    for (list, message, ran) in [
        ("{pattern: 'try (it )?again'}", "please try again", 2),
        ("{pattern: 'try (it )?again'}", "no", 1),
        ("server_error", "HTTP 500", 2),
        ("server_error", "1500 rows", 1),
        ("network", "connection refused", 2),
        ("timeout, network", "bad input", 1),
        ("", "bad input", 2),
    ] {
        let (sandbox, report) =
            Sandbox::run_workflow(&workflow.replace("LIST", list).replace("TEXT", message), 1);
        assert_eq!(sandbox.lines("log").len(), ran, "{list}: {message}");
        let reason = if ran == 1 { "permanent" } else { "attempts" };
        assert_eq!(report["reason"], reason, "{list}: {message}");
    }
    let (sandbox, _) = Sandbox::run_workflow(
        "
- shell: echo run >> log; test $UNDAUNTED_ATTEMPT -gt 1 || sleep 1000
  timeout: 1s
  retry_config: {attempts: 1, initial_delay: 3ms, retry_on: [timeout]}
",
        0,
    );
    assert_eq!(sandbox.lines("log").len(), 2);
}

/// Item 1 fails with exit code 75, which a rule turns into a hold.
const HOLDS: &str = "
mode: mapreduce
retry_budget: 5
map:
  input: {shell: seq 1 4}
  max_parallel: 1
  agent_template:
    - shell: |
        echo ${item}-$UNDAUNTED_ATTEMPT >> log
        case ${item}-$UNDAUNTED_ATTEMPT in 1-1) exit 75;; esac
      breaker: {name: shared, recovery_timeout: 100ms, half_open_max_calls: 1}
      retry_config:
        attempts: MANY
        initial_delay: 30s
        rules: [{exit_code: 75, then: hold}]
";

#[test]
fn a_rule_that_holds_trips_the_breaker_and_waits_without_a_delay() {
    let (sandbox, report) = Sandbox::run_workflow(&HOLDS.replace("MANY", "1"), 0);
    // One failure is enough, far below the threshold of five.
    let runs = sandbox.runs("log");
    assert_eq!(runs.len(), 5, "{runs:?}");
    assert!(runs.values().all(|ran| *ran == 1), "{runs:?}");
    assert_fields!(report, {"retries": 1, "delay_ms": 0});
    let events = sandbox.lawful_events();
    assert!(!has_event(&events, "retry_scheduled"));
    let opened = one(&events, "breaker_opened");
    assert_fields!(opened, {"why": "rule", "breaker": "shared"});
    let held = all(&events, "held");
    let first = held.iter().find(|event| event["item"] == "1").unwrap();
    assert_fields!(first, {"attempt": 1, "retry": 1});
    only_probes_start_while_open(&events, &sandbox.breaker("shared"));
    // The retry after a hold is charged to the pool.
    let budget = sandbox.budget();
    assert_eq!(budget["per_workflow_consumed"], json!({"1": 1}));
}

#[test]
fn a_rule_that_holds_grants_no_attempt_that_is_not_there() {
    let (sandbox, report) = Sandbox::run_workflow(&HOLDS.replace("MANY", "0"), 4);
    assert_fields!(report, {"reason": "attempts", "attempts": 4});
    assert_eq!(one(&sandbox.events(), "item_dead_lettered")["item"], "1");
}

#[test]
fn a_rule_that_holds_needs_a_breaker() {
    let breaker = "      breaker: {name: shared, recovery_timeout: 100ms, half_open_max_calls: 1}\n";
    let sandbox = Sandbox::of(&HOLDS.replace("MANY", "1").replace(breaker, ""));
    for args in [&["check", "w.yaml"][..], &["run", "w.yaml"]] {
        sandbox.call(args).exits(3).err_contains("no-breaker");
    }
}
