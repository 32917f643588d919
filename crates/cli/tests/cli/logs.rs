//! `logs`: what commands wrote, whole or cut, live or kept, without secrets.

use std::io::{BufRead, BufReader};

use crate::home::CliHome;
use crate::plain::at;

fn home(workflow: &str) -> CliHome {
    let home = CliHome::new();
    home.write("w.yaml", workflow);
    home
}

#[test]
fn output_goes_where_it_was_written_to() {
    let home = home("- {id: talk, shell: 'echo to out; echo to err >&2'}\n");
    let _ = home.run(&["run", "w.yaml"]).exits(0);
    let printed = home.run(&["logs", "@last"]).exits(0);
    assert_eq!((printed.out.as_str(), printed.err.as_str()), ("to out\n", "to err\n"));
}

#[test]
fn several_attempts_are_labelled_and_one_can_be_chosen() {
    let home = home(
        "- id: twice\n  shell: 'echo attempt $UNDAUNTED_ATTEMPT; test $UNDAUNTED_ATTEMPT = 2'\n  \
         retry_config: {initial_delay: 1ms}\n",
    );
    let _ = home.run(&["run", "w.yaml"]).exits(0);
    let all = home.run(&["logs", "@last/twice"]).exits(0);
    assert_eq!(all.out, "attempt 1\nattempt 2\n");
    assert_eq!(all.err, "== twice, attempt 1 ==\n== twice, attempt 2 ==\n");
    let second = home.run(&["logs", "@last/twice", "--attempt", "2"]).exits(0);
    assert_eq!((second.out.as_str(), second.err.as_str()), ("attempt 2\n", ""));
    let pieces = home.json(&["logs", "@last", "--json"]);
    let texts: Vec<_> = pieces.iter().filter_map(|it| at(it, "/text").as_str()).collect();
    assert_eq!(texts, ["attempt 1\n", "attempt 2\n"]);
}

#[test]
fn a_middle_that_was_not_kept_is_said() {
    let home = home("- {id: much, shell: 'echo begin; head -c 3000000 /dev/zero; echo end'}\n");
    let _ = home.run(&["run", "w.yaml"]).exits(0);
    let printed = home.run(&["logs", "@last"]).exits(0);
    assert!(printed.out.starts_with("begin\n") && printed.out.ends_with("end\n"));
    assert_eq!(printed.out.len(), 2 << 20);
    let dropped = 3_000_000 + 10 - (2 << 20);
    assert_eq!(printed.err, format!("\n… {dropped} bytes of stdout were not kept …\n"));
}

#[test]
fn a_secret_was_removed_before_the_output_was_stored_and_is_not_needed() {
    let home =
        home("secrets: {TOKEN: {file: token}}\ncommands:\n  - {id: leak, shell: 'echo \"it is $TOKEN!\"'}\n");
    home.write("token", "hunter2\n");
    let _ = home.run(&["run", "w.yaml"]).exits(0);
    std::fs::remove_file(home.path("token")).expect("removed");
    assert_eq!(home.run(&["logs", "@last"]).exits(0).out, "it is ***!\n");
}

#[test]
fn a_running_job_is_followed_to_its_end() {
    let home = home(
        "- id: slow\n  shell: 'echo one; until test -e go; do sleep 0.02; done; echo two'\n\
         - {id: last, shell: echo three}\n",
    );
    let mut run = home.command(&["run", "w.yaml"]).spawn().expect("it runs");
    while !home.run(&["events", "@last"]).out.contains("attempt_started") {}
    let mut logs = home.command(&["logs", "@last", "--follow"]).spawn().expect("it runs");
    let mut lines = BufReader::new(logs.stdout.take().expect("piped")).lines();
    let mut line = || lines.next().and_then(Result::ok);
    assert_eq!(line().as_deref(), Some("one"), "while it runs");
    home.write("go", "");
    assert_eq!(line().as_deref(), Some("two"));
    assert_eq!(line().as_deref(), Some("three"));
    assert_eq!(line(), None, "it ends with the job");
    assert!(logs.wait().expect("gone").success());
    assert!(run.wait().expect("gone").success());
}
