//! `dlq`: dead letters looked at, tried again, given up.

use crate::home::CliHome;
use crate::pty::Pty;

const WORKFLOW: &str = "
mode: mapreduce
map:
  input: items.jsonl
  max_parallel: 1
  agent_template:
    - shell: echo first ${item.id} >> ran
    - id: work
      shell: 'echo work ${item.id} >> ran; test -e fixed || { echo \"host ${item.id} at /srv/${item.id}: refused\" >&2; exit ${item.code}; }'
      retry_config: {attempts: 1, initial_delay: 1ms}
reduce:
  - shell: echo reduced >> ran
";

const ITEMS: &str =
    "{\"id\": \"n1\", \"code\": 1}\n{\"id\": \"n2\", \"code\": 2}\n{\"id\": \"n3\", \"code\": 1}\n";

fn home() -> CliHome {
    let home = CliHome::new();
    home.write("w.yaml", WORKFLOW);
    home.write("items.jsonl", ITEMS);
    home.run(&["run", "w.yaml", "--json"]).exits(4);
    home
}

fn items(home: &CliHome, arguments: &[&str]) -> Vec<String> {
    let all = [&["dlq", "ls", "@last", "--json"], arguments].concat();
    let letters = home.json(&all);
    letters
        .iter()
        .map(|it| it.pointer("/input/id").and_then(|id| id.as_str()).expect("an id").to_owned())
        .collect()
}

#[test]
fn a_dead_letter_keeps_its_input_every_attempt_and_the_reason() {
    let home = home();
    let letters = home.json(&["dlq", "ls", "@last", "--json"]);
    assert_eq!(letters.len(), 3);
    let first = &letters[0];
    assert_eq!(first["input"]["id"], "n1");
    assert_eq!(first["reason"], "attempts");
    assert!(first["error"].as_str().expect("text").contains("host n1"), "{first}");
    let attempts = first["attempts"].as_array().expect("attempts");
    assert_eq!(attempts.len(), 3, "one of the first command, two of the second");
    assert_eq!(attempts[1]["outcome"], "failed");
    assert_eq!(attempts[1]["delay_ms"], 1);
}

#[test]
fn dead_letters_are_chosen_by_name_by_position_and_by_filter() {
    let home = home();
    assert_eq!(items(&home, &["--where", "code == 1"]), ["n1", "n3"]);
    assert_eq!(items(&home, &["#1"]), ["n2"]);
    let with_job = home.json(&["dlq", "ls", "@last/#1", "--json"]);
    assert_eq!(with_job[0]["item"], "n2");
    let printed = home.run(&["dlq", "ls", "@last", "--where", "code ==="]).exits(2);
    assert!(printed.err.contains("--where"), "{}", printed.err);
    home.run(&["dlq", "ls", "@last", "unknown"]).exits(6);
}

#[test]
fn errors_that_differ_in_names_and_numbers_are_one_group() {
    let home = home();
    let groups = home.json(&["dlq", "group", "@last", "--json"]);
    assert_eq!(groups.len(), 1, "{groups:?}");
    assert_eq!(groups[0]["signature"], "host nN at PATH: refused");
    assert_eq!(groups[0]["count"], 3);
}

#[test]
fn a_group_is_selected_by_the_id_that_is_shown_with_it() {
    let home = home();
    home.write("fixed", "");
    home.run(&["dlq", "redrive", "@last/#0"]).exits(4);
    let groups = home.json(&["dlq", "group", "@last", "--json"]);
    let id = groups[0]["signature_id"].as_str().expect("an id");
    let printed = home.run(&["dlq", "group", "@last"]).exits(0);
    assert!(printed.out.contains(&format!("     2  {id}  host nN at PATH: refused\n")), "{}", printed.out);
    assert!(printed.out.contains(&format!(" --group {id}\n")), "{}", printed.out);
    let prefix = id.get(..6).expect("16 digits");
    assert_eq!(items(&home, &["--group", prefix]), ["n2", "n3"]);
    assert_eq!(items(&home, &["--group", prefix, "--where", "code == 1"]), ["n3"]);
    let unknown = home.run(&["dlq", "ls", "@last", "--group", "nothing"]).exits(6);
    assert!(unknown.err.contains("group `nothing` not found"), "{}", unknown.err);
    home.run(&["dlq", "drop", "@last", "--group", id, "--yes"]).exits(0);
    assert!(items(&home, &[]).is_empty());
}

