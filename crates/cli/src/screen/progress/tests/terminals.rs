//! Frames on an emulated terminal.

use std::cell::RefCell;
use std::io::{self, Write};
use std::num::NonZero;
use std::rc::Rc;

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

/// A screen that a test can resize while a terminal writes to it.
struct SharedScreen(Rc<RefCell<Screen>>);

impl Write for SharedScreen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&mut *self.0.borrow_mut()).write(bytes)
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
    assert_eq!(screen.parser.screen().cursor_position(), (2, 0));
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
    let expected = ["said 25", "said 26", "said 27", "said 28", "said 29", "said 30", "one", "two"];
    assert_eq!(screen.lines(), expected);
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
fn text_typed_into_a_frame_is_overwritten_by_the_next() {
    let mut screen = Screen::new();
    let mut terminal = Terminal::new(&mut screen, false);
    terminal.write("", &frame(&["one"]), SIZE);
    drop(terminal);
    screen.type_in("^C");
    assert_eq!(screen.lines(), ["^Ce"]);
    let mut terminal = Terminal::new(&mut screen, false);
    terminal.write("", &frame(&["two"]), SIZE);
    drop(terminal);
    assert_eq!(screen.lines(), ["two"]);
}

#[test]
fn after_output_of_another_process_the_same_frame_is_drawn_below() {
    let mut screen = Screen::new();
    let mut terminal = Terminal::new(&mut screen, false);
    terminal.write("", &frame(&["one", "two"]), SIZE);
    drop(terminal);
    screen.type_in("\r\x1b[Jls\r\n");
    let mut terminal = Terminal::new(&mut screen, false);
    terminal.forget_frame();
    terminal.write("", &frame(&["one", "two"]), SIZE);
    drop(terminal);
    assert_eq!(screen.lines(), ["ls", "one", "two"]);
}

/// What a terminal does to its lines when its width changes.
#[derive(Clone, Copy, Debug)]
enum OnResize {
    /// As xterm and the Linux console.
    Cuts,
    /// As most others.
    Wraps,
}

#[test]
fn a_resized_terminal_keeps_every_message_once_and_shows_one_frame() {
    let sizes = [(20, 8), (12, 8), (7, 8), (25, 8), (25, 4), (9, 4), (30, 12), (20, 8)];
    for on_resize in [OnResize::Cuts, OnResize::Wraps] {
        let screen = Rc::new(RefCell::new(Screen::new()));
        let mut terminal = Terminal::new(SharedScreen(Rc::clone(&screen)), false);
        terminal.write("first\nfailed\n", &bars(20, 0), SIZE);
        for (step, (columns, rows)) in sizes.into_iter().enumerate() {
            // Wrapped lines need more rows, and what scrolls away is not wrapped again here.
            let rows = if matches!(on_resize, OnResize::Wraps) { 30 } else { rows };
            screen.borrow_mut().resize(on_resize, columns, rows);
            let size = Size { columns: columns.into(), rows: rows.into() };
            // The same frame first: only the size has changed.
            terminal.write("", &bars(columns, step), size);
            terminal.write("", &bars(columns, step + 1), size);
        }
        let expected = ["first", "failed", "[==] 8", "two", "three"];
        assert_eq!(screen.borrow().lines(), expected, "{on_resize:?}");
    }
}

/// A frame for a terminal of this width, which changes with every step.
fn bars(columns: u16, step: usize) -> Vec<FrameLine> {
    let texts = [format!("[==] {step}"), "two".to_owned(), "three".to_owned()];
    let line = |text: String| {
        let mut line = FrameLine::new(usize::from(columns) - 1);
        line.push(Tone::Good, &text);
        // As long as the terminal is wide, so that a narrower one cannot show it in one row.
        line.pad(usize::from(columns) - 1);
        line
    };
    texts.map(line).into()
}

impl Screen {
    fn resize(&mut self, on_resize: OnResize, columns: u16, rows: u16) {
        match on_resize {
            OnResize::Cuts => self.parser.screen_mut().set_size(size(rows), size(columns)),
            OnResize::Wraps => {
                let screen = self.parser.screen();
                let (width, (row, _)) = (screen.size().1.get(), screen.cursor_position());
                let lines: Vec<String> = screen.rows(0, width).collect();
                let wrapped = |line: &String| line.chars().count().div_ceil(usize::from(columns)).max(1);
                let above: usize = lines.iter().take(row.into()).map(wrapped).sum();
                let last = lines.iter().rposition(|line| !line.is_empty()).unwrap_or_default();
                let all: usize = lines.iter().take(last + 1).map(wrapped).sum();
                let scrolled = all.saturating_sub(rows.into());
                self.parser = Parser::new(size(rows), size(columns), 100);
                self.parser.process(lines.get(..=last).unwrap_or_default().join("\r\n").as_bytes());
                let row = above.saturating_sub(scrolled) + 1;
                self.parser.process(format!("\x1b[{row};1H").as_bytes());
            }
        }
    }
}
