//! Breakers as people see them: what is held, why, until when, and what happened in the end.

use crate::home::CliHome;
use crate::plain::{at, plain};

/// The first failure opens the breaker for an hour.
const LONG: &str = "
name: orders
mode: mapreduce
map:
  input: {shell: \"printf 'north\\neast\\nsouth\\n'\"}
  max_parallel: 1
  error_policy: {retry_config: {attempts: 3, backoff: fixed, initial_delay: 50ms}}
  agent_template:
    - id: charge
      shell: 'echo connection refused >&2; exit 3'
      breaker: {name: payments, failure_threshold: 1, recovery_timeout: 1h, max_hold: 2h}
";

/// The first failure opens it for a moment; the second attempt finds out that all is well.
const SHORT: &str = "
name: orders
commands:
  - id: charge
    shell: 'test -e up || { touch up; echo connection refused >&2; exit 3; }'
    breaker: {name: payments, failure_threshold: 1, recovery_timeout: 300ms, half_open_max_calls: 1}
    retry_config: {attempts: 3, backoff: fixed, initial_delay: 50ms}
";

/// A job whose three items are held, and whose process was killed; and its id.
fn held() -> (CliHome, String) {
    let home = CliHome::new();
    home.write("w.yaml", LONG);
    let mut run = home.command(&["run", "w.yaml"]).spawn().expect("it runs");
    let held = || {
        let events = home.run(&["events", "@last"]).out;
        events.lines().filter(|line| line.contains("  held  ")).count()
    };
    while held() < 3 {}
    run.kill().expect("killed");
    run.wait().expect("gone");
    let job = id(&home);
    (home, job)
}

fn id(home: &CliHome) -> String {
    let listed = home.json(&["ls", "--json"]);
    let job = listed.first().map(|job| at(job, "/job").clone());
    let job = job.and_then(|job| job.as_str().map(str::to_owned));
    job.expect("a job")
}

/// A job that has lived through an outage, what it said, and its id.
fn survived(workflow: &str) -> (CliHome, String, String) {
    let home = CliHome::new();
    home.write("w.yaml", workflow);
    let said = home.run(&["run", "w.yaml"]).exits(0);
    let job = id(&home);
    (home, said.err + &said.out, job)
}

#[test]
fn an_item_that_is_held_is_explained_with_what_comes_next() {
    let (home, job) = held();
    let explained = |item: &str| {
        let printed = home.run(&["explain", &format!("{job}/{item}")]).exits(0);
        plain(&printed.out, &job)
    };
    snapbox::assert_data_eq!(
        explained("north"),
        snapbox::str![[r"
job JOB item north
  held by payments for SOON; no process is running the job: undaunted resume JOB
    since TIME
    breaker open since TIME, next probe in SOON at TIME
    then east probes first; this item is released when the breaker closes
    attempts 3 left; a hold uses no attempts and no budget
    expires TIME: fails in SOON if still held (circuit_open)
    release undaunted breaker reset payments

  charge, attempt 1 of 4: failed after SOON
    at TIME
    failure exit status 3: connection refused
    rule none matched; the failure is transient
    delay 50ms computed, 50ms capped, 50ms drawn
    decision retry 1 of 3 (attempt 2 of 4) in 50ms, due TIME
    retries 0 → 1 of 3
    delays 0s → 50ms in total, no budget

  charge held by payments
    at TIME
    why the breaker was open; next probe at TIME
    attempts 3 left, none used
    expires TIME

  once released, if it keeps failing the same way, immediately each time:
    retry 2 of 3 (attempt 3 of 4) in 50ms
    retry 3 of 3 (attempt 4 of 4) in 50ms
    then it stops (attempts): All attempts used (3 retries, 4 attempts)

  output: undaunted logs JOB/north

"]]
    );
    snapbox::assert_data_eq!(
        explained("east"),
        snapbox::str![[r"
job JOB item east
  held by payments for SOON; no process is running the job: undaunted resume JOB
    since TIME
    breaker open since TIME, next probe in SOON at TIME
    then probes first, to check whether the target is back
    attempts 4 left; a hold uses no attempts and no budget
    expires TIME: fails in SOON if still held (circuit_open)
    release undaunted breaker reset payments

  charge held by payments
    at TIME
    why the breaker was open; next probe at TIME
    attempts 4 left, none used
    expires TIME

  once released, if it fails, immediately each time:
    retry 1 of 3 (attempt 2 of 4) in 50ms
    retry 2 of 3 (attempt 3 of 4) in 50ms
    retry 3 of 3 (attempt 4 of 4) in 50ms
    then it stops (attempts): All attempts used (3 retries, 4 attempts)


"]]
    );
    snapbox::assert_data_eq!(
        explained("south"),
        snapbox::str![[r"
job JOB item south
  held by payments for SOON; no process is running the job: undaunted resume JOB
    since TIME
    breaker open since TIME, next probe in SOON at TIME
    then east probes first; this item is released when the breaker closes
    attempts 4 left; a hold uses no attempts and no budget
    expires TIME: fails in SOON if still held (circuit_open)
    release undaunted breaker reset payments

  charge held by payments
    at TIME
    why the breaker was open; next probe at TIME
    attempts 4 left, none used
    expires TIME

  once released, if it fails, immediately each time:
    retry 1 of 3 (attempt 2 of 4) in 50ms
    retry 2 of 3 (attempt 3 of 4) in 50ms
    retry 3 of 3 (attempt 4 of 4) in 50ms
    then it stops (attempts): All attempts used (3 retries, 4 attempts)


"]]
    );
}

#[test]
fn a_job_in_an_outage_says_what_is_held_and_by_what() {
    let (home, job) = held();
    let explained = home.run(&["explain", &job]).exits(0);
    snapbox::assert_data_eq!(
        plain(&explained.out, &job),
        snapbox::str![[r"
job JOB orders
  interrupted: its process died; resume with `undaunted resume JOB`
  0 of 3 items succeeded; 1 attempt
  pool none; only the limits of each command apply
  breaker payments: open since TIME, next probe in SOON at TIME; holds 3 items of this job

  north: held by payments for SOON; next probe in SOON; 3 attempts left; fails if held for another SOON
    connection refused
    undaunted explain JOB/north

  east: held by payments for SOON; next probe in SOON; this item probes first; 4 attempts left; fails if held for another SOON
    undaunted explain JOB/east

  south: held by payments for SOON; next probe in SOON; 4 attempts left; fails if held for another SOON
    undaunted explain JOB/south

"]]
    );
    let shown = home.run(&["show", &job]).exits(0);
    let shown = plain(&shown.out, &job);
    let shown = shown.split("  timeline").next().unwrap_or_default();
    snapbox::assert_data_eq!(
        shown,
        snapbox::str![[r"
job JOB orders
  status interrupted (run 1)
  submitted TIME
  progress 0 of 3 items succeeded; 1 attempt
  map running, 0 of 3 done, 3 held
    north: held by payments for SOON; next probe in SOON; 3 attempts left; fails if held for another SOON
    east: held by payments for SOON; next probe in SOON; this item probes first; 4 attempts left; fails if held for another SOON
    south: held by payments for SOON; next probe in SOON; 4 attempts left; fails if held for another SOON
  breaker payments: open since TIME, next probe in SOON at TIME; holds 3 items of this job

"]]
    );
    let shown = home.run(&["show", &job]).exits(0).out;
    assert!(shown.contains("~ held, x failed"), "{shown}");
    let east = shown.lines().find(|line| line.starts_with("    east   "));
    assert!(east.is_some_and(|line| line.contains("~~~~")), "{shown}");
}

#[test]
fn a_resume_restores_what_was_held() {
    let (home, job) = held();
    let mut run = home.command(&["resume", &job]).spawn().expect("it runs");
    let resumes = || home.run(&["show", &job, "--resumes"]).out;
    while !resumes().contains("recovered") {}
    run.kill().expect("killed");
    run.wait().expect("gone");
    assert!(resumes().contains("recovered 0 running, 0 waiting, 3 held, 0 done, 0 pending"), "{}", resumes());
    let json = home.json(&["show", &job, "--resumes", "--json"]);
    let json = json.first().expect("an object");
    assert_eq!(at(json, "/resumes/0/restored/held"), 3);
}

#[test]
fn breakers_are_listed_shown_tripped_and_reset() {
    let home = CliHome::new();
    let none = home.run(&["breaker", "ls"]).exits(0);
    assert_eq!(none.out, "");
    snapbox::assert_data_eq!(
        none.err,
        snapbox::str![[r"
no breakers yet; the first job with a command that sets `breaker: {name: api}` creates one

"]]
    );
    let (home, job) = held();
    let said = |arguments: &[&str]| plain(&home.run(arguments).exits(0).out, &job);
    snapbox::assert_data_eq!(
        said(&["breaker", "ls"]),
        snapbox::str![[r"
BREAKER STATE STATUS
payments open open since TIME, next probe in SOON at TIME

"]]
    );
    snapbox::assert_data_eq!(
        said(&["breaker", "show", "payments"]),
        snapbox::str![[r"
breaker payments: open since TIME, next probe in SOON at TIME
  opens for 1h after 1 failure; 3 successes close it
  while open, commands are held for at most 2h and use no attempts
  TIME job JOB configured
  TIME job JOB opened, until TIME
close it now: undaunted breaker reset payments

"]]
    );
    snapbox::assert_data_eq!(
        said(&["breaker", "reset", "payments"]),
        snapbox::str![[r"
breaker payments: closed, no failures

"]]
    );
    snapbox::assert_data_eq!(
        said(&["breaker", "trip", "payments"]),
        snapbox::str![[r"
breaker payments: open since TIME, next probe in SOON at TIME
until then, its commands are held in every job of this store; running attempts continue
close it now: undaunted breaker reset payments

"]]
    );
    snapbox::assert_data_eq!(
        said(&["breaker", "show", "payments"]),
        snapbox::str![[r"
breaker payments: open since TIME, next probe in SOON at TIME
  opens for 1h after 1 failure; 3 successes close it
  while open, commands are held for at most 2h and use no attempts
  TIME job JOB configured
  TIME job JOB opened, until TIME
  TIME by hand reset
  TIME by hand tripped, until TIME
close it now: undaunted breaker reset payments

"]]
    );
    for what in ["show", "trip", "reset"] {
        let unknown = home.run(&["breaker", what, "mail"]).exits(6);
        assert_eq!(
            unknown.err,
            "error: breaker `mail` not found; `undaunted breaker ls` lists all breakers\n"
        );
    }
}

#[test]
fn an_outage_that_is_over_is_explained_from_the_first_failure_to_the_last_probe() {
    let (home, said, job) = survived(SHORT);
    snapbox::assert_data_eq!(
        plain(&said, &job),
        snapbox::str![[r"
job JOB orders
  breaker `payments` opened (1 failure); its commands are on hold, next probe in SOON
  charge: attempt 1 of 4 failed (exit status 3: connection refused); retry 1 of 3 in 50ms
  breaker `payments` closed: the target is back
  charge: attempt 2 succeeded
job JOB completed
  1 of 1 item succeeded; 2 attempts, 1 retry, 50ms of delays; took SOON

"]]
    );
    let explained = home.run(&["explain", &format!("{job}/charge")]).exits(0);
    snapbox::assert_data_eq!(
        plain(&explained.out, &job),
        snapbox::str![[r"
job JOB item charge
  succeeded

  charge, attempt 1 of 4: failed after SOON
    at TIME
    failure exit status 3: connection refused
    rule none matched; the failure is transient
    delay 50ms computed, 50ms capped, 50ms drawn
    decision retry 1 of 3 (attempt 2 of 4) in 50ms, due TIME
    retries 0 → 1 of 3
    delays 0s → 50ms in total, no budget

  charge held by payments
    at TIME
    why the breaker was open; next probe at TIME
    attempts 3 left, none used

  charge released by payments after SOON
    at TIME

  charge, attempt 2 of 4: succeeded after SOON
    at TIME
    probe checks whether the target of breaker payments is back

  output: undaunted logs JOB/charge

"]]
    );
    let events = plain(&home.run(&["events", &job]).exits(0).out, &job);
    let about = ["held", "released", "breaker_", "attempt_started"];
    let events = events.lines().filter(|line| {
        // What happens to a breaker has no number.
        let mut words = line.split_whitespace();
        words.any(|word| about.iter().any(|about| word.starts_with(about)))
    });
    let events: Vec<&str> = events.collect();
    snapbox::assert_data_eq!(
        events.join("\n"),
        snapbox::str![[r"
    3 TIME attempt_started charge attempt 1 start 1
       TIME breaker_opened payments: 1 failure, next probe at TIME
    7 TIME held charge attempt 1 by payments, next probe at TIME, 3 attempts left
    8 TIME released charge attempt 1 by payments, held for SOON
       TIME breaker_half_opened payments: probing
    9 TIME attempt_started charge attempt 2 start 2, breaker payments, probe true
       TIME breaker_closed payments: commands start again
"]]
    );
    let shown = home.run(&["breaker", "show", "payments"]).exits(0);
    snapbox::assert_data_eq!(
        plain(&shown.out, &job),
        snapbox::str![[r"
breaker payments: closed, no failures
  opens for 300ms after 1 failure; 1 success closes it
  while open, commands are held and use no attempts
  TIME job JOB configured
  TIME job JOB opened, until TIME
  TIME job JOB half open; first probe
  TIME job JOB closed; enough probes succeeded

"]]
    );
}

#[test]
fn items_held_too_long_or_failed_by_an_open_breaker_show_the_reason() {
    let home = CliHome::new();
    for (setting, item) in [("max_hold: 300ms", "north"), ("when_open: fail", "east")] {
        home.write("w.yaml", &LONG.replace("max_hold: 2h", setting));
        home.run(&["run", "w.yaml"]).exits(4);
        let job = id(&home);
        let explained = home.run(&["explain", &format!("{job}/{item}")]).exits(0);
        let explained = plain(&explained.out, &job);
        let end = explained.split("  charge stopped").nth(1);
        assert!(end.is_some(), "{explained}");
        let end = end.unwrap_or_default();
        assert!(
            end.starts_with(" (circuit_open)\n    at TIME\n    why The circuit breaker is open"),
            "{end}"
        );
        assert!(end.contains("again: undaunted dlq redrive"), "{end}");
        let held = explained.contains("charge held by payments");
        assert_eq!(held, item == "north", "{explained}");
    }
}

#[test]
fn a_rule_that_holds_is_explained_with_its_row() {
    let rules = "attempts: 3, rules: [{exit_code: 9, then: stop}, {stderr: refused, then: hold}]";
    let (home, said, job) = survived(&SHORT.replace("attempts: 3", rules));
    snapbox::assert_data_eq!(
        plain(&said, &job),
        snapbox::str![[r"
job JOB orders
  breaker `payments` opened (a rule tripped it); its commands are on hold, next probe in SOON
  charge: attempt 1 of 4 failed (exit status 3: connection refused); retry 1 of 3 when payments releases it, next probe in SOON
  breaker `payments` closed: the target is back
  charge: attempt 2 succeeded
job JOB completed
  1 of 1 item succeeded; 2 attempts, 1 retry, 0s of delays; took SOON

"]]
    );
    let explained = home.run(&["explain", &format!("{job}/charge")]).exits(0);
    snapbox::assert_data_eq!(
        plain(&explained.out, &job),
        snapbox::str![[r"
job JOB item charge
  succeeded

  charge, attempt 1 of 4: failed after SOON
    at TIME
    failure exit status 3: connection refused
    rule 2 of the table: stderr /refused/ → hold

  charge held by payments
    at TIME
    why held by a rule; next probe at TIME
    decision retry 1 of 3 (attempt 2 of 4) when released
    retries 0 → 1 of 3
    delays 0s → 0s in total, no budget
    attempts 3 left, none used

  charge released by payments after SOON
    at TIME

  charge, attempt 2 of 4: succeeded after SOON
    at TIME
    probe checks whether the target of breaker payments is back

  output: undaunted logs JOB/charge

"]]
    );
}

#[test]
fn settings_that_another_job_changes_are_an_event() {
    let (home, _, _) = survived(SHORT);
    home.write("w.yaml", &SHORT.replace("failure_threshold: 1", "failure_threshold: 4"));
    home.run(&["run", "w.yaml"]).exits(0);
    let job = id(&home);
    let changed = "payments: failure_threshold 1 → 4";
    let events = home.run(&["events", &job]).exits(0).out;
    assert!(events.contains(&format!("breaker_configured  {changed}")), "{events}");
}
