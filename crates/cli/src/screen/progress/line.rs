//! One line of a frame: coloured pieces, never wider than the terminal.
//!
//! Text of commands and files is escaped, because it could move the cursor.

use unicode_width::UnicodeWidthChar;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Faint,
    Good,
    Bad,
    Busy,
}

impl Tone {
    const fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Faint => Some("2"),
            Self::Good => Some("32"),
            Self::Bad => Some("31"),
            Self::Busy => Some("33"),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct FrameLine {
    pieces: Vec<(Tone, String)>,
    width: usize,
    room: usize,
}

impl FrameLine {
    pub(super) const fn new(room: usize) -> Self {
        Self { pieces: Vec::new(), width: 0, room }
    }

    #[cfg(test)]
    pub(super) const fn width(&self) -> usize {
        self.width
    }

    /// Adds a piece, or as much of it as fits; then the line is full.
    pub(super) fn push(&mut self, tone: Tone, text: &str) {
        if text.is_empty() {
            return;
        }
        let fits = self.has_room_for(width(text));
        let text = cut(text, self.room.saturating_sub(self.width));
        self.width = self.width.saturating_add(width(&text));
        self.pieces.push((tone, text));
        if !fits {
            self.room = self.width;
        }
    }

    pub(super) const fn has_room_for(&self, columns: usize) -> bool {
        self.width.saturating_add(columns) <= self.room
    }

    pub(super) fn pad(&mut self, column: usize) {
        let column = column.min(self.room);
        let spaces = " ".repeat(column.saturating_sub(self.width));
        self.push(Tone::Plain, &spaces);
    }

    pub(super) fn drawn(&self, colour: bool) -> String {
        let mut drawn = String::new();
        for (tone, text) in &self.pieces {
            match tone.code().filter(|_| colour) {
                Some(code) => {
                    drawn.push_str("\x1b[");
                    drawn.push_str(code);
                    drawn.push('m');
                    drawn.push_str(text);
                    drawn.push_str("\x1b[0m");
                }
                None => drawn.push_str(text),
            }
        }
        drawn
    }
}

/// In columns.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

fn columns(character: char) -> usize {
    match character {
        // This variation selector turns the character before it into an emoji, which is wider.
        '\u{fe0f}' => 1,
        other => other.width().unwrap_or(0),
    }
}

/// A text, shortened with `…` to this number of columns.
pub(super) fn cut(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let Some(room) = room.checked_sub(1) else {
        return String::new();
    };
    let mut used = 0_usize;
    let fitting = text.chars().take_while(|character| {
        used = used.saturating_add(columns(*character));
        used <= room
    });
    let mut fitting: String = fitting.collect();
    fitting.push('…');
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::words::plain;

    #[test]
    fn a_line_is_never_wider_than_its_room() {
        for text in ["plain", "日本語の名前", "e\u{301}e\u{301}e\u{301}", "❤\u{fe0f}❤\u{fe0f}"] {
            for room in 0..15 {
                let mut line = FrameLine::new(room);
                line.push(Tone::Good, text);
                line.push(Tone::Plain, text);
                assert!(line.width() <= room, "{text} in {room}");
                assert_eq!(width(&line.drawn(false)), line.width());
            }
        }
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(plain("a\x1b[2Jb\nc\td\r\u{9b}\u{202e}é"), "a\\u{1b}[2Jb\\nc d\\r\\u{9b}\\u{202e}é");
    }
}
