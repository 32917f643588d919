//! A job on a terminal, judged by the bytes it writes.

use std::fs;
use std::path::Path;
use std::time::Instant;

use rustix::process::Signal;

use crate::pty::{Pty, escapes};

/// One item fails once and waits long enough to be seen; one waits to be let go.
const MAP: &str = "
name: regions
mode: mapreduce
map:
  input: {shell: \"printf 'north\\neast\\nsouth\\nwest\\n'\"}
  max_parallel: 4
  error_policy: {retry_config: {attempts: 1, backoff: fixed, initial_delay: 700ms}}
  agent_template:
    - shell: |
        case ${item} in
          north) test \"$UNDAUNTED_ATTEMPT\" -ge 2 || { echo 'no answer' >&2; exit 1; } ;;
          south) until [ -e go ] || [ ! -e w.yaml ]; do sleep 0.01; done ;;
        esac
reduce:
  - id: report
    shell: 'true'
";

fn folder(workflow: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("w.yaml"), workflow).expect("written");
    folder
}

fn go(folder: &Path) {
    fs::write(folder.join("go"), "").expect("written");
}

/// Frames end with how long the job has run.
fn frames(text: &str) -> usize {
    text.matches(" so far").count()
}

/// Nothing but: up so many lines, clear the rest of a line or of the screen, cut lines or wrap them, colours.
/// So there is no full clear, no other screen, and no cursor that is hidden.
fn is_modest(text: &str) {
    for escape in escapes(text) {
        let inner = escape.strip_prefix('[').and_then(|it| it.split_at_checked(it.len() - 1));
        let known = match inner {
            Some((number, "A" | "m")) => number.parse::<u16>().is_ok(),
            Some((number, "K" | "J")) => number.is_empty(),
            Some((number, "l" | "h")) => number == "?7",
            _ => false,
        };
        assert!(known, "{escape:?} in {text:?}");
    }
    assert!(!text.contains("\x1bc"));
}

/// What is left on the screen, without the id of the job and what took how long.
fn seen(pty: &Pty, columns: u16, rows: u16) -> String {
    let parser = pty.screen(columns, rows);
    let screen = parser.screen();
    let (_, column) = screen.cursor_position();
    assert_eq!(column, 0, "the shell finds a line of its own");
    assert!(!screen.hide_cursor());
    assert!(!screen.alternate_screen());
    let contents = screen.contents();
    let id = contents.split_whitespace().nth(1).unwrap_or_default();
    let lines = contents.lines().map(|line| {
        let line = line.trim_end();
        let line = line.split_once("; took ").map_or(line, |(before, _)| before);
        line.replace(id, "ID") + "\n"
    });
    lines.collect()
}

