//! `map`: one command for each line.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use crate::home::CliHome;

#[test]
fn a_line_is_one_argument_wherever_the_place_is() {
    let home = CliHome::new();
    let lines = "a b\n$(touch hacked)\n'quo\"te\n";
    let printed =
        home.run_with(lines, &["map", "-k", "-q", "--", "printf", "<%s>[%s]\n", "{}", "x{}y"]).exits(0);
    assert_eq!(printed.out, "<a b>[xa by]\n<$(touch hacked)>[x$(touch hacked)y]\n<'quo\"te>[x'quo\"tey]\n");
    assert!(!home.path("hacked").exists());
    let printed = home.run_with("1\n2\n", &["map", "-k", "-q", "--", "echo", "last"]).exits(0);
    assert_eq!(printed.out, "last 1\nlast 2\n", "appended");
}

#[test]
fn output_is_grouped_by_item_and_kept_in_order_if_asked() {
    let home = CliHome::new();
    let script = "sleep 0.$((3 - $1)); echo a$1; echo b$1";
    let command = ["map", "-k", "-q", "-j", "3", "--", "sh", "-c", script, "sh"];
    let printed = home.run_with("1\n2\n3\n", &command).exits(0);
    assert_eq!(printed.out, "a1\nb1\na2\nb2\na3\nb3\n");
}

#[test]
fn a_tag_names_the_item_before_every_line() {
    let home = CliHome::new();
    let command = ["map", "-k", "-q", "--tag", "--", "sh", "-c", "echo one; echo two; echo no >&2", "sh"];
    let printed = home.run_with("x\n", &command).exits(0);
    assert_eq!(printed.out, "x\tone\nx\ttwo\n");
    assert_eq!(printed.err, "x\tno\n");
}

#[test]
fn items_end_with_lines_or_with_zero_bytes_and_come_from_a_file_if_asked() {
    let home = CliHome::new();
    let zero = home.run_with("a\nb\0c\0", &["map", "-0", "-k", "-q", "--", "printf", "[%s]", "{}"]);
    assert_eq!(zero.exits(0).out, "[a\nb][c]");
    home.write("list", "x\r\n\ny");
    let file = home.run(&["map", "-a", "list", "-k", "-q", "--", "printf", "[%s]", "{}"]);
    assert_eq!(file.exits(0).out, "[x][y]");
    home.run(&["map", "-a", "missing", "--", "true"]).exits(6);
}

#[test]
fn permanently_failed_items_are_dead_letters_and_set_the_exit_code() {
    let home = CliHome::new();
    let script = "[ $1 != 2 ] || { echo broken >&2; exit 7; }";
    let command =
        ["map", "--attempts", "1", "--initial-delay", "1ms", "--json", "--", "sh", "-c", script, "sh"];
    let printed = home.run_with("1\n2\n3\n", &command).exits(4);
    let lines = printed.out.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let mut lines: Vec<serde_json::Value> = lines.collect();
    let report = lines.pop().expect("a report");
    assert_eq!(report["items"]["dead"], 1);
    assert_eq!(report["attempts"], 4);
    let dead = lines.iter().find(|line| line["input"] == "2").expect("an item");
    assert_eq!(dead["reason"], "attempts");
    assert_eq!(printed.err, "");
    let letters = home.json(&["dlq", "ls", "@last", "--json"]);
    assert_eq!(letters[0]["input"], "2");
}

#[test]
fn retries_of_all_items_together_are_limited_if_asked() {
    let home = CliHome::new();
    let flags = ["map", "--initial-delay", "1ms", "--job-retries", "4", "-q"];
    let command = [&flags[..], &["--", "sh", "-c", "echo x >> ran; exit 1"]].concat();
    home.run_with("1\n2\n3\n4\n5\n6\n", &command).exits(4);
    assert_eq!(home.read("ran").lines().count(), 10, "six attempts and four retries");
}

#[test]
fn an_empty_list_is_done_at_once() {
    let home = CliHome::new();
    home.run_with("", &["map", "--", "false"]).exits(0);
}

