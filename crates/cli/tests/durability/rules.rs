//! Which failures are tried again, and on which terms: the table of rules, and the order of reasons.

use serde_json::json;

use crate::history::{all, is_lawful, one, only_probes_start_while_open, text};
use crate::world::World;

/// Every item is one way to fail.
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
fn the_first_rule_that_matches_says_what_becomes_of_a_failure() {
    let world = World::of(TABLE);
    let report = world.run().exits(4).json();
    let runs = world.runs("log");
    let letters = world.dead_letters();
    for (item, ran, reason, handled) in [
        ("three", 2, "attempts", true),
        ("four", 1, "rule", true),
        ("five", 1, "rule", true),
        ("row", 1, "rule", false),
        ("later", 3, "attempts", true),
        ("missing", 2, "attempts", true),
        ("other", 5, "attempts", true),
        // It matches two, and the one before stops it.
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
    assert_eq!((&report["items"]["dead"], &report["items"]["skipped"]), (&json!(8), &json!(1)));
    let events = world.events();
    is_lawful(&events);
    assert_eq!(one(&events, "item_skipped")["item"], "term");
    // Its own terms are merged over those of the command.
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
    let world = World::of(
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
    );
    let report = world.run().exits(1).json();
    // Two retries by the rule, and the command allows three in all.
    assert_eq!(world.lines("log").len(), 4);
    assert_eq!(report["reason"], "attempts");
}

/// A failure that several limits refuse to retry. The first retry, if there is one, comes at once; the
/// next would come in an hour.
fn refused(limits: &str, item: &str, config: &str) -> (String, usize) {
    let world = World::of(&format!(
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
    ));
    let report = world.run().exits(4).json();
    (text(&report["reason"]), world.lines("log").len())
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
fn what_is_permanent_or_ruled_out_is_so_before_anything_is_counted() {
    let workflow = "
retry_budget: 1
commands:
  - shell: echo run >> log; exit CODE
    retry_config: {attempts: 0, retry_budget: 1ms, rules: [{exit_code: 9, then: stop}]}
";
    for (code, reason) in [("127", "permanent"), ("9", "rule"), ("1", "attempts")] {
        let world = World::of(&workflow.replace("CODE", code));
        assert_eq!(world.run().exits(1).json()["reason"], reason);
        assert_eq!(world.lines("log").len(), 1);
    }
}

#[test]
fn retry_on_narrows_what_is_retried() {
    let workflow = "
- shell: echo run >> log; echo 'TEXT' >&2; exit 1
  retry_config: {attempts: 1, initial_delay: 3ms, retry_on: [LIST]}
";
    for (list, said, ran) in [
        ("{pattern: 'try (it )?again'}", "please try again", 2),
        ("{pattern: 'try (it )?again'}", "no", 1),
        ("server_error", "HTTP 500", 2),
        ("server_error", "1500 rows", 1),
        ("network", "connection refused", 2),
        ("timeout, network", "bad input", 1),
    ] {
        let world = World::of(&workflow.replace("LIST", list).replace("TEXT", said));
        let report = world.run().exits(1).json();
        assert_eq!(world.lines("log").len(), ran, "{list}: {said}");
        let reason = if ran == 1 { "permanent" } else { "attempts" };
        assert_eq!(report["reason"], reason, "{list}: {said}");
    }
    let world = World::of(
        "
- shell: echo run >> log; test $UNDAUNTED_ATTEMPT -gt 1 || sleep 1000
  timeout: 1s
  retry_config: {attempts: 1, initial_delay: 3ms, retry_on: [timeout]}
",
    );
    world.run().exits(0);
    assert_eq!(world.lines("log").len(), 2);
}

/// Item 1 says that what it needs is away.
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
    let world = World::of(&HOLDS.replace("MANY", "1"));
    let report = world.run().exits(0).json();
    // One failure is enough, far below the threshold of five.
    let runs = world.runs("log");
    assert_eq!(runs.len(), 5, "{runs:?}");
    assert!(runs.values().all(|ran| *ran == 1), "{runs:?}");
    assert_eq!((&report["retries"], &report["delay_ms"]), (&json!(1), &json!(0)));
    let events = world.events();
    is_lawful(&events);
    assert!(all(&events, "retry_scheduled").is_empty());
    let opened = one(&events, "breaker_opened");
    assert_eq!((&opened["why"], &opened["breaker"]), (&json!("rule"), &json!("shared")));
    let held = all(&events, "held");
    let first = held.iter().find(|event| event["item"] == "1").unwrap();
    assert_eq!((&first["attempt"], &first["retry"]), (&json!(1), &json!(1)));
    only_probes_start_while_open(&events, &world.breaker("shared"));
    // The retry that a hold leads to is a retry like any other.
    let budget = world.call(&["budget", "show", "@last", "--json"]).exits(0).json();
    assert_eq!(budget["per_workflow_consumed"], json!({"1": 1}));
}

#[test]
fn a_rule_that_holds_grants_no_attempt_that_is_not_there() {
    let world = World::of(&HOLDS.replace("MANY", "0"));
    let report = world.run().exits(4).json();
    assert_eq!((&report["reason"], &report["attempts"]), (&json!("attempts"), &json!(4)));
    assert_eq!(one(&world.events(), "item_dead_lettered")["item"], "1");
}

#[test]
fn a_rule_that_holds_needs_a_breaker() {
    let breaker = "      breaker: {name: shared, recovery_timeout: 100ms, half_open_max_calls: 1}\n";
    let world = World::of(&HOLDS.replace("MANY", "1").replace(breaker, ""));
    for args in [&["check", "w.yaml"][..], &["run", "w.yaml"]] {
        let refused = world.call(args).exits(3);
        assert!(refused.err.contains("no-breaker"), "{refused:?}");
    }
}
