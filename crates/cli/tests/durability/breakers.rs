//! A dependency goes away, and the items that need it are put on hold instead of using up their attempts.

use serde_json::{Value, json};

use crate::history::{
    all, assert_contains, assert_fields, changes, count, held, one, only_probes_start_while_open, probes,
    running, text,
};
use crate::sandbox::Sandbox;

/// A map whose items succeed while the file `up` exists.
fn dependent(items: u32, width: u32, breaker: &str, more: &str) -> Sandbox {
    Sandbox::of(&format!(
        "
mode: mapreduce
map:
  input: {{shell: seq 1 {items}}}
  max_parallel: {width}
  agent_template:
    - id: call
      shell: |
        if [ -e up ]; then echo done-${{item}} >> log; exit; fi
        echo failed-${{item}} >> log
        exit 1
      breaker: {{name: shared, {breaker}}}
      retry_config: {{attempts: 3, backoff: fixed, initial_delay: 3ms}}
{more}
"
    ))
}

/// How many commands failed and how many succeeded, by their own log.
fn failed_and_done(sandbox: &Sandbox) -> (usize, usize) {
    let log = sandbox.lines("log");
    let failed = log.iter().filter(|line| line.starts_with("failed-"));
    let failed = failed.count();
    (failed, log.len() - failed)
}

/// A recovery timeout longer than any test waits. Held items are released over a tenth of it.
const LONG: &str = "failure_threshold: 2, recovery_timeout: 60s";

/// Waits until the breaker is open, no attempt runs, and every failed item and at least `width` items are on
/// hold.
fn wait_until_held(sandbox: &Sandbox, width: usize) -> Vec<Value> {
    sandbox.wait_for_open_breaker("shared");
    sandbox.wait_for_events("held items", |events| {
        let held = held(events);
        let failed = all(events, "attempt_failed");
        let mut failed = failed.iter().map(|event| text(&event["item"]));
        running(events) == 0 && held.len() >= width && failed.all(|item| held.contains(&item))
    })
}

#[test]
fn an_outage_costs_a_thousand_items_no_more_than_threshold_width_and_probes() {
    let settings = "failure_threshold: 5, recovery_timeout: 200ms, half_open_max_calls: 2";
    let sandbox = dependent(1000, 8, settings, "");
    let engine = sandbox.start_run();
    sandbox.wait_for_breaker("shared", |breaker| probes(breaker) > 2);
    sandbox.write("up", "");
    let report = engine.wait().exits(0).json();
    assert_eq!(report["items"]["succeeded"], 1000);
    let runs = sandbox.runs("log");
    for item in 1..=1000 {
        assert_eq!(runs.get(&format!("done-{item}")), Some(&1), "item {item}");
    }
    let breaker = sandbox.breaker("shared");
    let (failed, done) = failed_and_done(&sandbox);
    let bound = 5 + 8 - 1 + probes(&breaker);
    assert!((5..=bound).contains(&failed), "{failed} of {bound}");
    assert_eq!(report["attempts"], failed + done);
    assert_eq!(breaker["state"], "closed");
    let events = sandbox.lawful_events();
    only_probes_start_while_open(&events, &breaker);
}

#[test]
fn a_held_item_uses_no_attempt_and_gives_its_slot_back() {
    let (sandbox, engine) = Sandbox::start_workflow(
        "
mode: mapreduce
map:
  input: {shell: seq 1 4}
  max_parallel: 1
  agent_template:
    - id: call
      shell: echo call-${item}-$UNDAUNTED_ATTEMPT >> log; test -e up
      breaker: {name: shared, failure_threshold: 1, recovery_timeout: 60s, half_open_max_calls: 1}
      retry_config: {attempts: 1, backoff: fixed, initial_delay: 300ms}
    - id: other
      shell: echo other-${item} >> log
",
    );
    // There is one slot and two items are held: the first has failed, the second never began. The second asks
    // for admission while the first waits for its retry, so that delay must be longer than one turn of the
    // event loop on a busy machine.
    let events = wait_until_held(&sandbox, 2);
    assert_eq!(sandbox.lines("log"), ["call-1-1"]);
    let held = all(&events, "held");
    let mut held_items: Vec<_> =
        held.iter().map(|event| (text(&event["item"]), &event["attempt"], &event["attempts_left"])).collect();
    held_items.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(held_items, [("1".to_owned(), &json!(1), &json!(1)), ("2".to_owned(), &json!(0), &json!(2))]);
    let until = &sandbox.breaker("shared")["until"];
    assert!(held.iter().all(|event| &event["until"] == until));
    sandbox.write("up", "");
    sandbox.reset_breaker("shared");
    let report = engine.wait().exits(0).json();
    assert_fields!(report, {"attempts": 9, "retries": 1});
    // Time on hold is not charged as delay.
    assert_eq!(report["delay_ms"], 300);
    let events = sandbox.lawful_events();
    let released = all(&events, "released");
    assert_eq!(released.len(), count(&events, "held"));
    assert!(released.iter().all(|event| event["held_ms"].is_u64()));
}

