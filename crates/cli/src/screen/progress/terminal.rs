//! Draws frames on a terminal.
//!
//! A frame overwrites the previous one, line by line, in a single write. Between frames the cursor stays at the
//! beginning of the frame's first line: a terminal that is resized, whether it wraps lines anew or cuts them, moves
//! the cursor with that line, so that the next frame begins there, however many rows the last one has become.
//! Counting rows instead would erase lines above the frame, or leave a part of it.
//!
//! The cursor is never hidden, and neither raw mode nor the alternate screen is used, so that a killed process
//! leaves the terminal usable.

use std::io::Write;

use super::{FrameLine, Size, width};

const CLEAR: &str = "\x1b[K";
/// Clears everything from the cursor on: what is left of a longer frame or of wrapped lines.
const CLEAR_BELOW: &str = "\x1b[J";
/// If the terminal becomes narrower while a frame is on its way, a line is cut and takes no second row.
const CUT_LINES: &str = "\x1b[?7l";
const WRAP_LINES: &str = "\x1b[?7h";

/// Clears a frame whose first line has the cursor.
pub(super) const CLEAR_FRAME: &str = "\r\x1b[J";

/// A terminal, and the frame that is on it.
#[derive(Debug)]
pub(super) struct Terminal<W> {
    out: W,
    colour: bool,
    shown: Vec<String>,
    /// The size for which the frame was drawn.
    size: Option<Size>,
}

impl<W: Write> Terminal<W> {
    pub(super) const fn new(out: W, colour: bool) -> Self {
        Self { out, colour, shown: Vec::new(), size: None }
    }

    /// Draws the next frame even if it is the same: other processes have written to the screen.
    pub(super) fn forget_frame(&mut self) {
        self.shown.clear();
    }

    /// Writes permanent lines, and below them a frame that the next call overwrites.
    pub(super) fn write(&mut self, lines: &str, frame: &[FrameLine], size: Size) {
        let frame: Vec<String> = frame.iter().map(|line| line.drawn(self.colour)).collect();
        let is_resized = self.size.replace(size).is_some_and(|before| before != size);
        if lines.is_empty() && frame == self.shown && !is_resized {
            return;
        }
        let columns = size.columns.max(1);
        let mut bytes = "\r".to_owned();
        for line in lines.lines() {
            bytes.push_str(line);
            // With the cursor behind a full line, clearing would remove its last character.
            if width(line) == 0 || !width(line).is_multiple_of(columns) {
                bytes.push_str(CLEAR);
            }
            bytes.push('\n');
        }
        if frame.is_empty() {
            bytes.push_str(CLEAR_BELOW);
        } else {
            bytes.push_str(CUT_LINES);
            bytes.push_str(&frame.join(&format!("{CLEAR}\n")));
            bytes.push_str(CLEAR_BELOW);
            bytes.push_str(WRAP_LINES);
            bytes.push_str(&up(frame.len().saturating_sub(1)));
        }
        self.shown = frame;
        // A closed terminal does not stop the job.
        let _ = self.out.write_all(bytes.as_bytes());
        let _ = self.out.flush();
    }
}

/// Moves to the beginning of the line so many rows above.
fn up(rows: usize) -> String {
    match rows {
        0 => "\r".to_owned(),
        rows => format!("\r\x1b[{rows}A"),
    }
}
