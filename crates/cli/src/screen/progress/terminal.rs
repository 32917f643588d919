//! Draws frames on a terminal.
//!
//! A frame overwrites the previous one, line by line, in a single write. Only redrawn lines are cleared, the
//! cursor is never hidden, and neither raw mode nor the alternate screen is used, so that a killed process leaves
//! the terminal usable.

use std::fmt::Write as _;
use std::io::Write;

use super::{FrameLine, Size, width};

const CLEAR: &str = "\x1b[K";

/// A terminal, and the frame that is on it. The cursor is at the beginning of the line below.
#[derive(Debug)]
pub(super) struct Terminal<W> {
    out: W,
    colour: bool,
    /// The lines of the frame, each with its width in columns.
    shown: Vec<(String, usize)>,
}

impl<W: Write> Terminal<W> {
    pub(super) const fn new(out: W, colour: bool) -> Self {
        Self { out, colour, shown: Vec::new() }
    }

    /// Starts the next frame below, because other processes have written to the screen.
    pub(super) fn forget_frame(&mut self) {
        self.shown.clear();
    }

    /// Writes permanent lines, and below them a frame that the next call overwrites.
    pub(super) fn write(&mut self, lines: &str, frame: &[FrameLine], size: Size) {
        let frame: Vec<_> = frame.iter().map(|line| (line.drawn(self.colour), line.width())).collect();
        if lines.is_empty() && frame == self.shown {
            return;
        }
        let columns = size.columns.max(1);
        // A terminal that has become narrower has wrapped lines that no longer fit.
        let old = rows(self.shown.iter().map(|(_, width)| *width), columns);
        let new = rows(lines.lines().map(width), columns).saturating_add(frame.len());
        let mut bytes = up(old);
        for line in lines.lines() {
            bytes.push_str(line);
            // With the cursor behind a full line, clearing would remove its last character.
            if width(line) == 0 || !width(line).is_multiple_of(columns) {
                bytes.push_str(CLEAR);
            }
            bytes.push('\n');
        }
        for (line, _) in &frame {
            let _ = writeln!(bytes, "{line}{CLEAR}");
        }
        // Clears what the user typed in the meantime.
        bytes.push_str(CLEAR);
        let rest = old.saturating_sub(new);
        if rest > 0 {
            bytes.push_str(&format!("\n{CLEAR}").repeat(rest));
            bytes.push_str(&up(rest));
        }
        self.shown = frame;
        // A closed terminal does not stop the job.
        let _ = self.out.write_all(bytes.as_bytes());
    }
}

fn rows(widths: impl Iterator<Item = usize>, columns: usize) -> usize {
    widths.map(|width| width.div_ceil(columns).max(1)).sum()
}

/// Moves to the beginning of the line so many rows above.
fn up(rows: usize) -> String {
    match rows {
        0 => "\r".to_owned(),
        rows => format!("\r\x1b[{rows}A"),
    }
}