#[test]
fn one_probe_at_a_time_is_made_by_the_item_with_the_most_attempts_left() {
    let sandbox = Sandbox::of(
        "
mode: mapreduce
map:
  input: {shell: seq 1 3}
  max_parallel: 3
  agent_template:
    - shell: |
        echo ${item}-$UNDAUNTED_ATTEMPT >> log
        test $(wc -l < log) -gt 8
      breaker: {name: shared, failure_threshold: 3, recovery_timeout: 30ms, half_open_max_calls: 2}
      retry_config: {attempts: 3, backoff: fixed, initial_delay: 3ms}
",
    );
    // Three first attempts fail, then five probes; if probes were chosen by chance, one item would run out of
    // attempts.
    let report = sandbox.run().exits(0).json();
    let log = sandbox.lines("log");
    let attempts = |number: &str| log.iter().filter(|line| line.ends_with(number)).count();
    assert_eq!((attempts("-1"), attempts("-2"), attempts("-3")), (3, 3, 3), "{log:?}");
    assert_eq!(report["items"]["succeeded"], 3);
    let breaker = sandbox.breaker("shared");
    only_probes_start_while_open(&sandbox.events(), &breaker);
    assert_eq!(changes(&breaker, "closed"), 1);
}

/// Commands one after the other; the item is the exit code, or `slow` for a timeout.
fn ending_like(items: &str, threshold: u32) -> Sandbox {
    Sandbox::of(&format!(
        "
mode: mapreduce
map:
  input: {{shell: 'printf \"%s\\n\" {items}'}}
  max_parallel: 1
  agent_template:
    - shell: |
        n=${{item}}
        echo $n >> log
        case $n in slow*) exec sleep 1000;; esac
        exit ${{n%-*}}
      timeout: 1s
      breaker: {{name: shared, failure_threshold: {threshold}, recovery_timeout: 10s, when_open: fail}}
"
    ))
}

#[test]
fn a_success_resets_the_failure_count_and_permanent_failures_do_not_count() {
    let sandbox = ending_like("1-a 0-a 1-b 0-b 127-a 127-b 126-a 1-c 127-c 0-c", 2);
    sandbox.run().exits(4);
    assert_eq!(sandbox.lines("log").len(), 10, "it never opened");
    // A permanent failure does not reset the count of failures either.
    let sandbox = ending_like("1-a 127-a 1-b 0-a", 2);
    sandbox.run().exits(4);
    assert_eq!(sandbox.lines("log"), ["1-a", "127-a", "1-b"]);
    assert_eq!(sandbox.dead_letters()[3]["reason"], "circuit_open");
}

#[test]
fn a_timeout_counts_as_a_failure() {
    let sandbox = ending_like("1-a slow-a 0-a", 2);
    sandbox.run().exits(4);
    assert_eq!(sandbox.lines("log"), ["1-a", "slow-a"]);
    assert_eq!(sandbox.breaker("shared")["state"], "open");
}

