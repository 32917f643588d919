//! `exec`: one command, retried, with everything passed through.

use crate::home::CliHome;

#[test]
fn output_input_and_exit_status_pass_through() {
    let home = CliHome::new();
    let script = "cat; echo complaint >&2; exit 3";
    let printed = home.run_with("hello\n", &["exec", "--attempts", "0", "--quiet", "--", "sh", "-c", script]);
    let printed = printed.exits(3);
    assert_eq!((printed.out.as_str(), printed.err.as_str()), ("hello\n", "complaint\n"));
}

#[test]
fn every_attempt_reads_the_same_input_and_the_last_status_counts() {
    let home = CliHome::new();
    let script = "cat >> seen; [ \"$UNDAUNTED_ATTEMPT\" = 3 ] || exit 5";
    let flags = ["exec", "--attempts", "4", "--initial-delay", "10ms", "--", "sh", "-c", script];
    let printed = home.run_with("one\n", &flags).exits(0);
    assert_eq!(home.read("seen"), "one\none\none\n");
    assert!(
        printed.err.contains("attempt 1 of 5 failed (exit status 5); retry 1 of 4 in 10ms"),
        "{}",
        printed.err
    );
    assert!(printed.err.contains("attempt 3 succeeded"), "{}", printed.err);
}

#[test]
fn without_flags_there_are_three_retries() {
    let home = CliHome::new();
    let shell = ["exec", "--initial-delay", "1ms", "--", "sh", "-c", "echo x >> ran; exit 1"];
    home.run(&shell).exits(1);
    assert_eq!(home.read("ran").lines().count(), 4);
}

#[test]
fn a_timeout_is_124_a_signal_128_and_its_number_and_our_own_errors_125() {
    let home = CliHome::new();
    let once = |rest: &[&str]| {
        let all = [&["exec", "--attempts", "0", "-q"], rest].concat();
        home.run(&all).code
    };
    assert_eq!(once(&["--timeout", "50ms", "--", "sleep", "10"]), 124);
    assert_eq!(once(&["--", "sh", "-c", "kill -9 $$"]), 137);
    assert_eq!(once(&["--", "no-such-program-anywhere"]), 127);
    assert_eq!(home.run(&["exec", "--attempts", "many", "--", "true"]).code, 125);
    assert_eq!(home.run(&["--store", "/dev/null/x", "exec", "--", "true"]).code, 125);
}

#[test]
fn arguments_reach_the_command_as_they_were_typed() {
    let home = CliHome::new();
    let odd = ["a b", "${HOME}", "$x", "*", "'\"\\", "", "--flag", "${item.x}", "$${", "$${x}", "ü\nz"];
    let all = [&["exec", "--", "printf", "[%s]"][..], &odd].concat();
    let printed = home.run(&all).exits(0);
    let expected = format!("[{}]", odd.join("]["));
    assert_eq!(printed.out, expected);
    let printed = home.run(&["exec", "--", "printf", "%s", "last ${HOME}"]).exits(0);
    assert_eq!(printed.out, "last ${HOME}");
}

#[test]
fn a_program_that_is_missing_is_named() {
    let home = CliHome::new();
    let printed = home.run(&["exec", "--", "no-such-program-anywhere"]).exits(127);
    assert!(printed.err.contains("`no-such-program-anywhere` is not installed"), "{}", printed.err);
}

#[test]
fn all_of_a_long_output_passes_through() {
    let home = CliHome::new();
    let script = "head -c 7000000 /dev/zero | tr '\\0' x; echo end";
    let printed = home.run(&["exec", "--", "sh", "-c", script]).exits(0);
    assert_eq!(printed.out.len(), 7_000_004);
    assert!(printed.out.ends_with("xend\n"));
}

#[test]
fn the_output_of_a_command_is_shown_while_it_runs() {
    use std::io::{BufRead, BufReader};
    let home = CliHome::new();
    let script = "echo first; while [ ! -e go ]; do sleep 0.01; done; echo second";
    let mut child = home.command(&["exec", "--", "sh", "-c", script]).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "first");
    home.write("go", "");
    assert_eq!(lines.next().expect("a line").expect("text"), "second");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_killed_exec_is_resumed_and_its_command_not_run_again() {
    use std::time::{Duration, Instant};
    let home = CliHome::new();
    let script = "echo x >> ran; while [ ! -e go ]; do sleep 0.01; done; echo done";
    let mut child = home.command(&["exec", "--", "sh", "-c", script]).spawn().expect("it runs");
    let began = Instant::now();
    while home.read("ran").is_empty() {
        assert!(began.elapsed() < Duration::from_secs(30), "it never ran");
        std::thread::yield_now();
    }
    child.kill().expect("killed");
    child.wait().expect("gone");
    home.write("go", "");
    let printed = home.run(&["resume", "@last"]).exits(0);
    assert_eq!(home.read("ran"), "x\n");
    assert!(printed.out.contains("done"), "the output passes through: {}", printed.out);
}

