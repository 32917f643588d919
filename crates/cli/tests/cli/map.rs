//! `map`: one command for each line.

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
    let report: serde_json::Value = serde_json::from_str(&printed.out).expect("JSON");
    assert_eq!(report["items"]["dead"], 1);
    assert_eq!(report["attempts"], 4);
    assert_eq!(printed.err, "broken\n");
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
fn a_bad_flag_is_named_and_nothing_is_stored() {
    let home = CliHome::new();
    let printed = home.run_with("1\n", &["map", "--initial-delay", "5 seconds", "--", "true"]).exits(2);
    assert!(printed.err.contains("5 seconds"), "{}", printed.err);
    assert!(home.json(&["ls", "--json"]).is_empty());
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