#[test]
fn the_operators_limit_of_retries_is_named_with_the_flags_that_were_typed() {
    let home = CliHome::new();
    let flags = ["map", "--initial-delay", "1ms", "--job-retries", "60", "--attempts", "10"];
    let command = [&flags[..], &["--", "sh", "-c", "echo x >> ran; exit 1"]].concat();
    let printed = home.run_with("1\n", &command).exits(4);
    assert_eq!(home.read("ran").lines().count(), 6, "the first attempt and 5 retries");
    for note in [
        "note: --job-retries 60 exceeds RETRY_BUDGET_MAX; 50 is used instead",
        "note: with --job-retries, --attempts 10 exceeds RETRY_BUDGET_PER_WORKFLOW_MAX; 5 is used instead",
        "attempt 1 of 6 failed (exit status 1); retry 1 of 5 in",
    ] {
        assert!(printed.err.contains(note), "{}", printed.err);
    }
    assert!(!printed.err.contains("of 10"), "{}", printed.err);
    assert!(!printed.err.contains("retry_budget"), "{}", printed.err);
}

#[test]
fn a_wrong_value_is_refused_with_its_flag_and_all_that_the_flag_takes() {
    let home = CliHome::new();
    let numbers = "must be a whole number from 0 to";
    for (command, flag, value, takes) in [
        ("exec", "--backoff", "custom", "[possible values: fixed, linear, exponential, fibonacci]"),
        ("map", "--jitter", "0.5", "[possible values: true, false, full, equal, decorrelated]"),
        ("map", "--retry-on", "all", "[possible values: network, timeout, server_error, rate_limit]"),
        ("map", "--attempts", "-1", numbers),
        ("map", "--attempts", "5000000000", "from 0 to 4294967295, or `unlimited`"),
        ("map", "--job-retries", "many", "must be a whole number of at least 0"),
        ("map", "--jobs", "0", "must be a whole number from 1 to 4294967295"),
        ("map", "--initial-delay", "5 seconds", "`5 seconds` is not a duration; write `5s`"),
        ("map", "--max-delay", "400000000d", "must be a duration of at most 584 years"),
        ("map", "--retry-budget", "400000000d", "must be a duration of at most 584 years"),
        ("map", "--timeout", "0s", "must be a duration above 0"),
        ("run", "--seed", "x", numbers),
        ("schedule", "--retries", "x", numbers),
        ("dlq redrive", "--rate", "0", "must be a number above 0"),
        ("logs", "--attempt", "first", "must be a whole number from 1 to"),
    ] {
        let rest: &[&str] = if ["exec", "map"].contains(&command) { &["--", "true"] } else { &["@last"] };
        let words: Vec<&str> = command.split(' ').chain([flag, value]).chain(rest.iter().copied()).collect();
        let printed = home.run_with("1\n", &words).exits(if command == "exec" { 125 } else { 2 });
        assert!(printed.err.contains(&format!("invalid value '{value}' for '{flag} ")), "{}", printed.err);
        assert!(printed.err.contains(takes), "{}", printed.err);
        let keys = ["initial_delay", "max_delay", "retry_budget", "retry_config"];
        assert!(!keys.iter().any(|key| printed.err.contains(key)), "{}", printed.err);
    }
    assert!(home.json(&["ls", "--json"]).is_empty(), "nothing is stored");
}

#[test]
fn ordered_output_continues_after_what_was_printed_before_a_kill() {
    use std::io::{BufRead, BufReader};
    let home = CliHome::new();
    let lines: Vec<String> = (1..=40).map(|n| n.to_string()).collect();
    home.write("list", &lines.join("\n"));
    let script = "[ $1 -le 10 ] || while [ ! -e go ]; do sleep 0.01; done; echo $1";
    let command = ["map", "-a", "list", "-k", "-q", "-j", "2", "--", "sh", "-c", script, "sh"];
    let mut child = home.command(&command).spawn().expect("it runs");
    let mut printed = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    for number in 1..=10 {
        let line = printed.next().expect("a line").expect("text");
        assert_eq!(line, number.to_string());
    }
    child.kill().expect("killed");
    child.wait().expect("gone");
    home.write("go", "");
    let resumed = home.run(&["resume", "@last", "-q"]).exits(0);
    // What was printed and not yet noted as printed comes again; nothing is left out.
    let printed: Vec<&str> = resumed.out.lines().collect();
    let first = printed.first().and_then(|line| line.parse::<usize>().ok());
    let first = first.expect("a number");
    assert!((1..=11).contains(&first), "{}", resumed.out);
    let rest: Vec<&str> = lines.iter().skip(first - 1).map(String::as_str).collect();
    assert_eq!(printed, rest);
}