#[test]
fn a_search_without_a_match_is_not_found_and_changes_nothing() {
    let home = home();
    let before = home.read("ran");
    let confirmed = |command: &str| ["redrive", "drop"].contains(&command).then_some("--yes");
    for command in ["redrive", "drop", "ls", "show", "group", "export"] {
        let search = ["dlq", command, "@last", "--where", "code == 99"];
        let search: Vec<&str> = search.into_iter().chain(confirmed(command)).collect();
        let printed = home.run(&search).exits(6);
        assert!(printed.err.contains("no dead letters match --where 'code == 99'"), "{}", printed.err);
        let printed = home.run(&[&search[..], &["--json"]].concat()).exits(6);
        let error: serde_json::Value = serde_json::from_str(&printed.err).expect("JSON");
        assert_eq!(error["error"]["code"], "no_dead_letters");
        assert_eq!(printed.out, "");
    }
    home.run(&["dlq", "redrive", "@last", "--where", "code == 99", "--dry-run"]).exits(6);
    home.run(&["dlq", "export", "@last", "--where", "code == 99", "-o", "again.jsonl"]).exits(6);
    assert!(!home.path("again.jsonl").exists());
    assert_eq!(home.read("ran"), before);
    assert_eq!(items(&home, &[]).len(), 3);
}

#[test]
fn an_empty_argument_never_means_all() {
    let home = home();
    let before = home.read("ran");
    for command in ["ls", "show", "group", "redrive", "drop", "export"] {
        for arguments in [
            &["@last", ""][..],
            &["@last/"],
            &["@last", "--where", ""],
            &["@last", "--group", ""],
            &["@last", "n1", ""],
            &["", "n1"],
        ] {
            let yes: &[&str] = if ["redrive", "drop"].contains(&command) { &["--yes"] } else { &[] };
            let all = [&["dlq", command], arguments, yes].concat();
            let printed = home.run(&all).exits(2);
            assert_eq!(printed.out, "", "{all:?}");
        }
    }
    for command in ["attempts", "logs", "explain"] {
        home.run(&[command, "@last/"]).exits(2);
        home.run(&[command, ""]).exits(2);
    }
    home.run(&["ls", "--store", ""]).exits(2);
    assert_eq!(home.read("ran"), before);
    assert_eq!(items(&home, &[]).len(), 3);
}

#[test]
fn a_drop_without_items_needs_all_and_without_a_terminal_yes() {
    let home = home();
    let printed = home.run(&["dlq", "drop", "@last"]).exits(2);
    assert!(printed.err.contains("JOB/#3 or '#3'"), "{}", printed.err);
    home.run(&["dlq", "drop", "@last", "--yes"]).exits(2);
    home.run(&["dlq", "drop", "@last", "#1", "--all", "--yes"]).exits(2);
    home.run(&["dlq", "drop", "@last/#1", "--all", "--yes"]).exits(2);
    let printed = home.run(&["dlq", "drop", "@last", "--all"]).exits(2);
    assert!(printed.err.contains("confirm with `--yes`"), "{}", printed.err);
    home.run(&["dlq", "drop", "@last", "#1"]).exits(2);
    assert_eq!(items(&home, &[]).len(), 3);
    home.run(&["dlq", "drop", "@last/#1", "--yes"]).exits(0);
    assert_eq!(items(&home, &[]), ["n1", "n3"]);
    home.run(&["dlq", "drop", "@last", "--all", "--yes"]).exits(0);
    assert!(items(&home, &[]).is_empty());
    home.run(&["dlq", "drop", "@last", "--all", "--yes"]).exits(0);
}