#[test]
fn the_result_of_a_start_from_before_the_opening_is_ignored() {
    let (sandbox, engine) = Sandbox::start_workflow(
        "
mode: mapreduce
map:
  input: {shell: seq 1 4}
  max_parallel: 2
  agent_template:
    - shell: |
        echo ${item} >> log
        test ${item} = 1 || exit 1
        until [ -e go ]; do sleep 0.01; done
      breaker: {name: shared, failure_threshold: 2, recovery_timeout: 10s}
",
    );
    let open = sandbox.wait_for_open_breaker("shared");
    sandbox.write("go", "");
    sandbox.event("attempt_succeeded");
    let breaker = sandbox.breaker("shared");
    assert_eq!(breaker["until"], open["until"], "it neither closes nor opens it again");
    assert_eq!(breaker["history"], open["history"]);
    engine.kill();
    assert_eq!(sandbox.lines("log").len(), 3);
}

#[test]
fn a_breaker_can_be_tripped_and_reset_while_a_job_runs() {
    let sandbox = dependent(40, 2, "recovery_timeout: 10s", "");
    sandbox.write("up", "");
    sandbox.write("slow", "");
    sandbox.write(
        "w.yaml",
        &sandbox.read("w.yaml").replace("exit; fi", "until [ ! -e slow ]; do sleep 0.01; done; exit; fi"),
    );
    let engine = sandbox.start_run();
    sandbox.wait_for_lines("log", 2);
    let tripped = sandbox.call(&["breaker", "trip", "shared"]).exits(0);
    assert!(tripped.out.starts_with("breaker shared: open since "), "{tripped:?}");
    std::fs::remove_file(sandbox.path("slow")).unwrap();
    wait_until_held(&sandbox, 2);
    assert_eq!(sandbox.lines("log").len(), 2, "nothing starts while it is open");
    let reset = sandbox.json(&["breaker", "reset", "shared", "--json"]);
    assert_fields!(reset, {"state": "closed", "until": null});
    let report = engine.wait().exits(0).json();
    assert_fields!(report, {"attempts": 40, "retries": 0});
    assert_eq!(sandbox.lines("log").len(), 40);
    let breaker = sandbox.breaker("shared");
    assert_eq!((changes(&breaker, "tripped"), changes(&breaker, "reset")), (1, 1));
    assert_eq!(breaker["history"][1]["job"], Value::Null, "by hand");
}

#[test]
fn a_breaker_tripped_by_hand_recovers_by_itself() {
    let sandbox = dependent(3, 3, "recovery_timeout: 100ms, half_open_max_calls: 2", "");
    sandbox.write("up", "");
    sandbox.run().exits(0);
    sandbox.call(&["breaker", "trip", "shared"]).exits(0);
    sandbox.run().exits(0);
    let breaker = sandbox.breaker("shared");
    assert_eq!((probes(&breaker), &breaker["state"]), (2, &json!("closed")));
    assert_eq!(failed_and_done(&sandbox), (0, 6));
}

#[test]
fn breakers_are_listed_and_shown_for_people_and_machines() {
    let sandbox = dependent(2, 1, LONG, "");
    let none = sandbox.call(&["breaker", "ls"]).exits(0);
    assert_eq!(none.out, "");
    assert!(none.err.contains("no breakers yet"), "{none:?}");
    sandbox.write("up", "");
    sandbox.run().exits(0);
    let listed = sandbox.call(&["breaker", "ls"]).exits(0);
    let lines: Vec<&str> = listed.out.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[1].starts_with("shared"), "{lines:?}");
    assert!(lines[1].ends_with("closed, no failures"));
    sandbox.call(&["breaker", "trip", "shared"]).exits(0);
    let listing = sandbox.stdout(&["breaker", "show", "shared"]);
    for sentence in [
        "opens for 1m after 2 failures in a row; 3 successes close it",
        "while open, commands are held",
        "by hand",
    ] {
        assert!(listing.contains(sentence), "{sentence}: {listing}");
    }
    let breaker = sandbox.breaker("shared");
    let listed = sandbox.json(&["breaker", "ls", "--json"]);
    for key in ["breaker", "state", "failures", "successes", "opened_at", "until", "probe", "settings"] {
        assert_eq!(listed.get(key), breaker.get(key), "{key}");
        assert!(listed.get(key).is_some(), "{key}");
    }
    assert_eq!(
        breaker["settings"],
        json!({
            "failure_threshold": 2, "recovery_timeout": "1m", "half_open_max_calls": 3,
            "when_open": "hold", "max_hold": null,
        })
    );
}