#[test]
fn with_json_every_settled_item_is_an_object_with_its_output_and_the_report_is_last() {
    let home = CliHome::new();
    let script = "printf 'out of %s\\n' \"$1\"; echo err >&2; printf 'no newline\\377'; [ $1 != 2 ]";
    let command = ["map", "-k", "--attempts", "0", "--json", "--", "sh", "-c", script, "sh"];
    let printed = home.run_with("1\n2\n", &command).exits(4);
    let lines: Vec<serde_json::Value> =
        printed.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let [first, second, report] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(first["item"], "1");
    assert_eq!(first["status"], "succeeded");
    assert_eq!(first["output"]["base64"], "b3V0IG9mIDEKbm8gbmV3bGluZf8=");
    assert_eq!(first["stderr"], "err\n");
    assert_eq!((&second["status"], &second["reason"]), (&"dead".into(), &"attempts".into()));
    assert_eq!((&report["status"], &report["items"]["dead"]), (&"partial".into(), &1.into()));
    assert_eq!(printed.err, "");
}

#[test]
fn a_resumed_command_leaves_standard_output_to_json() {
    let home = CliHome::new();
    let script = "touch up; while ! [ -e go ]; do sleep 0.01; done; echo done";
    let mut run = home.command(&["exec", "--", "sh", "-c", script]).spawn().expect("it runs");
    while !home.path("up").exists() {
        assert!(run.try_wait().expect("a state").is_none(), "it ended");
    }
    run.kill().expect("killed");
    run.wait().expect("gone");
    home.write("go", "");
    let resumed = home.run(&["resume", "@last", "--json"]).exits(0);
    let report: serde_json::Value = serde_json::from_str(&resumed.out).expect("one object");
    assert_eq!(report["status"], "completed");
    assert!(resumed.err.contains("done\n"), "{}", resumed.err);
}

#[test]
fn an_item_that_is_not_text_is_passed_as_its_bytes_and_does_not_stop_the_others() {
    let home = CliHome::new();
    let name = OsStr::from_bytes(b"caf\xe9.txt");
    std::fs::write(home.path("").join(name), "found").expect("written");
    std::fs::write(home.path("list"), b"plain.txt\0caf\xe9.txt\0").expect("written");
    home.write("plain.txt", "plain");
    let command = ["map", "-0", "-a", "list", "-k", "--attempts", "0", "--json", "--", "cat", "./{}"];
    let printed = home.run(&command).exits(0);
    let lines: Vec<serde_json::Value> =
        printed.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let outputs: Vec<&serde_json::Value> = lines.iter().map(|line| &line["output"]).collect();
    assert_eq!(outputs[..2], ["plain", "found"]);
    assert_eq!(lines[1]["input"], serde_json::json!({"base64": "Y2Fm6S50eHQ="}));
    let item = lines[1]["item"].as_str().expect("a name");
    assert!(item.starts_with("caf\\xE9.txt~"), "{item}");
    let shown = home.json(&["show", "--json", "@last"]);
    assert_eq!(shown[0]["items"]["succeeded"], 2);
    home.run(&["logs", &format!("@last/{item}")]).exits(0);

    let tagged = home.command(&["map", "-0", "-a", "list", "-k", "-q", "--tag", "--", "echo"]).output();
    assert_eq!(tagged.expect("it runs").stdout, b"plain.txt\tplain.txt\ncaf\xe9.txt\tcaf\xe9.txt\n");
}