/// Starts `exec` and waits until its command has written to `file`.
fn exec_until(home: &CliHome, file: &str, script: &str) -> std::process::Child {
    let args = ["exec", "--initial-delay", "1h", "--max-delay", "1h", "--", "sh", "-c", script];
    let child = home.command(&args).spawn().expect("it runs");
    let began = std::time::Instant::now();
    while home.read(file).is_empty() {
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "nothing was written");
        std::thread::yield_now();
    }
    child
}

fn send(signal: &str, to: &std::process::Child) {
    let kill =
        std::process::Command::new("kill").args([&format!("-{signal}"), &to.id().to_string()]).status();
    assert!(kill.expect("it runs").success());
}

fn assert_cancelled(home: &CliHome, code: i32, mut child: std::process::Child) {
    assert_eq!(child.wait().expect("it ends").code(), Some(code));
    let shown: serde_json::Value =
        serde_json::from_str(&home.run(&["show", "@last", "--json"]).exits(0).out).expect("JSON");
    assert_eq!(shown.get("status").and_then(serde_json::Value::as_str), Some("cancelled"), "{shown}");
    assert_eq!(home.run(&["attempts", "@last", "--json"]).exits(0).out.lines().count(), 1);
}

#[test]
fn a_signal_is_passed_on_and_the_command_is_not_retried() {
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let home = CliHome::new();
        let script = format!(
            "trap 'echo {signal} >> got; exit 3' {signal}; echo up > up; while :; do sleep 0.01; done"
        );
        let child = exec_until(&home, "up", &script);
        send(signal, &child);
        assert_cancelled(&home, 128 + number, child);
        assert_eq!(home.read("got"), format!("{signal}\n"));
    }
}

#[test]
fn a_signal_during_a_wait_cancels_at_once() {
    let home = CliHome::new();
    let child = exec_until(&home, "ran", "echo ran >> ran; exit 1");
    while !home.run(&["events", "@last"]).out.contains("retry_scheduled") {}
    send("INT", &child);
    assert_cancelled(&home, 130, child);
    assert_eq!(home.read("ran"), "ran\n");
}

#[test]
fn a_second_signal_kills_a_command_that_ignores_the_first() {
    let home = CliHome::new();
    let script = "trap 'echo ignored >> got' TERM; echo up > up; while :; do sleep 0.01; done";
    let child = exec_until(&home, "up", script);
    send("TERM", &child);
    let began = std::time::Instant::now();
    while home.read("got").is_empty() {
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "the signal never arrived");
        std::thread::yield_now();
    }
    send("TERM", &child);
    assert_cancelled(&home, 143, child);
    // Without the second signal the grace would be over after ten seconds.
    assert!(began.elapsed() < std::time::Duration::from_secs(8));
}

#[test]
fn a_command_whose_reader_has_gone_is_ended() {
    use std::io::{BufRead, BufReader};
    let home = CliHome::new();
    let mut child = home.command(&["exec", "-q", "--", "yes"]).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "y");
    drop(lines);
    assert_eq!(child.wait().expect("it ends").code(), Some(141));
}

#[test]
fn output_that_cannot_be_written_is_no_success() {
    use std::process::Stdio;
    let home = CliHome::new();
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("it is there");
    let exec = home.command(&["exec", "--", "echo", "hi"]).stdout(Stdio::from(full())).output();
    assert_eq!(exec.expect("it runs").status.code(), Some(125));
    home.write("list", "1\n2\n");
    let map = ["map", "-a", "list", "-q", "--", "echo"];
    let map = home.command(&map).stdout(Stdio::from(full())).output().expect("it runs");
    assert_eq!(map.status.code(), Some(7), "{}", String::from_utf8_lossy(&map.stderr));
}

#[test]
fn a_call_that_is_refused_leaves_nothing_in_the_store() {
    let home = CliHome::new();
    let jobs = || {
        let listed = std::fs::read_dir(home.path("store/jobs")).expect("a folder");
        listed.count()
    };
    home.run(&["exec", "--", "true"]).exits(0);
    assert_eq!(jobs(), 1);
    home.run_with("input", &["exec", "--timeout", "soon", "--", "cat"]).exits(125);
    home.run_with("a\nb\n", &["map", "--initial-delay", "soon", "--", "echo"]).exits(2);
    assert_eq!(jobs(), 1);
}
