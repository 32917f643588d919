//! Jobs are archived to files and restored, as a user sees them.

use crate::home::{CliHome, CliOutput, files};

const WORKFLOW: &str = "
mode: mapreduce
map:
  input: items.txt
  max_parallel: 1
  agent_template:
    - id: ask
      shell: 'echo no answer >&2; test ${item} = south || exit 3'
      retry_config: {attempts: 1, initial_delay: 5ms}
";

fn home() -> CliHome {
    let home = CliHome::new();
    home.write("w.yaml", WORKFLOW);
    home.write("items.txt", "north\nsouth\n");
    home
}

/// Everything the commands show about a job.
fn shown(home: &CliHome, job: &str) -> Vec<(i32, String, String)> {
    let questions = [
        &["show", job][..],
        &["show", job, "--json"],
        &["events", job, "--json"],
        &["explain", job, "--json"],
        &["attempts", job, "--json"],
        &["dlq", "ls", job, "--json"],
        &["ls", "--json"],
    ];
    let shown = questions.map(|question| {
        let CliOutput { out, err, code } = home.run(question);
        (code, out, err)
    });
    shown.into()
}

#[test]
fn an_archived_job_is_gone_and_a_restored_one_is_shown_as_before() {
    let home = home();
    home.run(&["run", "w.yaml"]).exits(4);
    let job = home.json(&["ls", "--json"])[0]["job"].clone();
    let job = job.as_str().expect("a text");
    let before = shown(&home, job);
    let archived = home.run(&["archive", "@last"]).exits(0);
    let file = archived.out.trim();
    let expected = home.store().join(format!("archive/{job}.undaunted.jsonl"));
    assert_eq!(file, expected.display().to_string());
    assert!(home.json(&["ls", "--json"]).is_empty());
    assert_eq!(files(&home.store().join("jobs")), 0);
    home.run(&["archive", job]).exits(6);

    let restored = home.run(&["restore", file]).exits(0);
    assert_eq!(restored.out, format!("job {job} restored\n"));
    assert_eq!(shown(&home, job), before);
    home.run(&["store", "check"]).exits(0);
    home.run(&["restore", file]).exits(0);
    assert_eq!(shown(&home, job), before, "twice is as good as once");
    // What its commands wrote was not archived, and that is said.
    let logs = home.run(&["logs", job]).exits(0);
    let lost = "10 bytes of stderr were not kept";
    assert_eq!(logs.err.matches(lost).count(), 3, "{}", logs.err);
}

#[test]
fn a_restored_job_can_be_resumed() {
    let home = home();
    home.run(&["run", "w.yaml"]).exits(4);
    let file = home.run(&["archive", "@last"]).exits(0).out;
    home.run(&["restore", file.trim()]).exits(0);
    home.run(&["dlq", "redrive", "@last"]).exits(4);
    // What was written before is not there, and is not taken for what is written now.
    let logs = home.run(&["logs", "@last"]).exits(0).err;
    assert_eq!(logs.matches("10 bytes of stderr were not kept").count(), 3, "{logs}");
    assert_eq!(logs.matches("no answer\n").count(), 2, "{logs}");
    let refused = home.run(&["restore", file.trim()]).exits(2);
    assert!(refused.err.contains("differs from the one in the file"), "{}", refused.err);
    // What the file holds is what the job was, so it is replaced by what it is.
    assert_eq!(home.run(&["archive", "@last"]).exits(0).out, file);
    home.run(&["restore", file.trim()]).exits(0);
    let redriven = home.run(&["events", "@last", "--json"]).out;
    assert!(redriven.contains("job_redriven"), "{redriven}");
}

