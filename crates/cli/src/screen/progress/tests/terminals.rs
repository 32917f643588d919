//! Frames on an emulated terminal.

use std::io::{self, Write};
use std::num::NonZero;

use vt100::Parser;

use crate::screen::progress::draw::Size;
use crate::screen::progress::line::{FrameLine, Tone};
use crate::screen::progress::terminal::Terminal;

const SIZE: Size = Size { columns: 20, rows: 8 };

/// A terminal as the kernel presents it: `\n` goes to the beginning of the next line.
struct Screen {
    parser: Parser,
    writes: usize,
}

fn size(cells: u16) -> NonZero<u16> {
    NonZero::new(cells).expect("not zero")
}

impl Screen {
    fn new() -> Self {
        Self { parser: Parser::new(size(8), size(20), 100), writes: 0 }
    }

    fn type_in(&mut self, text: &str) {
        self.parser.process(text.as_bytes());
    }

    fn lines(&self) -> Vec<String> {
        let contents = self.parser.screen().contents();
        contents.lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

impl Write for &mut Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        let text = String::from_utf8(bytes.to_vec()).expect("whole characters");
        self.parser.process(text.replace('\n', "\r\n").as_bytes());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn frame(lines: &[&str]) -> Vec<FrameLine> {
    let line = |text: &&str| {
        let mut line = FrameLine::new(19);
        line.push(Tone::Good, text);
        line
    };
    lines.iter().map(line).collect()
}

#[test]
fn a_frame_replaces_the_previous_one_in_one_write() {
    let mut screen = Screen::new();
    let mut terminal = Terminal::new(&mut screen, true);
    terminal.write("job\n", &[], SIZE);
    terminal.write("", &frame(&["one", "two is long", "three"]), SIZE);
    terminal.write("", &frame(&["eins", "zwei"]), SIZE);
    terminal.write("said\n", &frame(&["uno", "dos"]), SIZE);
    drop(terminal);
    assert_eq!(screen.lines(), ["job", "said", "uno", "dos"]);
    assert_eq!(screen.writes, 4);
    assert_eq!(screen.parser.screen().cursor_position(), (4, 0));
}

#[test]
fn an_unchanged_frame_is_not_written() {
    let mut screen = Screen::new();
    let mut terminal = Terminal::new(&mut screen, false);
    for _ in 0..5 {
        terminal.write("", &frame(&["one", "two"]), SIZE);
    }
    drop(terminal);
    assert_eq!(screen.writes, 1);
}

#[test]
fn nothing_of_the_last_frame_stays() {
    let mut screen = Screen::new();
    let mut terminal = Terminal::new(&mut screen, true);
    terminal.write("", &frame(&["one", "two", "three", "four"]), SIZE);
    terminal.write("said\n", &[], SIZE);
    terminal.write("", &[], SIZE);
    drop(terminal);
    assert_eq!(screen.lines(), ["said"]);
    assert_eq!(screen.parser.screen().cursor_position(), (1, 0));
}

#[test]
fn lines_that_stay_scroll_away_above_a_frame() {
    let mut screen = Screen::new();
    let mut terminal = Terminal::new(&mut screen, true);
    for number in 1..=30 {
        terminal.write(&format!("said {number}\n"), &frame(&["one", "two"]), SIZE);
    }
    drop(terminal);
    assert_eq!(screen.lines(), ["said 26", "said 27", "said 28", "said 29", "said 30", "one", "two"]);
}

#[test]
fn a_long_line_is_broken_and_a_full_one_keeps_its_last_character() {
    let mut screen = Screen::new();
    let mut terminal = Terminal::new(&mut screen, false);
    terminal.write("", &frame(&["xxxxxxxxxxxxxxxxxxx"; 4]), SIZE);
    let full = "12345678901234567890";
    terminal.write(&format!("{full}\n{full}123\n"), &frame(&["one"]), SIZE);
    drop(terminal);
    assert_eq!(screen.lines(), [full, &format!("{full}123"), "one"]);
}

#[test]
fn text_typed_below_a_frame_is_cleared_by_the_next() {
    let mut screen = Screen::new();
    let mut terminal = Terminal::new(&mut screen, false);
    terminal.write("", &frame(&["one"]), SIZE);
    drop(terminal);
    screen.type_in("^C");
    assert_eq!(screen.lines(), ["one", "^C"]);
    let mut terminal = Terminal::new(&mut screen, false);
    terminal.write("", &frame(&["two"]), SIZE);
    drop(terminal);
    assert_eq!(screen.lines(), ["one", "two"]);
}

#[test]
fn after_output_of_another_process_a_frame_starts_below() {
    let mut screen = Screen::new();
    let mut terminal = Terminal::new(&mut screen, false);
    terminal.write("", &frame(&["one", "two"]), SIZE);
    terminal.forget_frame();
    terminal.write("", &frame(&["uno", "dos"]), SIZE);
    drop(terminal);
    assert_eq!(screen.lines(), ["one", "two", "uno", "dos"]);
}

#[test]
fn lines_that_a_narrower_terminal_has_broken_are_overwritten_too() {
    let mut bytes = Vec::new();
    let mut terminal = Terminal::new(&mut bytes, false);
    terminal.write("", &frame(&["fourteen chars", "four"]), SIZE);
    let narrow = Size { columns: 10, rows: 8 };
    terminal.write("", &frame(&["four"]), narrow);
    drop(terminal);
    let written = String::from_utf8(bytes).expect("text");
    let second = written.split_once("four\x1b[K\n\x1b[K").expect("a frame").1;
    assert_eq!(second, "\r\x1b[3Afour\x1b[K\n\x1b[K\n\x1b[K\n\x1b[K\r\x1b[2A");
}
