//! The output of commands is kept, within limits.

use std::fs;

use crate::history::{one, outcomes, text};
use crate::sandbox::Sandbox;

#[test]
fn of_ten_megabytes_the_first_and_the_last_mebibyte_are_kept() {
    let sandbox = Sandbox::of(
        "
- shell: echo begin; head -c 10000000 /dev/zero | tr '\\0' x; echo end
",
    );
    let job = sandbox.run().exits(0).job();
    let stdout = one(&sandbox.events(), "attempt_succeeded")["stdout"].clone();
    let whole = 10_000_000 + "begin\nend\n".len();
    assert_eq!(stdout["bytes"], whole, "{stdout}");
    assert_eq!(stdout["kept"], 2 << 20, "{stdout}");
    let spool = sandbox.folder_of(&job).join("spool");
    let kept: Vec<u8> = fs::read_dir(spool.join("segments"))
        .unwrap()
        .flat_map(|entry| fs::read(entry.unwrap().path()).unwrap())
        .collect();
    assert!((2 << 20..=(2 << 20) + 4096).contains(&kept.len()), "{} bytes", kept.len());
    let has = |part: &[u8]| kept.windows(part.len()).any(|window| window == part);
    assert!(has(b"begin\nxxx") && has(b"xxxend\n"));
}

#[test]
fn output_past_its_limit_ends_the_attempt_for_good() {
    let (sandbox, report) = Sandbox::run_workflow(
        "
- shell: echo run >> log; yes
  output_limit: 100000
  retry_config: {attempts: 3, initial_delay: 3ms}
",
        1,
    );
    assert_eq!(sandbox.lines("log"), ["run"]);
    assert_eq!(report["reason"], "permanent");
    assert!(text(&report["error"]).contains("output_limit"), "{report}");
}

#[test]
fn the_output_of_every_attempt_is_kept() {
    let sandbox = Sandbox::of(
        "
- shell: echo attempt $UNDAUNTED_ATTEMPT says this >&2; test $UNDAUNTED_ATTEMPT -gt 2
  retry_config: {attempts: 2, backoff: fixed, initial_delay: 3ms}
",
    );
    let job = sandbox.run().exits(0).job();
    let segment = sandbox.folder_of(&job).join("spool/segments/1");
    let kept = fs::read_to_string(segment).unwrap();
    for attempt in 1..=3 {
        assert!(kept.contains(&format!("attempt {attempt} says this\n")), "{kept}");
    }
}

#[test]
fn output_that_is_not_text_does_no_harm() {
    let (sandbox, _) = Sandbox::run_workflow(
        "[{shell: 'head -c 3000 /dev/urandom; head -c 3000 /dev/urandom >&2; printf \"\\377\\000\\n\" >&2; exit 1'}]",
        1,
    );
    assert_eq!(outcomes(&sandbox.events()), ["exit"]);
    sandbox.call(&["show", "@last"]).exits(0);
}

#[test]
fn equal_error_texts_are_stored_once() {
    let long = "the same long complaint of a command that never changes its mind ".repeat(20);
    let (sandbox, _) = Sandbox::run_workflow(
        &format!(
            "
- shell: echo '{long}' >&2; exit 1
  retry_config: {{attempts: 20, backoff: fixed, initial_delay: 1ms}}
"
        ),
        1,
    );
    let events = sandbox.events();
    let failed = events.iter().filter(|event| event["type"] == "attempt_failed");
    assert!(failed.clone().all(|event| text(&event["error"]).contains("never changes")));
    assert_eq!(failed.count(), 21);
    // The workflow, the shared text and the messages about the end contain it, but not every attempt.
    let database = fs::read(sandbox.store().join("undaunted.db")).unwrap();
    let part = long.as_bytes();
    let window = database.windows(part.len()).filter(|window| window == &part).count();
    assert!(window <= 6, "{window}");
}