#[test]
fn only_jobs_that_ended_long_ago_are_archived() {
    let home = home();
    home.run(&["run", "w.yaml"]).exits(4);
    home.run(&["run", "w.yaml"]).exits(4);
    let to = home.path("kept");
    let to = to.to_str().expect("a path");
    let none = ["archive", "--older-than", "1h", "--to", to];
    let said = home.run(&none).exits(0);
    assert_eq!(said.out, "no jobs ended that long ago\n");
    let all = ["archive", "--older-than", "0s", "--to", "kept", "--json"];
    let archived = home.json(&all);
    assert_eq!(archived.len(), 2);
    assert!(home.json(&["ls", "--json"]).is_empty());
    let files: Vec<&str> = archived.iter().map(|one| one["file"].as_str().expect("a path")).collect();
    assert!(files.iter().all(|file| file.starts_with(to)), "{files:?}");
    let mut restore = vec!["restore", "--json"];
    restore.extend(files);
    let restored = home.json(&restore);
    assert_eq!(restored, archived);
    assert_eq!(home.json(&["ls", "--json"]).len(), 2);
}

#[test]
fn a_refused_archive_or_restore_is_reported_with_its_exit_code() {
    let home = home();
    home.write("wait.yaml", "- shell: 'true'\n");
    home.run(&["archive"]).exits(2);
    home.run(&["archive", "x", "--older-than", "1h"]).exits(2);
    home.run(&["archive", "--older-than", "1 hour"]).exits(2);
    home.run(&["archive", "unknown"]).exits(6);
    home.run(&["restore"]).exits(2);
    home.run(&["restore", "nothing.jsonl"]).exits(6);
    let no_archive = home.run(&["restore", "w.yaml"]).exits(3);
    let expected = "error: line 1 of `w.yaml`: not an archive of a job\n";
    assert_eq!(no_archive.err, expected);

    home.run(&["run", "w.yaml"]).exits(4);
    home.write("taken", "");
    let taken = home.run(&["archive", "@last", "--to", "taken"]).exits(7);
    assert!(taken.err.starts_with("error: cannot use `") && taken.err.contains("/taken`: "), "{}", taken.err);
    let file = home.run(&["archive", "@last", "--to", "kept"]).exits(0).out;
    let text = std::fs::read_to_string(file.trim()).expect("a file");
    let cut = text.trim_end().rsplit_once('\n').expect("lines").0;
    home.write("cut.jsonl", &format!("{cut}\n"));
    let refused = home.run(&["restore", "cut.jsonl"]).exits(3);
    let number = text.lines().count();
    let expected =
        format!("error: line {number} of `cut.jsonl`: the file is truncated: its last line is missing");
    assert!(refused.err.starts_with(&expected), "{}", refused.err);
    home.write("altered.jsonl", &text.replacen("\"attempt_", "\"Attempt_", 1));
    home.run(&["restore", "altered.jsonl"]).exits(3);
    assert!(home.json(&["ls", "--json"]).is_empty(), "nothing is stored");
}

#[test]
fn an_unfinished_job_is_not_archived_and_the_message_says_what_to_do() {
    let home = home();
    home.write("slow.yaml", "- shell: touch began; sleep 1000\n");
    home.run(&["run", "w.yaml"]).exits(4);
    let ended = home.json(&["ls", "--json"])[0]["job"].clone();
    let ended = ended.as_str().expect("a text");
    let mut run = home.command(&["run", "slow.yaml"]).spawn().expect("it runs");
    let began = std::time::Instant::now();
    while !home.path("began").exists() {
        assert!(began.elapsed().as_secs() < 30, "it never ran");
        std::thread::yield_now();
    }
    let refused = home.run(&["archive", ended, "@last"]).exits(2);
    assert!(refused.err.contains("is not finished; cancel it with `undaunted cancel "), "{}", refused.err);
    assert_eq!(home.json(&["ls", "--json"]).len(), 2, "none has gone");
    home.run(&["cancel", "@last"]).exits(0);
    run.wait().expect("it ends");
    home.run(&["archive", ended, "@last", ended]).exits(0);
    assert!(home.json(&["ls", "--json"]).is_empty());
}