#[test]
fn an_unknown_breaker_is_not_found() {
    let sandbox = Sandbox::of("[{shell: 'true'}]");
    sandbox.run().exits(0);
    for what in ["show", "trip", "reset"] {
        let refused =
            sandbox.call(&["breaker", what, "unknown"]).exits(6).err_contains("breaker `unknown` not found");
        assert_eq!(refused.out, "");
    }
    assert_eq!(sandbox.stdout(&["breaker", "ls", "--json"]), "", "none was made");
}

#[test]
fn where_an_open_breaker_fails_items_they_are_dead_letters_without_an_attempt() {
    let settings = "failure_threshold: 2, recovery_timeout: 1h, when_open: fail";
    let sandbox = dependent(5, 1, settings, "");
    sandbox.edit_workflow("attempts: 3", "attempts: 0");
    let report = sandbox.run().exits(4).json();
    assert_eq!(report["attempts"], 2);
    assert_eq!(report["items"]["dead"], 5);
    assert_eq!(failed_and_done(&sandbox), (2, 0));
    let reasons: Vec<_> = sandbox
        .dead_letters()
        .iter()
        .map(|letter| {
            let made = letter["attempts"].as_array().unwrap().len();
            (text(&letter["reason"]), made)
        })
        .collect();
    let first = ("attempts".to_owned(), 1);
    let rest = ("circuit_open".to_owned(), 0);
    assert_eq!(reasons, [&first, &first, &rest, &rest, &rest].map(Clone::clone));
    assert_contains(&sandbox.dead_letters()[4]["error"], "`shared`");
}

#[test]
fn an_item_waiting_for_its_retry_fails_with_its_history_if_an_open_breaker_fails_items() {
    let settings = "failure_threshold: 2, recovery_timeout: 1h, when_open: fail";
    let sandbox = dependent(2, 2, settings, "");
    sandbox.run().exits(4);
    let mut made = 0;
    for letter in sandbox.dead_letters() {
        assert_eq!(letter["reason"], "circuit_open");
        made += letter["attempts"].as_array().unwrap().len();
    }
    // One item may be at its second attempt when the other fails.
    assert!((2..=3).contains(&made), "{made}");
    assert_eq!(failed_and_done(&sandbox), (made, 0));
}

#[test]
fn an_item_held_longer_than_max_hold_fails() {
    let sandbox = dependent(4, 1, &format!("{LONG}, max_hold: 50ms"), "");
    sandbox.edit_workflow("attempts: 3", "attempts: 0");
    let report = sandbox.run().exits(4).json();
    assert_eq!((&report["attempts"], &report["items"]["dead"]), (&json!(2), &json!(4)));
    let events = sandbox.lawful_events();
    let held = all(&events, "held");
    assert_eq!(held.len(), 2);
    for (hold, letter) in held.iter().zip(&sandbox.dead_letters()[2..]) {
        assert!(hold["expires_at"].is_string(), "{hold}");
        assert_fields!(letter, {"reason": "circuit_open", "attempts": []});
    }
}

#[test]
fn held_time_counts_to_the_deadline_of_an_item() {
    let sandbox = dependent(2, 2, LONG, "  timeout_config: {agent_timeout_secs: 1}");
    sandbox.run().exits(4);
    assert!((2..=3).contains(&failed_and_done(&sandbox).0));
    for letter in sandbox.dead_letters() {
        assert_eq!(letter["reason"], "deadline");
        assert_contains(&letter["error"], "while the breaker `shared` was open");
    }
}

#[test]
fn held_time_counts_to_the_deadline_of_the_job() {
    let sandbox = dependent(3, 2, LONG, "deadline: 700ms");
    let report = sandbox.run().exits(1).json();
    assert_eq!(report["reason"], "deadline");
    assert!(failed_and_done(&sandbox).0 <= 3);
    sandbox.lawful_events();
}