#[test]
fn a_job_draws_bars_and_leaves_only_its_messages() {
    let folder = folder(MAP);
    let mut pty = Pty::start(folder.path(), (90, 24), &[], &["run", "w.yaml"]);
    pty.until("countdown", |text| text.contains("north: retry 1 (attempt 2)"));
    assert!(pty.is_cooked());
    pty.until("bar", |text| text.contains("3 of 4 done"));
    go(folder.path());
    assert!(pty.wait().success());
    is_modest(&pty.text());
    assert!(pty.text().contains("\x1b[33m"), "colours");
    assert!(pty.is_cooked());
    snapbox::assert_data_eq!(
        seen(&pty, 90, 24),
        snapbox::str![[r"
job ID  regions
  map: 4 items, 4 at a time
  north: attempt 1 of 2 failed (exit status 1: no answer); retry 1 of 1 in 700ms
  north: attempt 2 succeeded
job ID completed
  4 of 4 items succeeded; 6 attempts, 1 retry, 700ms of delays

"]]
    );
}

#[test]
fn a_countdown_continues_while_nothing_happens() {
    let folder = folder(&MAP.replace("700ms", "1500ms"));
    let mut pty = Pty::start(folder.path(), (90, 24), &[], &["run", "w.yaml"]);
    let counts = |text: &str, second: &str| {
        let waits = text.split("  in ").skip(1);
        waits.filter(|wait| wait.starts_with(second)).count() > 0
    };
    pty.until("wait of more than a second", |text| counts(text, "1."));
    pty.until("wait of less than a second", |text| counts(text, "0."));
    go(folder.path());
    assert!(pty.wait().success());
}

/// The first failure opens the breaker; later the test lets the target come back.
const OUTAGE: &str = "
name: orders
mode: mapreduce
map:
  input: {shell: \"printf 'north\\neast\\n'\"}
  max_parallel: 1
  error_policy: {retry_config: {attempts: 9, backoff: fixed, initial_delay: 10ms}}
  agent_template:
    - shell: '[ -e go ] || { echo no answer >&2; exit 1; }'
      breaker: {name: payments, failure_threshold: 1, recovery_timeout: 1200ms, half_open_max_calls: 1}
";

#[test]
fn held_items_are_counted_and_the_time_to_the_next_probe_is_shown() {
    let folder = folder(OUTAGE);
    let mut pty = Pty::start(folder.path(), (90, 24), &[("NO_COLOR", "1")], &["run", "w.yaml"]);
    pty.until("what is held", |text| {
        text.contains("0 of 2 done, 2 held") && text.contains("2 held by payments, next probe in ")
    });
    go(folder.path());
    assert!(pty.wait().success());
    is_modest(&pty.text());
    let seen = seen(&pty, 90, 24);
    for line in [
        "breaker `payments` opened (1 failure); its commands are on hold,",
        "breaker `payments` closed: the target is back;",
    ] {
        assert!(seen.contains(line), "{seen}");
    }
    assert!(!seen.contains("held by payments"), "{seen}");
}

#[test]
fn there_are_at_most_ten_frames_a_second_however_much_happens() {
    let folder = folder(
        "mode: mapreduce\nmap:\n  input: {shell: seq 0 149}\n  max_parallel: 4\n  \
         agent_template:\n    - shell: sleep 0.02\n",
    );
    let began = Instant::now();
    let mut pty = Pty::start(folder.path(), (80, 24), &[], &["run", "w.yaml", "--verbose"]);
    assert!(pty.wait().success());
    let tenths = began.elapsed().as_millis() / 100;
    let drawn = frames(&pty.text());
    assert!(drawn > 1, "{:?}", pty.text());
    let most = usize::try_from(tenths).expect("a number") + 1;
    assert!(drawn <= most, "{drawn} frames in {tenths} tenths of a second");
    for line in ["0: attempt 1 started", "149: attempt 1 succeeded"] {
        assert!(pty.text().contains(line), "{line}");
    }
    is_modest(&pty.text());
}

#[test]
fn ctrl_c_suspends_the_job_and_leaves_a_clean_screen() {
    let folder = folder(MAP);
    let mut pty = Pty::start(folder.path(), (90, 24), &[], &["run", "w.yaml"]);
    // A frame may be ahead of the disk, and thus of the line about the same success.
    pty.until("frame and line", |text| {
        text.contains("3 of 4 done") && text.contains("north: attempt 2 succeeded")
    });
    pty.type_in("\x03");
    pty.until("word that it waits", |text| text.contains("waiting for 1 command"));
    go(folder.path());
    assert_eq!(pty.wait().code(), Some(75));
    is_modest(&pty.text());
    snapbox::assert_data_eq!(
        seen(&pty, 90, 24),
        snapbox::str![[r"
job ID  regions
  map: 4 items, 4 at a time
  north: attempt 1 of 2 failed (exit status 1: no answer); retry 1 of 1 in 700ms
  north: attempt 2 succeeded
  waiting for 1 command to finish; press Ctrl-C again to stop it now
job ID suspended
  4 of 4 items succeeded; 5 attempts, 1 retry, 700ms of delays
  resume: undaunted resume ID

"]]
    );
}

#[test]
fn every_signal_leaves_the_cursor_where_it_can_be_seen() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let folder = folder(MAP);
        let mut pty = Pty::start(folder.path(), (90, 24), &[], &["run", "w.yaml"]);
        pty.until("frame", |text| text.contains("3 of 4 done"));
        pty.signal(signal);
        pty.until("word that it waits", |text| text.contains("waiting for 1 command"));
        pty.signal(signal);
        assert_eq!(pty.wait().code(), Some(130));
        is_modest(&pty.text());
        assert!(pty.is_cooked());
        assert!(seen(&pty, 90, 24).contains("resume: undaunted resume ID"));
    }
}

#[test]
fn a_third_ctrl_c_still_restores_the_cursor() {
    let folder = folder(&MAP.replace(
        "south) until [ -e go ] || [ ! -e w.yaml ]; do sleep 0.01; done ;;",
        "south) trap '' TERM; until [ -e go ] || [ ! -e w.yaml ]; do sleep 0.01; done ;;",
    ));
    let mut pty = Pty::start(folder.path(), (90, 24), &[], &["run", "w.yaml"]);
    pty.until("frame", |text| text.contains("3 of 4 done"));
    pty.type_in("\x03");
    pty.until("word that it waits", |text| text.contains("waiting for 1 command"));
    pty.type_in("\x03");
    pty.until("word that it ends it", |text| text.contains("stopping 1 command"));
    pty.type_in("\x03");
    assert_eq!(pty.wait().code(), Some(130));
    go(folder.path());
    is_modest(&pty.text());
    assert!(pty.is_cooked());
    let screen = pty.screen(90, 24);
    assert!(!screen.screen().hide_cursor());
}

#[test]
fn on_a_narrow_terminal_no_line_of_a_frame_is_broken() {
    let folder = folder(MAP);
    let mut pty = Pty::start(folder.path(), (34, 12), &[("NO_COLOR", "1")], &["run", "w.yaml"]);
    pty.until("frame", |text| text.contains("75%"));
    pty.resize(26, 12);
    // A terminal of 34 columns has room for more behind the attempts.
    pty.until("frame for 26 columns", |text| text.contains("  5 attempts\x1b[J"));
    let parser = pty.screen(34, 12);
    let rows = parser.screen().rows(0, 34);
    for (number, row) in (0_u16..).zip(rows) {
        let of_a_frame = row.contains('%') || row.contains("so far") || row.contains("retry 1 (");
        assert!(!(of_a_frame && parser.screen().row_wrapped(number)), "{row}");
    }
    let text = pty.text();
    let last = text.rsplit("\x1b[?7l").next().expect("the last frame");
    for line in last.lines() {
        let line = line.split('\x1b').next().expect("its text");
        assert!(line.chars().count() < 26, "{line}");
    }
    go(folder.path());
    assert!(pty.wait().success());
}

#[test]
fn no_color_is_respected_and_a_dumb_terminal_gets_plain_lines() {
    let folder = folder(MAP);
    go(folder.path());
    let mut pty = Pty::start(folder.path(), (90, 24), &[("NO_COLOR", "1")], &["run", "w.yaml"]);
    assert!(pty.wait().success());
    assert!(frames(&pty.text()) > 0);
    assert!(!escapes(&pty.text()).iter().any(|escape| escape.ends_with('m')));
    let mut pty = Pty::start(folder.path(), (90, 24), &[("TERM", "dumb")], &["run", "w.yaml"]);
    assert!(pty.wait().success());
    assert!(pty.text().contains("north: attempt 2 succeeded"));
    assert_eq!(frames(&pty.text()), 0);
    assert!(!pty.text().contains('\x1b'), "{:?}", pty.text());
}

#[test]
fn a_quiet_job_on_a_terminal_prints_only_its_result() {
    let folder = folder(MAP);
    go(folder.path());
    let mut pty = Pty::start(folder.path(), (90, 24), &[], &["run", "w.yaml", "--quiet"]);
    assert!(pty.wait().success());
    assert!(!pty.text().contains('\x1b'));
    snapbox::assert_data_eq!(
        seen(&pty, 90, 24),
        snapbox::str![[r"
job ID completed
  4 of 4 items succeeded; 6 attempts, 1 retry, 700ms of delays

"]]
    );
}

#[test]
fn a_job_that_is_resumed_draws_bars_too() {
    let folder = folder(MAP);
    let mut pty = Pty::start(folder.path(), (90, 24), &[], &["run", "w.yaml"]);
    pty.until("frame", |text| text.contains("3 of 4 done"));
    pty.signal(Signal::KILL);
    pty.wait();
    let mut pty = Pty::start(folder.path(), (90, 24), &[], &["resume", "@last"]);
    pty.until("frame", |text| text.contains("3 of 4 done"));
    go(folder.path());
    assert!(pty.wait().success());
    is_modest(&pty.text());
}

#[test]
fn a_job_that_was_stopped_clears_its_frame_and_draws_below_what_was_typed_meanwhile() {
    let folder = folder(MAP);
    let mut pty = Pty::start(folder.path(), (90, 24), &[], &["run", "w.yaml"]);
    pty.until("frame", |text| text.contains("3 of 4 done") && text.contains("attempt 2 succeeded"));
    pty.signal(Signal::TSTP);
    pty.until("clear screen", |text| text.ends_with("\r\x1b[J"));
    pty.type_in("ls\n");
    pty.until("echo", |text| text.ends_with("ls\r\n"));
    pty.signal(Signal::CONT);
    pty.until("frame below", |text| {
        text.rsplit("ls\r\n").next().is_some_and(|after| after.contains("so far"))
    });
    go(folder.path());
    assert!(pty.wait().success());
    let seen = seen(&pty, 90, 24);
    assert!(seen.contains("\nls\njob ID completed"), "{seen}");
}

/// Whether the last frame was drawn for a terminal of at most this width.
fn fits(text: &str, columns: u16) -> bool {
    let last = text.rsplit("\x1b[?7l").next().unwrap_or_default();
    let widths = last.lines().map(|line| line.split('\x1b').next().unwrap_or_default().chars().count());
    last.contains("\x1b[?7h") && widths.max().unwrap_or_default() < columns.into()
}

#[test]
fn a_resized_terminal_keeps_a_reported_failure_and_shows_one_bar() {
    let folder = folder(MAP);
    let mut pty = Pty::start(folder.path(), (90, 24), &[("NO_COLOR", "1")], &["run", "w.yaml"]);
    pty.until("frame", |text| text.contains("3 of 4 done") && text.contains("attempt 2 succeeded"));
    let mut parser = pty.screen(90, 24);
    let mut done = pty.bytes.len();
    for (columns, rows) in [(40, 24), (30, 6), (100, 24), (60, 10)] {
        pty.resize(columns, rows);
        let size = |cells: u16| std::num::NonZero::new(cells).expect("not zero");
        parser.screen_mut().set_size(size(rows), size(columns));
        let drawn = |text: &str| text.matches("\x1b[?7l").count();
        let before = drawn(&pty.text());
        pty.until("frame for the new size", |text| drawn(text) > before && fits(text, columns));
        parser.process(pty.bytes.get(done..).expect("what is new"));
        done = pty.bytes.len();
        let contents = parser.screen().contents();
        assert_eq!(contents.matches('%').count(), 1, "{columns}x{rows}: {contents}");
        assert!(contents.matches("attempts,").count() <= 1, "{columns}x{rows}: {contents}");
    }
    let mut all = parser;
    all.screen_mut().set_scrollback(usize::MAX);
    go(folder.path());
    assert!(pty.wait().success());
    all.process(pty.bytes.get(done..).expect("what is new"));
    all.screen_mut().set_scrollback(usize::MAX);
    let contents = all.screen().contents();
    assert!(contents.contains("north: attempt 1 of 2 failed"), "{contents}");
    assert!(!contents.contains('%'), "{contents}");
}
