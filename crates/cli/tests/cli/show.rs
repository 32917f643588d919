//! `show`: timelines, and what each resume restored.

use crate::home::CliHome;
use crate::plain::{at, plain};

#[test]
fn attempts_and_waits_are_drawn_in_the_width_there_is() {
    let home = CliHome::new();
    home.write(
        "w.yaml",
        "- id: ask\n  shell: 'sleep 0.05; test $UNDAUNTED_ATTEMPT = 3'\n  \
         retry_config: {backoff: fixed, initial_delay: 400ms}\n",
    );
    let _ = home.run(&["run", "w.yaml"]).exits(0);
    let drawn = |columns: &str| {
        let printed = home.command(&["show", "@last"]).env("COLUMNS", columns).output();
        let printed = String::from_utf8(printed.expect("it runs").stdout).expect("text");
        let line = printed.lines().find(|line| line.starts_with("    ask  "));
        line.expect("a timeline").to_owned()
    };
    for (columns, most) in [("40", 40), ("80", 80), ("300", 130)] {
        let line = drawn(columns);
        assert!(line.chars().count() <= most, "{line}");
        assert!(line.ends_with("+  3 attempts"), "{line}");
        let marks: String = line.chars().filter(|sign| "x+".contains(*sign)).collect();
        assert_eq!(marks, "xx+", "{line}");
        assert!(line.contains("..."), "{line}");
    }
    let shown = home.json(&["show", "@last", "--json"]);
    let shown = shown.first().expect("an object");
    assert_eq!(at(shown, "/timeline/0/item"), "ask");
    let attempts = at(shown, "/timeline/0/attempts").as_array();
    assert_eq!(attempts.map(Vec::len), Some(3));
}

#[test]
fn each_resume_says_what_it_restored() {
    let home = CliHome::new();
    home.write(
        "w.yaml",
        "mode: mapreduce\nmap:\n  input: {shell: \"printf 'a\\nb\\n'\"}\n  max_parallel: 1\n  \
         agent_template:\n    - shell: 'test -e fixed'\n      \
         retry_config: {attempts: 3, initial_delay: 2s}\n",
    );
    let mut run = home.command(&["run", "w.yaml"]).spawn().expect("it runs");
    while home.run(&["events", "@last"]).out.matches("retry_scheduled").count() < 2 {}
    run.kill().expect("killed");
    run.wait().expect("gone");
    home.write("fixed", "");
    let done = home.json(&["resume", "@last", "--json"]);
    let job = done.first().map(|it| at(it, "/job").clone()).expect("a job");
    let job = job.as_str().expect("a text");
    let printed = home.run(&["show", "@last", "--resumes"]).exits(0);
    let said = plain(&printed.out, job);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.first(), Some(&"job JOB completed, 2 runs"));
    assert!(said.contains("  run 2 TIME\n    downtime "), "{said}");
    assert!(said.contains("(process died)\n"), "{said}");
    let shown = home.json(&["show", "@last", "--resumes", "--json"]);
    let shown = shown.first().expect("an object");
    assert_eq!(at(shown, "/runs"), 2);
    assert_eq!(at(shown, "/resumes/0/run"), 2);
    assert_eq!(at(shown, "/resumes/0/planned"), false);
    let number = |place: &str| at(shown, place).as_u64().expect("a number");
    let found = number("/resumes/0/restored/running") + number("/resumes/0/restored/waiting");
    assert_eq!(found, 2);
    let before = number("/resumes/0/attempts_before");
    let report = home.json(&["show", "@last", "--json"]);
    let all = report.first().and_then(|it| at(it, "/attempts").as_u64());
    assert_eq!(Some(before + number("/resumes/0/attempts_after")), all);
}

#[test]
fn a_job_that_was_never_resumed_says_so() {
    let home = CliHome::new();
    home.write("w.yaml", "- shell: 'true'\n");
    let _ = home.run(&["run", "w.yaml"]).exits(0);
    let printed = home.run(&["show", "@last", "--resumes"]).exits(0);
    assert!(printed.out.ends_with("never resumed\n"), "{}", printed.out);
}
