//! `explain` and `attempts`: what was decided, by which numbers, and what comes next.

use serde_json::json;

use crate::home::CliHome;
use crate::plain::{at, plain};

const WORKFLOW: &str = "
name: demo
mode: mapreduce
retry_budget: 6
retry_budget_per_workflow: 3
map:
  input: {shell: \"printf 'north\\neast\\nsouth\\n'\"}
  max_parallel: 1
  error_policy:
    retry_config:
      attempts: 3
      initial_delay: 150ms
      max_delay: 200ms
      retry_budget: 400ms
      rules:
        - {exit_code: 7, then: dead_letter}
  agent_template:
    - id: ask
      shell: |
        echo \"${item} does not answer\" >&2
        test ${item} = north && exit 3; test ${item} = east && exit 7; exit 0
";

/// A home in which the job has run, and the id of the job.
fn ran() -> (CliHome, String) {
    let home = CliHome::new();
    home.write("w.yaml", WORKFLOW);
    let done = home.json(&["run", "w.yaml", "--json"]);
    let job = done.first().map(|it| at(it, "/job").clone());
    let job = job.and_then(|job| job.as_str().map(str::to_owned));
    (home, job.expect("a job"))
}

#[test]
fn every_decision_about_an_item_is_explained_with_its_arithmetic() {
    let (home, job) = ran();
    let printed = home.run(&["explain", &format!("{job}/north")]).exits(0);
    snapbox::assert_data_eq!(
        plain(&printed.out, &job),
        snapbox::str![[r"
job JOB item north
  dead letter (retry_budget): Retry budget exhausted

  ask, attempt 1 of 4: failed after SOON
    at TIME
    failure exit status 3: north does not answer
    rule none matched; the failure is transient
    delay 150ms computed, 150ms capped, 150ms drawn
    decision retry 1 of 3 (attempt 2 of 4) in 150ms, due TIME
    retries 0 → 1 of 3
    budget 0s → 150ms of 400ms
    expires TIME, if the job is not running by then
    pool 0 → 1 of 6, this item 0 → 1 of 3

  ask, attempt 2 of 4: failed after SOON
    at TIME
    failure exit status 3: north does not answer
    rule none matched; the failure is transient
    delay 300ms computed, 200ms capped, 200ms drawn
    decision retry 2 of 3 (attempt 3 of 4) in 200ms, due TIME
    retries 1 → 2 of 3
    budget 150ms → 350ms of 400ms
    expires TIME, if the job is not running by then
    pool 1 → 2 of 6, this item 1 → 2 of 3

  ask, attempt 3 of 4: failed after SOON
    at TIME
    failure exit status 3: north does not answer
    rule none matched; the failure is transient

  ask stopped (retry_budget)
    at TIME
    why Retry budget exhausted (spent 350ms, next delay 200ms, budget 400ms); last error: exit status 3: north does not answer
    delay 600ms computed, 200ms capped, 200ms drawn
    retries 2 → 2 of 3
    budget 350ms → 350ms of 400ms
    pool 2 → 2 of 6, this item 2 → 2 of 3

  output: undaunted logs JOB/north
  again: undaunted dlq redrive JOB north

"]]
    );
}

#[test]
fn the_rule_that_matched_is_shown_as_it_is_written() {
    let (home, job) = ran();
    let printed = home.run(&["explain", &format!("{job}/east/ask")]).exits(0);
    let said = plain(&printed.out, &job);
    let rule = "    rule 1 of the table: exit_code 7 → dead_letter\n";
    assert!(said.contains(rule), "{said}");
    let shown = home.json(&["explain", &format!("{job}/east"), "--json"]);
    let shown = shown.first().expect("an object");
    assert_eq!(at(shown, "/history/0/attempt/rule"), 0);
    assert_eq!(*at(shown, "/history/0/rule"), json!({ "exit_code": [7], "then": "dead_letter" }));
    assert_eq!(at(shown, "/history/1/reason"), "rule");
    assert_eq!(*at(shown, "/history/1/decision/pool"), json!({ "before": 1, "after": 1, "allowed": 6 }));
}

#[test]
fn a_job_is_explained_with_the_items_worth_a_look() {
    let (home, job) = ran();
    let printed = home.run(&["explain", &job]).exits(0);
    snapbox::assert_data_eq!(
        plain(&printed.out, &job),
        snapbox::str![[r"
job JOB demo
  completed with dead letters (rule): A rule stopped it
  1 of 3 items succeeded, 2 dead letters; 5 attempts, 2 retries, 350ms of delays; took SOON
  first failure A rule stopped it; last error: exit status 7: east does not answer
  pool 2 of 6 retries used, at most 3 per item

  north: dead letter (retry_budget): Retry budget exhausted
    north does not answer
    undaunted explain JOB/north

  east: dead letter (rule): A rule stopped it
    east does not answer
    undaunted explain JOB/east

"]]
    );
}

#[test]
fn every_attempt_is_listed_and_that_of_one_item_alone_if_asked() {
    let (home, job) = ran();
    let printed = home.run(&["attempts", &job]).exits(0);
    let said = plain(&printed.out, &job);
    let said: Vec<&str> = said.lines().collect();
    let head = "item command attempt when took outcome";
    assert_eq!(said.first(), Some(&head));
    assert_eq!(said.len(), 6, "{said:?}");
    let first = said.get(1).expect("an attempt");
    assert!(first.starts_with("north ask 1 TIME "), "{first}");
    let ends = "failed: exit status 3: north does not answer; retry 1 in 150ms";
    assert!(first.ends_with(ends), "{first}");
    let succeeded = said.iter().filter(|line| line.ends_with(" succeeded"));
    assert_eq!(succeeded.count(), 1, "{said:?}");

    let north = home.json(&["attempts", &format!("{job}/nor"), "--json"]);
    let numbers: Vec<_> = north.iter().map(|it| at(it, "/attempt").as_u64()).collect();
    assert_eq!(numbers, [Some(1), Some(2), Some(3)]);
    let delays: Vec<_> = north.iter().map(|it| at(it, "/delay_ms").as_u64()).collect();
    assert_eq!(delays, [Some(150), Some(200), None]);
    let by_place = home.json(&["attempts", &format!("{job}/#1"), "--json"]);
    let item = by_place.first().map(|it| at(it, "/item").clone());
    assert_eq!(item, Some(json!("east")));
}

#[test]
fn a_waiting_item_shows_its_due_time_and_the_limit_that_ends_it() {
    let home = CliHome::new();
    home.write(
        "w.yaml",
        "- {id: wait, shell: exit 5, retry_config: {attempts: 9, initial_delay: 1h, max_delay: 3h, \
         retry_budget: 4h}}\n",
    );
    let mut run = home.command(&["run", "w.yaml"]).spawn().expect("it runs");
    let mut events = String::new();
    while !events.contains("retry_scheduled") {
        events = home.run(&["events", "@last"]).out;
    }
    let running = home.run(&["explain", "@last/wait"]).exits(0).out;
    assert!(running.contains("waiting for retry 1 of 9 (attempt 2 of 10), due in 59m"), "{running}");
    assert!(!running.contains("; no process"), "{running}");
    run.kill().expect("killed");
    run.wait().expect("gone");
    let left = home.run(&["explain", "@last/wait"]).exits(0).out;
    assert!(left.contains("; no process is running the job: undaunted resume "), "{left}");
    let next = "  if it keeps failing the same way, immediately each time:\n    \
                retry 2 of 9 (attempt 3 of 10) in 2h, 3h of 4h spent\n    \
                then it stops (retry_budget): Retry budget exhausted (spent 10800s, next delay \
                10800s, budget 14400s)\n";
    assert!(left.contains(next), "{left}");
    let shown = home.json(&["explain", "@last/wait", "--json"]);
    let shown = shown.first().expect("an object");
    assert_eq!(at(shown, "/status"), "waiting");
    assert_eq!(at(shown, "/next/retries/0/delay_ms"), 7_200_000);
    assert_eq!(at(shown, "/next/stops/reason"), "retry_budget");
    assert_eq!(at(shown, "/next/stops/after_retries"), 1);
    let job = home.json(&["explain", "@last", "--json"]);
    let job = job.first().expect("an object");
    assert_eq!(at(job, "/status"), "interrupted");
    assert_eq!(at(job, "/look/0/item"), "wait");
}

#[test]
fn an_unknown_job_is_not_found_and_an_ambiguous_one_is_listed() {
    let (home, job) = ran();
    for (of, code) in [
        (format!("{job}/nowhere"), 6),
        (format!("{job}/north/nothing"), 6),
        (format!("{job}/#9"), 6),
        ("no-such-job".to_owned(), 6),
    ] {
        for command in ["explain", "attempts", "logs"] {
            let printed = home.run(&[command, &of]);
            assert_eq!(printed.code, code, "{command} {of}: {}", printed.err);
        }
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let (home, job) = ran();
    for command in ["explain", "attempts", "events", "show", "logs", "state export"] {
        let mut arguments: Vec<&str> = command.split(' ').collect();
        arguments.extend([job.as_str(), "--json"]);
        let mut child = home.command(&arguments).spawn().expect("it runs");
        drop(child.stdout.take());
        let ended = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!((ended.status.code(), said.as_str()), (Some(0), ""), "{command}");
    }
}

#[test]
fn a_handler_that_saves_its_command_is_part_of_the_story() {
    let home = CliHome::new();
    home.write(
        "w.yaml",
        "- {id: ask, shell: test -e fixed, on_failure: {shell: touch fixed, max_attempts: 1}}\n",
    );
    let _ = home.run(&["run", "w.yaml"]).exits(0);
    let shown = home.json(&["explain", "@last/ask", "--json"]);
    let shown = shown.first().expect("an object");
    let history = at(shown, "/history").as_array().expect("a list");
    let types: Vec<_> = history.iter().filter_map(|it| at(it, "/type").as_str()).collect();
    assert_eq!(types, ["attempt", "stop", "attempt", "mend", "attempt"]);
    assert_eq!(at(shown, "/history/1/handled"), true);
    assert_eq!(at(shown, "/history/2/attempt/handler"), true);
    assert_eq!(at(shown, "/history/3/again"), true);
    let said = home.run(&["explain", "@last/ask"]).exits(0).out;
    assert!(said.contains("ask: its `on_failure` handler succeeded\n"), "{said}");
}

#[test]
fn a_command_of_a_list_that_never_started_is_explained() {
    let home = CliHome::new();
    home.write("w.yaml", "[{id: first, shell: exit 1}, {id: second, shell: a}]\n");
    home.run(&["run", "w.yaml"]).exits(1);
    for name in ["second", "sec", "#1"] {
        let said = home.run(&["explain", &format!("@last/{name}")]).exits(0).out;
        assert!(said.contains("item second\n  never started (attempts)\n"), "{name}: {said}");
    }
    let shown = home.json(&["explain", "@last/second", "--json"]);
    let shown = shown.first().expect("an object");
    assert_eq!(at(shown, "/status"), "missing");
    assert_eq!(at(shown, "/history"), &json!([]));
}
