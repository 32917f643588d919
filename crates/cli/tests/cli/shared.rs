//! Limits that items share, as people see them: completion rule, pool, tolerance, deadlines.

use crate::home::CliHome;
use crate::plain::{at, plain};

/// Two of four are enough; south runs until the test lets it end.
const BEST_EFFORT: &str = "
name: regions
mode: mapreduce
map:
  input: {shell: \"printf 'north\\nsouth\\neast\\nwest\\n'\"}
  max_parallel: 2
  best_effort: true
  best_effort_min_dcs: 2
  agent_template:
    - id: ask
      shell: |
        case ${item} in
          south) until [ -e go ] || [ ! -e w.yaml ]; do sleep 0.01; done ;;
          west) echo no answer >&2; exit 3 ;;
        esac
reduce:
  - id: report
    shell: touch go
";

const POOL: &str = "
name: orders
mode: mapreduce
deadline: 5h
retry_budget: 2
retry_budget_per_workflow: 2
map:
  input: {shell: \"printf 'south\\nnorth\\neast\\n'\"}
  max_parallel: 1
  agent_timeout_secs: 7200
  error_policy:
    max_failures: 5
    failure_threshold: 0.25
    retry_config: {attempts: 4, backoff: fixed, initial_delay: 1ms}
  agent_template:
    - id: charge
      shell: 'test ${item} != north || { echo connection refused >&2; exit 3; }'
";

/// A job that has run, what it said, and its id.
fn ran(workflow: &str, code: i32) -> (CliHome, String, String) {
    let home = CliHome::new();
    home.write("w.yaml", workflow);
    let said = home.run(&["run", "w.yaml"]).exits(code);
    let listed = home.json(&["ls", "--json"]);
    let job = listed.first().map(|job| at(job, "/job").clone());
    let job = job.and_then(|job| job.as_str().map(str::to_owned));
    (home, said.err + &said.out, job.expect("a job"))
}

/// `show` without what is drawn to scale.
fn shown(home: &CliHome, job: &str) -> String {
    let shown = plain(&home.run(&["show", job]).exits(0).out, job);
    let head = shown.split("  timeline").next().unwrap_or_default();
    head.to_owned()
}

#[test]
fn a_step_that_has_enough_names_what_it_did_not_wait_for() {
    let (home, said, job) = ran(BEST_EFFORT, 0);
    snapbox::assert_data_eq!(
        plain(&said, &job),
        snapbox::str![[r"
job JOB regions
  map: 4 items, 2 at a time
  map: 2 of 4 succeeded, 2 required; 2 not waited for
job JOB completed
  2 of 4 items succeeded, 2 not waited for; 4 attempts; took SOON
  min_dcs_reached (2/2): 2 of 4 succeeded, 2 required; not waited for: south, west

"]]
    );
    snapbox::assert_data_eq!(
        shown(&home, &job),
        snapbox::str![[r"
job JOB regions
  status completed (run 1)
  submitted TIME
  progress 2 of 4 items succeeded, 2 not waited for; 4 attempts; took SOON
  map completed, 2 of 4 done, 2 not waited for
    not waited for: south (cancelled)
    not waited for: west (cancelled)
  report completed
  completion min_dcs_reached (2/2): 2 of 4 succeeded, 2 required; 2 not waited for

"]]
    );
    let explained = home.run(&["explain", &job]).exits(0);
    snapbox::assert_data_eq!(
        plain(&explained.out, &job),
        snapbox::str![[r"
job JOB regions
  completed
  2 of 4 items succeeded, 2 not waited for; 4 attempts; took SOON
  pool none; only the limits of each command apply
  completion min_dcs_reached (2/2): 2 of 4 succeeded, 2 required; 2 not waited for
  not waited for south (cancelled), west (cancelled)

"]]
    );
    let west = home.run(&["explain", &format!("{job}/west")]).exits(0);
    snapbox::assert_data_eq!(
        plain(&west.out, &job),
        snapbox::str![[r"
job JOB item west
  not waited for (cancelled): the step completed without it, min_dcs_reached (2/2)


"]]
    );
}

#[test]
fn a_step_whose_deadline_passed_reports_what_had_arrived() {
    let late = "best_effort_min_dcs: 3\n  best_effort_deadline_seconds: 1";
    let (home, said, job) = ran(&BEST_EFFORT.replace("best_effort_min_dcs: 2", late), 4);
    snapbox::assert_data_eq!(
        plain(&said, &job),
        snapbox::str![[r"
job JOB regions
  map: 4 items, 2 at a time
  west: stopped after 1 attempt: exit status 3: no answer
  map: deadline passed: 2 of 4 succeeded, 1 failed, 3 required; 1 not waited for
job JOB completed below its minimum (deadline)
  error: deadline_expired (completed: 2): 3 of 4 had to succeed
  2 of 4 items succeeded, 1 dead letter, 1 not waited for; 5 attempts; took SOON
  deadline_expired (completed: 2): deadline passed: 2 of 4 succeeded, 1 failed, 3 required; not waited for: south
  why: undaunted explain JOB
  again: undaunted dlq redrive JOB

"]]
    );
    snapbox::assert_data_eq!(
        shown(&home, &job),
        snapbox::str![[r"
job JOB regions
  status partial (run 1)
  submitted TIME
  progress 2 of 4 items succeeded, 1 dead letter, 1 not waited for; 5 attempts; took SOON
  error deadline_expired (completed: 2): 3 of 4 had to succeed
  map completed, 2 of 4 done, 1 dead, 1 not waited for
    dead: west (attempts)
    not waited for: south (deadline)
  report completed
  completion deadline_expired (completed: 2): deadline passed: 2 of 4 succeeded, 1 failed, 3 required; 1 not waited for

"]]
    );
    let explained = home.run(&["explain", &job]).exits(0);
    snapbox::assert_data_eq!(
        plain(&explained.out, &job),
        snapbox::str![[r"
job JOB regions
  completed below its minimum (deadline): deadline passed: 2 of 4 succeeded, 1 failed, 3 required
  2 of 4 items succeeded, 1 dead letter, 1 not waited for; 5 attempts; took SOON
  first failure deadline_expired (completed: 2): 3 of 4 had to succeed
  pool none; only the limits of each command apply
  completion deadline_expired (completed: 2): deadline passed: 2 of 4 succeeded, 1 failed, 3 required; 1 not waited for
  not waited for south (deadline)

  west: dead letter (attempts): All attempts used
    no answer
    undaunted explain JOB/west

"]]
    );
}

#[test]
fn late_results_are_reported() {
    let leave = "best_effort_min_dcs: 2\n  on_complete: leave";
    let (home, said, job) = ran(&BEST_EFFORT.replace("best_effort_min_dcs: 2", leave), 0);
    snapbox::assert_data_eq!(
        plain(&said, &job),
        snapbox::str![[r"
job JOB regions
  map: 4 items, 2 at a time
  map: 2 of 4 succeeded, 2 required; 2 not waited for
  south: late result: succeeded, not counted
job JOB completed
  2 of 4 items succeeded, 2 not waited for; 4 attempts; took SOON
  min_dcs_reached (2/2): 2 of 4 succeeded, 2 required; not waited for: south, west

"]]
    );
    snapbox::assert_data_eq!(
        shown(&home, &job),
        snapbox::str![[r"
job JOB regions
  status completed (run 1)
  submitted TIME
  progress 2 of 4 items succeeded, 2 not waited for; 4 attempts; took SOON
  map completed, 2 of 4 done, 2 not waited for
    not waited for: south (cancelled)
    not waited for: west (cancelled)
  report completed
  completion min_dcs_reached (2/2): 2 of 4 succeeded, 2 required; 2 not waited for
  late south succeeded at TIME, not counted (log_only)

"]]
    );
    let south = home.run(&["explain", &format!("{job}/south")]).exits(0);
    snapbox::assert_data_eq!(
        plain(&south.out, &job),
        snapbox::str![[r"
job JOB item south
  not waited for (cancelled): the step completed without it, min_dcs_reached (2/2)
  late result: succeeded at TIME, not counted (log_only)

  ask, attempt 1 of 1: succeeded after SOON
    at TIME

  output: undaunted logs JOB/south

"]]
    );
    let events = home.run(&["events", &job]).exits(0);
    let events = plain(&events.out, &job);
    let of_rule =
        events.lines().filter(|line| line.contains("completion_reached") || line.contains("late_result"));
    let of_rule = of_rule.filter_map(|line| line.split_once("TIME "));
    let of_rule: Vec<&str> = of_rule.map(|(_, said)| said).collect();
    snapbox::assert_data_eq!(
        of_rule.join("\n"),
        snapbox::str![[r"
completion_reached map: min_dcs_reached (2/2); 2 of 4 succeeded, 0 failed, 2 missing
late_result south succeeded, not counted (log_only)
"]]
    );
}

#[test]
fn a_pool_says_who_used_it_and_can_be_topped_up() {
    let (home, said, job) = ran(POOL, 4);
    assert!(said.contains("job_budget_exhausted (2/2)"), "{said}");
    snapbox::assert_data_eq!(
        shown(&home, &job),
        snapbox::str![[r"
job JOB orders
  status partial (run 1)
  submitted TIME
  progress 2 of 3 items succeeded, 1 dead letter; 5 attempts, 2 retries, 2ms of delays; took SOON
  error The job's retry pool is used up: job_budget_exhausted (2/2); last error: exit status 3: connection refused
  map completed, 2 of 3 done, 1 dead
    dead: north (job_budget_exhausted)
  pool 2 of 2 retries used, at most 2 per item; add more: undaunted budget top-up JOB N
  tolerance 1 failed, stops at 5 (4 more); 1 of 3 settled items failed, stops above 25%, once 10 are settled
  deadline TIME; each item has 2h from its first start

"]]
    );
    let output = |arguments: &[&str]| plain(&home.run(arguments).exits(0).out, &job);
    snapbox::assert_data_eq!(
        output(&["budget", "show", &job]),
        snapbox::str![[r"
job JOB: 2 of 2 retries used, 0 left; at most 2 per item
      2 north (its whole share)
add up to 48: undaunted budget top-up JOB 48

"]]
    );
    snapbox::assert_data_eq!(
        output(&["budget", "top-up", &job, "2"]),
        snapbox::str![[r"
added 2 retries to job JOB, 4 in total
redrive its dead letters: undaunted dlq redrive JOB

"]]
    );
    snapbox::assert_data_eq!(
        output(&["budget", "top-up", &job, "100"]),
        snapbox::str![[r"
added 46 retries to job JOB, 50 in total (the operator allows at most 50)
redrive its dead letters: undaunted dlq redrive JOB

"]]
    );
    let more = home.run(&["budget", "top-up", &job, "1"]).exits(2);
    snapbox::assert_data_eq!(
        more.err.replace(&job, "JOB"),
        snapbox::str![[r"
error: the pool of job JOB has 50 retries, and the operator allows at most 50 (RETRY_BUDGET_MAX at submission); `undaunted budget show JOB` shows which items used them

"]]
    );
    let events = plain(&home.run(&["events", &job]).exits(0).out, &job);
    let topped = events.lines().filter_map(|line| line.split_once("TIME "));
    let topped = topped.map(|(_, said)| said);
    let topped: Vec<&str> = topped.filter(|it| it.starts_with("pool_topped_up")).collect();
    snapbox::assert_data_eq!(
        topped.join("\n"),
        snapbox::str![[r"
pool_topped_up 2 of 2 requested retries added, 4 in total
pool_topped_up 46 of 100 requested retries added, 50 in total
"]]
    );
}

#[test]
fn a_job_without_a_pool_says_what_bounds_it() {
    let (home, _, job) = ran("- shell: 'true'\n", 0);
    let none = home.run(&["budget", "show", &job]).exits(0);
    snapbox::assert_data_eq!(
        none.out.replace(&job, "JOB"),
        snapbox::str![[r"
job JOB has no retry pool; only the limits of each command apply
to give a workflow one, set `retry_budget: 20` at its top level

"]]
    );
    let none = home.run(&["budget", "top-up", &job, "5"]).exits(2);
    snapbox::assert_data_eq!(
        none.err.replace(&job, "JOB"),
        snapbox::str![[r"
error: job JOB has no retry pool; to change the limits of its commands, use `undaunted resume JOB --update FILE`

"]]
    );
    let unknown = home.run(&["budget", "show", "unknown"]).exits(6);
    assert!(unknown.err.contains("undaunted ls"), "{}", unknown.err);
}

#[test]
fn too_many_failures_are_reported_with_the_tolerance() {
    let strict = POOL.replace("max_failures: 5", "max_failures: 1");
    let strict = strict.replace("attempts: 4", "attempts: 0");
    let (home, said, job) = ran(&strict, 1);
    snapbox::assert_data_eq!(
        plain(&said, &job),
        snapbox::str![[r"
job JOB orders
  map: 3 items, 1 at a time
  north: stopped after 1 attempt: exit status 3: connection refused
  stopping: Too many items failed
job JOB failed (tolerance)
  error: exit status 3: connection refused
  1 of 3 items succeeded, 1 dead letter, 1 never started; 2 attempts; took SOON
  why: undaunted explain JOB
  again: undaunted dlq redrive JOB

"]]
    );
    let explained = home.run(&["explain", &job]).exits(0);
    snapbox::assert_data_eq!(
        plain(&explained.out, &job),
        snapbox::str![[r"
job JOB orders
  failed (tolerance): Too many items failed
  1 of 3 items succeeded, 1 dead letter, 1 never started; 2 attempts; took SOON
  first failure exit status 3: connection refused
  pool 0 of 2 retries used, at most 2 per item
  tolerance 1 failed, stops at 1; 1 of 2 settled items failed, stops above 25%, once 10 are settled; exceeded
  deadline TIME; each item has 2h from its first start
  never started east (tolerance)

  north: dead letter (attempts): All attempts used
    connection refused
    undaunted explain JOB/north

"]]
    );
}

#[test]
fn rules_are_printed_one_a_line() {
    let home = CliHome::new();
    home.write(
        "w.yaml",
        "
- id: import
  shell: ./import
  breaker: {name: importer}
  retry_config:
    attempts: 4
    initial_delay: 2s
    rules:
      - {exit_code: [64, 65], then: dead_letter}
      - {stderr: could not obtain lock, then: retry, retry_config: {attempts: 20, backoff: fixed}}
      - {stderr: maintenance, exit_code: 1, then: hold}
      - {then: stop}
",
    );
    let printed = home.run(&["explain-config", "w.yaml"]).exits(0);
    snapbox::assert_data_eq!(
        printed.out,
        snapbox::str![[r"
import (line 2)
  attempts         4                        retry_config of the command, line 6
  backoff          exponential (base 2.0)   default
  initial_delay    2s                       retry_config of the command, line 7
  max_delay        30s                      default
  jitter           false                    default
  max_retry_after  5m                       default
  rules            first match wins:        retry_config of the command, line 8
     1  exit_code 64, 65 → dead_letter
     2  stderr /could not obtain lock/ → retry (attempts 20, backoff fixed)
     3  exit_code 1 and stderr /maintenance/ → hold
     4  anything → stop
  breaker          importer                 opens for 1m after 5 failures in a row; commands are held

"]]
    );
}

#[test]
fn explain_config_shows_who_has_a_breaker_and_what_it_is_called() {
    let home = CliHome::new();
    home.write(
        "nightly.yaml",
        "
- {id: get, http: {url: 'http://a.example'}, breaker: true}
- {id: import, shell: ./import, breaker: {failure_threshold: 1, recovery_timeout: 5s, when_open: fail}}
- {id: tell, http: {url: 'http://a.example'}}
",
    );
    let printed = home.run(&["explain-config", "nightly.yaml"]).exits(0);
    snapbox::assert_data_eq!(
        printed.out,
        snapbox::str![[r"
get (line 2)
  runs once: no retry settings
  breaker          (origin of the request)  opens for 1m after 5 failures in a row; commands are held

import (line 3)
  runs once: no retry settings
  breaker          nightly/import           opens for 5s after 1 failure; commands fail

tell (line 4)
  runs once: no retry settings

"]]
    );
    let printed = home.json(&["explain-config", "nightly.yaml", "--json"]);
    let commands = &printed.first().expect("an object")["commands"];
    let named = |index: usize| &commands[index]["breaker"]["name"];
    assert_eq!(*named(0), serde_json::Value::Null);
    assert_eq!(*named(1), "nightly/import");
    assert_eq!(commands[1]["breaker"]["when_open"], "fail");
    assert_eq!(commands[2]["breaker"], serde_json::Value::Null);
}
