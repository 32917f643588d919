//! Breakers as people see them: what is held, why, until when, and what happened in the end.

use crate::home::Home;
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
fn held() -> (Home, String) {
    let home = Home::new();
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

fn id(home: &Home) -> String {
    let listed = home.json(&["ls", "--json"]);
    let job = listed.first().map(|job| at(job, "/job").clone());
    let job = job.and_then(|job| job.as_str().map(str::to_owned));
    job.expect("a job")
}

/// A job that has lived through an outage, what it said, and its id.
fn survived(workflow: &str) -> (Home, String, String) {
    let home = Home::new();
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
  held by payments for SOON; nobody runs the job: undaunted resume JOB
    since TIME
    breaker open since TIME, looks again in SOON at TIME
    then east goes first, to find out; this one goes on when the breaker has closed
    attempts 3 left; a hold uses none of them, and no budget
    expires TIME: held until then it fails in SOON (circuit_open)
    by hand undaunted breaker reset payments

  charge, attempt 1 of 4: failed after SOON
    at TIME
    failure exit status 3: connection refused
    rule none matched; a transient failure is retried
    delay 50ms computed, 50ms capped, 50ms drawn
    so retry 1 of 3 (attempt 2 of 4) in 50ms, due TIME
    retries 0 → 1 of 3
    delays 0s → 50ms in all, no budget

  charge is held by payments
    at TIME
    why the breaker was open; it looks again at TIME
    attempts 3 left, none is used
    expires TIME

  when it is let go, if it goes on failing as it did, each time at once:
    retry 2 of 3 (attempt 3 of 4) in 50ms
    retry 3 of 3 (attempt 4 of 4) in 50ms
    then attempts ends it: All attempts used (3 retries, 4 attempts)

  output: undaunted logs JOB/north

"]]
    );
    snapbox::assert_data_eq!(
        explained("east"),
        snapbox::str![[r"
job JOB item east
  held by payments for SOON; nobody runs the job: undaunted resume JOB
    since TIME
    breaker open since TIME, looks again in SOON at TIME
    then it goes first, to find out whether the target is back
    attempts 4 left; a hold uses none of them, and no budget
    expires TIME: held until then it fails in SOON (circuit_open)
    by hand undaunted breaker reset payments

  charge is held by payments
    at TIME
    why the breaker was open; it looks again at TIME
    attempts 4 left, none is used
    expires TIME

  when it is let go, if it then fails, each time at once:
    retry 1 of 3 (attempt 2 of 4) in 50ms
    retry 2 of 3 (attempt 3 of 4) in 50ms
    retry 3 of 3 (attempt 4 of 4) in 50ms
    then attempts ends it: All attempts used (3 retries, 4 attempts)


"]]
    );
    snapbox::assert_data_eq!(
        explained("south"),
        snapbox::str![[r"
job JOB item south
  held by payments for SOON; nobody runs the job: undaunted resume JOB
    since TIME
    breaker open since TIME, looks again in SOON at TIME
    then east goes first, to find out; this one goes on when the breaker has closed
    attempts 4 left; a hold uses none of them, and no budget
    expires TIME: held until then it fails in SOON (circuit_open)
    by hand undaunted breaker reset payments

  charge is held by payments
    at TIME
    why the breaker was open; it looks again at TIME
    attempts 4 left, none is used
    expires TIME

  when it is let go, if it then fails, each time at once:
    retry 1 of 3 (attempt 2 of 4) in 50ms
    retry 2 of 3 (attempt 3 of 4) in 50ms
    retry 3 of 3 (attempt 4 of 4) in 50ms
    then attempts ends it: All attempts used (3 retries, 4 attempts)


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
  interrupted: whoever ran it has died; go on with `undaunted resume JOB`
  0 of 3 items succeeded; 1 attempt
  pool none: only the limits of each command hold
  breaker payments: open since TIME, looks again in SOON at TIME; holds 3 items of this job

  north: held by payments for SOON; it looks again in SOON; 3 attempts left; fails if it is held for SOON more
    connection refused
    undaunted explain JOB/north

  east: held by payments for SOON; it looks again in SOON; this one goes first; 4 attempts left; fails if it is held for SOON more
    undaunted explain JOB/east

  south: held by payments for SOON; it looks again in SOON; 4 attempts left; fails if it is held for SOON more
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
  so far 0 of 3 items succeeded; 1 attempt
  map running, 0 of 3 done, 3 held
    north: held by payments for SOON; it looks again in SOON; 3 attempts left; fails if it is held for SOON more
    east: held by payments for SOON; it looks again in SOON; this one goes first; 4 attempts left; fails if it is held for SOON more
    south: held by payments for SOON; it looks again in SOON; 4 attempts left; fails if it is held for SOON more
  breaker payments: open since TIME, looks again in SOON at TIME; holds 3 items of this job

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
    while !resumes().contains("restored") {}
    run.kill().expect("killed");
    run.wait().expect("gone");
    assert!(resumes().contains("restored  0 running, 0 waiting, 3 held, 0 done, 0 to come"), "{}", resumes());
    let json = home.json(&["show", &job, "--resumes", "--json"]);
    let json = json.first().expect("an object");
    assert_eq!(at(json, "/resumes/0/restored/held"), 3);
}

#[test]
fn breakers_are_listed_shown_tripped_and_reset() {
    let home = Home::new();
    let none = home.run(&["breaker", "ls"]).exits(0);
    assert_eq!(none.out, "");
    snapbox::assert_data_eq!(
        none.err,
        snapbox::str![[r"
no breakers yet; a command names one with `breaker: {name: api}`, and the first job that does makes it

"]]
    );
    let (home, job) = held();
    let said = |arguments: &[&str]| plain(&home.run(arguments).exits(0).out, &job);
    snapbox::assert_data_eq!(
        said(&["breaker", "ls"]),
        snapbox::str![[r"
BREAKER STATE STANDS
payments open open since TIME, looks again in SOON at TIME

"]]
    );
    snapbox::assert_data_eq!(
        said(&["breaker", "show", "payments"]),
        snapbox::str![[r"
breaker payments: open since TIME, looks again in SOON at TIME
  opens after 1 failure in a row, for 1h; 3 successes close it
  while it is open, what would start is held, for 2h at most; no attempt is used
  TIME job JOB has given it these settings
  TIME job JOB opened it, until TIME
close it now: undaunted breaker reset payments

"]]
    );
    snapbox::assert_data_eq!(
        said(&["breaker", "reset", "payments"]),
        snapbox::str![[r"
breaker payments: closed, lets everything through

"]]
    );
    snapbox::assert_data_eq!(
        said(&["breaker", "trip", "payments"]),
        snapbox::str![[r"
breaker payments: open since TIME, looks again in SOON at TIME
what names it is held until then, in every job of this store; what runs goes on
close it now: undaunted breaker reset payments

"]]
    );
    snapbox::assert_data_eq!(
        said(&["breaker", "show", "payments"]),
        snapbox::str![[r"
breaker payments: open since TIME, looks again in SOON at TIME
  opens after 1 failure in a row, for 1h; 3 successes close it
  while it is open, what would start is held, for 2h at most; no attempt is used
  TIME job JOB has given it these settings
  TIME job JOB opened it, until TIME
  TIME by hand reset
  TIME by hand tripped, until TIME
close it now: undaunted breaker reset payments

"]]
    );
    for what in ["show", "trip", "reset"] {
        let unknown = home.run(&["breaker", what, "mail"]).exits(6);
        assert_eq!(
            unknown.err,
            "error: there is no breaker `mail`; `undaunted breaker ls` lists those there are\n"
        );
    }
}

#[test]
fn an_outage_that_is_over_is_told_from_the_first_failure_to_the_last_probe() {
    let (home, said, job) = survived(SHORT);
    snapbox::assert_data_eq!(
        plain(&said, &job),
        snapbox::str![[r"
job JOB orders
  payments opens (1 failure): what asks it is held; it looks again in SOON
  charge: attempt 1 of 4 failed (exit status 3: connection refused); retry 1 of 3 in 50ms
  payments closes: the target is back
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
    rule none matched; a transient failure is retried
    delay 50ms computed, 50ms capped, 50ms drawn
    so retry 1 of 3 (attempt 2 of 4) in 50ms, due TIME
    retries 0 → 1 of 3
    delays 0s → 50ms in all, no budget

  charge is held by payments
    at TIME
    why the breaker was open; it looks again at TIME
    attempts 3 left, none is used

  charge is let go by payments after SOON
    at TIME

  charge, attempt 2 of 4: succeeded after SOON
    at TIME
    probe it finds out for payments whether the target is back

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
       TIME breaker_opened payments: 1 failure, looks again at TIME
    7 TIME held charge attempt 1 by payments, looks again at TIME, 3 attempts left
    8 TIME released charge attempt 1 by payments, held for SOON
       TIME breaker_half_opened payments: one goes ahead to find out
    9 TIME attempt_started charge attempt 2 start 2, breaker payments, probe true
       TIME breaker_closed payments: lets everything through again
"]]
    );
    let shown = home.run(&["breaker", "show", "payments"]).exits(0);
    snapbox::assert_data_eq!(
        plain(&shown.out, &job),
        snapbox::str![[r"
breaker payments: closed, lets everything through
  opens after 1 failure in a row, for 300ms; 1 success closes it
  while it is open, what would start is held; no attempt is used
  TIME job JOB has given it these settings
  TIME job JOB opened it, until TIME
  TIME job JOB half open: the first probe
  TIME job JOB closed it: enough probes succeeded

"]]
    );
}

#[test]
fn what_was_held_too_long_and_what_was_not_to_be_held_say_why_they_failed() {
    let home = Home::new();
    for (setting, item) in [("max_hold: 300ms", "north"), ("when_open: fail", "east")] {
        home.write("w.yaml", &LONG.replace("max_hold: 2h", setting));
        home.run(&["run", "w.yaml"]).exits(4);
        let job = id(&home);
        let explained = home.run(&["explain", &format!("{job}/{item}")]).exits(0);
        let explained = plain(&explained.out, &job);
        let end = explained.split("  charge is tried no further").nth(1);
        assert!(end.is_some(), "{explained}");
        let end = end.unwrap_or_default();
        assert!(
            end.starts_with(" (circuit_open)\n    at TIME\n    why The circuit breaker is open"),
            "{end}"
        );
        assert!(end.contains("again: undaunted dlq redrive"), "{end}");
        let held = explained.contains("charge is held by payments");
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
  payments opens (a rule says so): what asks it is held; it looks again in SOON
  charge: attempt 1 of 4 failed (exit status 3: connection refused); retry 1 of 3 when payments lets it go, it looks again in SOON
  payments closes: the target is back
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

  charge is held by payments
    at TIME
    why a rule says hold; it looks again at TIME
    so retry 1 of 3 (attempt 2 of 4) when it is let go
    retries 0 → 1 of 3
    delays 0s → 0s in all, no budget
    attempts 3 left, none is used

  charge is let go by payments after SOON
    at TIME

  charge, attempt 2 of 4: succeeded after SOON
    at TIME
    probe it finds out for payments whether the target is back

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