#[test]
fn a_drop_on_a_terminal_asks_and_drops_nothing_unless_confirmed() {
    let home = home();
    for (answer, code, left) in [("n\n", 2, 3), ("y\n", 0, 1)] {
        let drop = ["dlq", "drop", "@last", "n1", "#2"];
        let mut pty = Pty::start(&home.path(""), (80, 24), &[], &drop);
        pty.until("question", |text| text.contains("drop 2 dead letters of job "));
        pty.type_in(answer);
        assert_eq!(pty.wait().code(), Some(code), "{}", pty.text());
        assert_eq!(items(&home, &[]).len(), left);
    }
}

#[test]
fn the_help_never_shows_an_index_that_a_shell_takes_for_a_comment() {
    let home = CliHome::new();
    for command in
        [&["explain"][..], &["attempts"], &["logs"], &["dlq", "ls"], &["dlq", "redrive"], &["dlq", "drop"]]
    {
        let help = home.run(&[command, &["--help"]].concat()).exits(0).out;
        assert!(help.contains('#'), "{help}");
        for (at, _) in help.match_indices('#') {
            let before = help.get(..at).and_then(|text| text.chars().next_back());
            assert!(matches!(before, Some('/' | '\'')), "{help}");
        }
    }
}

#[test]
fn a_redrive_runs_the_failed_command_again_and_not_the_one_before() {
    let home = home();
    let before = home.read("ran");
    assert_eq!(before.matches("reduced").count(), 1);
    home.run(&["dlq", "redrive", "@last", "--dry-run"]).exits(0);
    assert_eq!(home.read("ran"), before, "a dry run runs nothing");
    home.write("fixed", "");
    let report = home.json(&["dlq", "redrive", "@last", "#0", "--json"]);
    assert_eq!(report[0]["status"], "partial", "two are left");
    assert_eq!(home.read("ran"), format!("{before}work n1\n"));
    home.run(&["dlq", "redrive", "@last", "--reduce", "--rate", "1000"]).exits(0);
    assert_eq!(home.read("ran"), format!("{before}work n1\nwork n2\nwork n3\nreduced\n"));
    let letters = home.json(&["dlq", "ls", "@last", "--json"]);
    assert!(letters.is_empty());
}

#[test]
fn a_redrive_that_fails_again_is_a_new_round_in_the_history() {
    let home = home();
    home.run(&["dlq", "redrive", "@last", "#0", "--json"]).exits(4);
    let letters = home.json(&["dlq", "ls", "@last", "#0", "--json"]);
    assert_eq!(letters[0]["round"], 2);
    assert_eq!(letters[0]["attempts"].as_array().expect("attempts").len(), 5);
}

#[test]
fn a_dropped_item_is_no_longer_a_dead_letter() {
    let home = home();
    home.run(&["dlq", "drop", "@last", "#0", "#1", "--yes"]).exits(0);
    assert_eq!(items(&home, &[]), ["n3"]);
    let shown = home.json(&["show", "@last", "--json"]);
    assert_eq!(shown[0]["items"]["skipped"], 2);
    let said = home.run(&["explain", "@last/n1"]).exits(0).out;
    assert!(said.contains("skipped (not_selected): The dead letter was dropped"), "{said}");
}

#[test]
fn inputs_are_exported_to_be_run_elsewhere() {
    let home = home();
    home.run(&["dlq", "export", "@last", "--where", "code == 2", "-o", "again.jsonl"]).exits(0);
    assert_eq!(home.read("again.jsonl"), "{\"code\":2,\"id\":\"n2\"}\n");
}

#[test]
fn a_list_is_redriven_from_the_command_that_failed() {
    let home = CliHome::new();
    home.write(
        "list.yaml",
        "- shell: echo a >> ran\n- shell: echo b >> ran; test -e fixed\n- shell: echo c >> ran\n",
    );
    home.run(&["run", "list.yaml"]).exits(1);
    home.write("fixed", "");
    home.run(&["dlq", "redrive", "@last"]).exits(0);
    assert_eq!(home.read("ran"), "a\nb\nb\nc\n");
}