#[test]
fn held_items_are_skipped_when_their_job_is_cancelled() {
    let sandbox = dependent(3, 2, LONG, "reduce: [{shell: echo reduced >> log}]");
    let engine = sandbox.start_run();
    let many = held(&wait_until_held(&sandbox, 2)).len();
    let before = failed_and_done(&sandbox);
    sandbox.call(&["cancel", "@last"]).exits(0);
    let report = engine.wait().exits(1).json();
    assert_eq!(report["status"], "cancelled");
    let events = sandbox.lawful_events();
    let skipped = all(&events, "item_skipped");
    assert_eq!(skipped.len(), many);
    assert!(skipped.iter().all(|event| event["reason"] == "cancelled"));
    assert_eq!(failed_and_done(&sandbox), before);
}

#[test]
fn a_job_suspended_while_its_items_are_held_is_resumed_from_there() {
    let sandbox = dependent(5, 2, LONG, "");
    let engine = sandbox.start_run();
    let many = held(&wait_until_held(&sandbox, 2)).len();
    let (failed, done) = failed_and_done(&sandbox);
    engine.signal("INT");
    let report = engine.wait().exits(75).json();
    assert_eq!(report["status"], "suspended");
    let until = sandbox.breaker("shared")["until"].clone();
    let engine = sandbox.start_resume();
    let resumed = sandbox.event("job_resumed");
    assert_eq!(resumed["restored"]["held"], many);
    assert_eq!(sandbox.breaker("shared")["until"], until);
    assert_eq!(failed_and_done(&sandbox), (failed, done));
    sandbox.write("up", "");
    sandbox.reset_breaker("shared");
    engine.wait().exits(0);
    assert_eq!(failed_and_done(&sandbox), (failed, 5));
    sandbox.lawful_events();
}

#[test]
fn nothing_is_released_while_its_job_is_paused() {
    let sandbox = dependent(5, 2, LONG, "");
    let engine = sandbox.start_run();
    wait_until_held(&sandbox, 2);
    let (failed, _) = failed_and_done(&sandbox);
    sandbox.call(&["pause", "@last"]).exits(0);
    sandbox.event("job_paused");
    sandbox.write("up", "");
    sandbox.reset_breaker("shared");
    let paused = sandbox.show();
    assert_eq!(paused["status"], "paused", "{paused}");
    assert_eq!(failed_and_done(&sandbox), (failed, 0));
    sandbox.call(&["unpause", "@last"]).exits(0);
    engine.wait().exits(0);
    assert_eq!(failed_and_done(&sandbox), (failed, 5));
    let events = sandbox.lawful_events();
    let unpaused = one(&events, "job_unpaused")["seq"].as_u64();
    let released = all(&events, "released");
    assert!(released.iter().all(|event| event["seq"].as_u64() > unpaused));
}

#[test]
fn a_tolerance_counts_no_item_that_is_held() {
    let sandbox = dependent(6, 2, LONG, "  error_policy: {max_failures: 1}");
    let engine = sandbox.start_run();
    wait_until_held(&sandbox, 2);
    sandbox.write("up", "");
    sandbox.reset_breaker("shared");
    assert_eq!(engine.wait().exits(0).json()["items"]["succeeded"], 6);
}

#[test]
fn held_items_are_skipped_when_the_tolerance_is_reached() {
    let (sandbox, engine) = Sandbox::start_workflow(
        "
mode: mapreduce
map:
  input: {shell: seq 1 4}
  max_parallel: 2
  error_policy: {max_failures: 1}
  agent_template:
    - shell: |
        echo ${item} >> log
        test ${item} = 1 && exit 1
        until [ -e go ]; do sleep 0.01; done
        exit 127
      breaker: {name: shared, failure_threshold: 1, recovery_timeout: 1h}
      retry_config: {attempts: 3, backoff: fixed, initial_delay: 3ms}
",
    );
    sandbox.wait_for_events("held items", |events| !held(events).is_empty());
    sandbox.wait_for_lines("log", 2);
    sandbox.write("go", "");
    let report = engine.wait().exits(1).json();
    assert_eq!(report["reason"], "tolerance");
    let events = sandbox.lawful_events();
    let skipped = all(&events, "item_skipped");
    assert!(skipped.iter().all(|event| event["reason"] == "tolerance"));
    assert_eq!(held(&events), [].into());
    assert_eq!(sandbox.lines("log").len(), 2);
}
