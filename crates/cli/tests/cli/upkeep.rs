//! What keeps a store in order: pause, rm, prune, store, doctor, completions, man.

use undaunted_runner::catalog;
use undaunted_store::{AggregateId, Append, Epoch, SqliteStore, Store, Version};

use crate::home::{CliHome, files};
use crate::pty::Pty;

fn home() -> CliHome {
    let home = CliHome::new();
    home.write("ok.yaml", "- shell: echo hello\n");
    home
}

#[test]
fn a_removed_job_leaves_nothing_behind() {
    let home = home();
    home.run(&["run", "ok.yaml"]).exits(0);
    assert!(files(&home.store().join("jobs")) > 0);
    home.run(&["rm", "@last", "--yes"]).exits(0);
    assert!(home.json(&["ls", "--json"]).is_empty());
    assert_eq!(files(&home.store().join("jobs")), 0);
    home.run(&["rm", "@last", "--yes"]).exits(6);
}

#[test]
fn an_unfinished_job_is_not_pruned_and_removed_only_with_force() {
    let home = CliHome::new();
    home.write("ok.yaml", "- shell: 'true'\n");
    home.write("wait.yaml", "- shell: exit 1\n  retry_config: {initial_delay: 1h, max_delay: 1h}\n");
    home.run(&["run", "ok.yaml"]).exits(0);
    let mut waiting = home.command(&["run", "wait.yaml"]).spawn().expect("it runs");
    let began = std::time::Instant::now();
    while home.json(&["ls", "--json"]).iter().filter(|job| job["attempts"] == 1).count() < 2 {
        assert!(began.elapsed().as_secs() < 30, "it never ran");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let refused = home.run(&["rm", "@last", "--force", "--yes"]).exits(7);
    assert!(refused.err.contains("is running in process"), "{}", refused.err);
    waiting.kill().expect("killed");
    waiting.wait().expect("gone");
    home.run(&["prune", "--older-than", "0s", "--yes"]).exits(0);
    assert_eq!(home.json(&["ls", "--json"]).len(), 1, "only what has ended goes");
    home.run(&["rm", "@last", "--yes"]).exits(2);
    home.run(&["rm", "@last", "--force", "--yes"]).exits(0);
    assert!(home.json(&["ls", "--json"]).is_empty());
}

#[test]
fn nothing_is_removed_without_a_terminal_or_yes() {
    let home = home();
    home.run(&["run", "ok.yaml"]).exits(0);
    for refused in [&["rm", "@last"][..], &["rm", "no-such-job"], &["prune", "--older-than", "0s"]] {
        let printed = home.run(refused).exits(2);
        assert!(printed.err.contains("confirm with `--yes`"), "{}", printed.err);
        assert!(printed.err.contains("nothing was removed"), "{}", printed.err);
    }
    home.run(&["rm", "", "--yes"]).exits(2);
    home.run(&["rm", "no-such-job", "--yes"]).exits(6);
    assert_eq!(home.json(&["ls", "--json"]).len(), 1);
}

#[test]
fn prune_on_a_terminal_asks_and_removes_nothing_unless_confirmed() {
    let home = home();
    home.run(&["run", "ok.yaml"]).exits(0);
    for (answer, code, left) in [("n\n", 2, 1), ("\n", 2, 1), ("y\n", 0, 0)] {
        let mut pty = Pty::start(&home.path(""), (80, 24), &[], &["prune", "--older-than", "0s"]);
        pty.until("question", |text| text.contains("remove 1 job? [y/N]"));
        pty.type_in(answer);
        assert_eq!(pty.wait().code(), Some(code), "{}", pty.text());
        assert_eq!(home.json(&["ls", "--json"]).len(), left, "{}", pty.text());
    }
}

#[test]
fn prune_goes_by_the_end_of_a_job_and_can_be_tried_dry() {
    let home = home();
    home.run(&["run", "ok.yaml"]).exits(0);
    home.run(&["prune", "--older-than", "30d", "--yes"]).exits(0);
    let would = home.run(&["prune", "--older-than", "0s", "--dry-run"]).exits(0);
    assert!(would.out.contains("would be removed"), "{}", would.out);
    assert_eq!(home.json(&["ls", "--json"]).len(), 1);
    home.run(&["prune", "--older-than", "soon"]).exits(2);
}

#[test]
fn a_store_is_checked_compacted_and_found() {
    let home = home();
    home.run(&["run", "ok.yaml"]).exits(0);
    let checked = home.run(&["store", "check"]).exits(0);
    assert!(checked.out.contains("1 job, 7 records, 0 problems"), "{}", checked.out);
    home.run(&["rm", "@last", "--yes"]).exits(0);
    let compacted = home.json(&["store", "compact", "--json"]);
    assert!(compacted[0]["bytes_after"].as_u64() <= compacted[0]["bytes_before"].as_u64());
    let path = home.run(&["store", "path"]).exits(0);
    assert_eq!(path.out.trim(), home.store().display().to_string());
}

#[test]
fn an_unreadable_catalog_record_is_reported_with_its_position() {
    let home = home();
    let store = SqliteStore::open(&home.store()).expect("a store");
    let catalog = AggregateId::new(catalog::FAMILY, catalog::ID).expect("a name");
    let damaged = vec![vec![1, 0xff]];
    let append = Append::new(catalog, Version::EMPTY, Epoch::UNCLAIMED, damaged);
    store.append(vec![append]).expect("written");
    drop(store);
    let checked = home.run(&["store", "check"]).exits(1).out;
    assert!(checked.starts_with("catalog: record 1 of the catalog is not valid: "), "{checked}");
    assert!(checked.ends_with("0 jobs, 0 records, 1 problem\n"), "{checked}");
    let lines = home.json(&["store", "check", "--json"]);
    assert_eq!(lines[0]["catalog"], true);
    assert_eq!(lines[1]["problems"], 1);
}

#[test]
fn a_job_is_paused_and_unpaused_by_another_process() {
    let home = CliHome::new();
    home.write("p.yaml", "- shell: while [ ! -e go ]; do sleep 0.01; done\n- shell: echo second >> ran\n");
    let mut run = home.command(&["run", "p.yaml"]).spawn().expect("it runs");
    let events = || home.run(&["events", "@last"]).out;
    let until = |word: &str| {
        let began = std::time::Instant::now();
        while !events().contains(word) {
            assert!(began.elapsed().as_secs() < 30, "no {word}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    };
    until("attempt_started");
    home.run(&["pause", "@last"]).exits(0);
    until("job_paused");
    home.write("go", "");
    until("item_succeeded");
    assert_eq!(home.read("ran"), "", "nothing new starts");
    home.run(&["unpause", "@last"]).exits(0);
    assert!(run.wait().expect("it ends").success());
    assert_eq!(home.read("ran"), "second\n");
    home.run(&["pause", "@last"]).exits(2);
}

#[test]
fn doctor_completions_and_the_manual_are_printed() {
    let home = CliHome::new();
    let doctor = home.json(&["doctor", "--json"]);
    assert!(doctor.iter().any(|it| it["what"] == "store" && it["state"] == "ok"));
    let bash = home.run(&["completions", "bash"]).exits(0);
    assert!(bash.out.contains("_undaunted") && bash.out.contains("redrive"));
    let man = home.run(&["man"]).exits(0);
    assert!(man.out.contains("retry\\-budget"), "flags of commands too");
    assert!(man.out.contains(".TH undaunted"), "{}", man.out.get(..200).unwrap_or_default());
}

#[test]
fn a_command_that_adds_no_job_creates_no_store() {
    let home = CliHome::new();
    let typo = home.path("typo");
    let store = typo.to_str().expect("a path");
    let commands = [
        // A list of nothing is empty.
        (0, &["ls"][..]),
        (0, &["ls", "--json"]),
        (0, &["breaker", "ls", "--json"]),
        (0, &["store", "check"]),
        (6, &["show", "@last"]),
        (6, &["logs", "@last"]),
        (6, &["dlq", "ls", "@last"]),
        (6, &["store", "compact"]),
        (6, &["resume", "@last"]),
        (6, &["rm", "x", "--yes"]),
        (6, &["prune", "--older-than", "0s", "--yes"]),
    ];
    for (code, command) in commands {
        let refused = home.run(&[command, &["--store", store]].concat()).exits(code);
        assert!(refused.err.contains(&format!("there is no store in `{store}`")), "{}", refused.err);
        assert!(refused.err.contains(&format!("undaunted run FILE --store {store}")), "{}", refused.err);
        let mut by_variable = home.command(command);
        let refused = by_variable.env("UNDAUNTED_STORE", store).output().expect("it runs");
        assert_eq!(refused.status.code(), Some(code));
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(text.contains("there is no store in") && text.contains("UNDAUNTED_STORE names it"), "{text}");
    }
    assert_eq!(home.run(&["store", "path", "--store", store]).exits(0).out, format!("{store}\n"));
    let doctor = home.run(&["doctor", "--store", store]).exits(0);
    assert!(doctor.out.contains("(the first job creates it)"), "{}", doctor.out);
    assert!(!typo.exists());
}

#[test]
fn before_the_first_job_the_default_store_is_empty_and_is_not_created() {
    let home = CliHome::new();
    let listed = home.run(&["ls"]).exits(0);
    assert!(listed.err.contains("no jobs yet; `undaunted run FILE` starts one"), "{}", listed.err);
    assert_eq!(home.run(&["ls", "--json"]).exits(0).out, "");
    for command in [&["show", "@last"][..], &["cancel", "x"], &["rm", "x", "--yes"], &["dlq", "ls", "x"]] {
        home.run(command).exits(6);
    }
    home.run(&["breaker", "ls"]).exits(0);
    home.run(&["prune", "--older-than", "0s", "--yes"]).exits(0);
    assert!(!home.store().exists());
}
