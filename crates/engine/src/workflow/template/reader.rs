//! Reads one `${…}`: whether it is ours, and what it names.
//!
//! In a text everything between `${` and `}` must be ours. In a shell text most of it belongs to the
//! shell, so only dotted names and names from `capture_output` are claimed, and the rest is left alone.
//! Whether a reference is allowed at its position is up to the shell lexer.

use std::ops::Range;

use super::names::KnownNames;
use super::reference::{Reference, Root};
use crate::workflow::cursor::Cursor;
use crate::workflow::filter::{Segment, SyntaxError, quoted};

/// Parsing of a template stops after so many errors.
pub(super) const MOST_ERRORS: usize = 1000;

const LITERAL: &str = "write `$${` for a literal `${`";
const BRACKETS: &str = "brackets must hold a number or a name in quotes, as in `[0]` or `['a b']`";

/// Decides whether an unknown name is an error or the shell's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TemplateLanguage {
    Text,
    Shell,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum BraceReading {
    /// The cursor is behind the reference.
    Ours(Reference, Range<usize>),
    /// The shell's; the cursor has not moved.
    Foreign,
    /// Ours, and wrong; the cursor is behind what was read.
    Refused(SyntaxError),
}

/// What a `$` begins where only our own references count: in texts, in single quotes and in quoted
/// here-documents.
///
/// Dollars are read in pairs from the left, as the shell reads them: `$${` is a literal `${`, and in
/// `$$${item}` the first two are plain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dollar {
    /// `$${`: a literal `${`.
    Literal,
    /// `${`: perhaps a reference.
    Brace,
    /// `$$`, which is plain text.
    Pair,
    Alone,
}

impl Dollar {
    pub(super) fn at(cursor: &Cursor<'_>) -> Self {
        if cursor.is_at("$${") {
            Self::Literal
        } else if cursor.starts_with("${") {
            Self::Brace
        } else if cursor.starts_with("$$") {
            Self::Pair
        } else {
            Self::Alone
        }
    }

    /// In characters.
    pub(super) fn length(self) -> usize {
        match self {
            Self::Literal => 3,
            Self::Brace | Self::Pair => 2,
            Self::Alone => 1,
        }
    }

    pub(super) fn plain_text(self) -> &'static str {
        match self {
            Self::Literal | Self::Brace => "${",
            Self::Pair => "$$",
            Self::Alone => "$",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ReferenceReader<'n> {
    names: KnownNames<'n>,
    language: TemplateLanguage,
}

impl<'n> ReferenceReader<'n> {
    pub(super) fn new(names: &KnownNames<'n>, language: TemplateLanguage) -> Self {
        Self { names: *names, language }
    }

    pub(super) fn read(&self, cursor: &mut Cursor<'_>) -> BraceReading {
        let start = cursor.at();
        let mut ahead = *cursor;
        ahead.skip(2);
        let raw = raw(&mut ahead);
        let name = name(&mut ahead);
        let mut text = name.clone();
        let mut path = vec![];
        let mut dotted = false;
        let end = loop {
            dotted |= ahead.peek() == Some('.');
            match segment(&mut ahead, &mut text) {
                Ok(Some(segment)) => path.push(segment),
                Ok(None) => break Ok(()),
                Err(why) => break Err(why),
            }
        };
        let ours = raw || (dotted && !name.is_empty()) || self.names.claims(&name);
        if !ours && self.language == TemplateLanguage::Shell {
            return BraceReading::Foreign;
        }
        let read = match end {
            _ if name.is_empty() => Err(refused("expected a name after `${`", LITERAL)),
            Err(why) => Err(refused(why, LITERAL)),
            Ok(()) => self.default(&mut ahead, &text),
        };
        *cursor = ahead;
        let range = start..ahead.at();
        let reading = read.and_then(|default| {
            let (root, path) = self.resolve(&text, &name, path)?;
            Ok(Reference { text, root, path, default, raw })
        });
        match reading {
            Ok(reference) => BraceReading::Ours(reference, range),
            Err(error) => BraceReading::Refused(SyntaxError { range, ..error }),
        }
    }

    fn resolve(
        &self,
        text: &str,
        name: &str,
        path: Vec<Segment>,
    ) -> Result<(Root, Vec<Segment>), SyntaxError> {
        let bare = path.is_empty() && self.language == TemplateLanguage::Shell;
        self.names.resolve(text, name, path).map_err(|unknown| {
            let more = if bare && self.names.claims(name) {
                format!("write `${name}` for a shell variable")
            } else {
                LITERAL.to_owned()
            };
            refused(unknown.message, &format!("{}; {more}", unknown.help))
        })
    }

    /// Reads the closing brace, or `:-`, a default and the brace.
    fn default(&self, cursor: &mut Cursor<'_>, text: &str) -> Result<Option<String>, SyntaxError> {
        match cursor.peek() {
            Some('}') => {
                cursor.bump();
                Ok(None)
            }
            Some(':') if cursor.peek_second() == Some('-') => {
                cursor.skip(2);
                self.default_text(cursor, text).map(Some)
            }
            Some(operator)
                if self.language == TemplateLanguage::Shell && "%#:/^,=?+-@".contains(operator) =>
            {
                let help = format!(
                    "assign it to a variable first: `value=${{{text}}}`, then `${{value{operator}…}}`"
                );
                Err(refused(format!("the shell operator `{operator}` cannot follow `{text}`"), &help))
            }
            Some(other) if !other.is_control() => {
                Err(refused(format!("`{other}` cannot follow `{text}`"), LITERAL))
            }
            _ => Err(unclosed(text)),
        }
    }

    /// The default is plain text; braces inside it pair.
    fn default_text(&self, cursor: &mut Cursor<'_>, text: &str) -> Result<String, SyntaxError> {
        let mut default = String::new();
        let mut depth = 0_usize;
        while let Some(c) = cursor.peek() {
            match c {
                '}' if depth == 0 => {
                    cursor.bump();
                    return Ok(default);
                }
                '}' => depth = depth.saturating_sub(1),
                '{' => depth = depth.saturating_add(1),
                '$' | '`' if self.expands(cursor) => {
                    let message = format!("the default of `{text}` is plain text; nothing in it is expanded");
                    return Err(refused(
                        message,
                        "write the default out, or choose the value in the command",
                    ));
                }
                _ => {}
            }
            default.push(c);
            cursor.bump();
        }
        Err(unclosed(text))
    }

    /// Whether the author could expect an expansion here.
    fn expands(&self, cursor: &Cursor<'_>) -> bool {
        let shell = self.language == TemplateLanguage::Shell;
        match cursor.peek_second() {
            _ if cursor.peek() == Some('`') => shell,
            Some('{') => true,
            Some(c) => shell && (begins_name(c) || c == '('),
            None => false,
        }
    }
}

fn raw(cursor: &mut Cursor<'_>) -> bool {
    let mut ahead = *cursor;
    // `${raw:-x}` and `${raw:0:3}` are the shell's variable `raw`.
    let ours = ahead.eat("raw:") && ahead.peek().is_some_and(begins_name);
    if ours {
        *cursor = ahead;
    }
    ours
}

/// A name has no `-`, because `${name-word}` is the shell's.
fn name(cursor: &mut Cursor<'_>) -> String {
    if !cursor.peek().is_some_and(begins_name) {
        return String::new();
    }
    cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The next segment of the path, if any, which is also added to `text` as written. The cursor stays
/// before brackets that hold no segment.
fn segment(cursor: &mut Cursor<'_>, text: &mut String) -> Result<Option<Segment>, &'static str> {
    match cursor.peek() {
        Some('.') => {
            cursor.bump();
            text.push('.');
            let field = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
            if field.is_empty() {
                return Err("expected a name after the `.`");
            }
            text.push_str(&field);
            Ok(Some(Segment::Field(field)))
        }
        Some('[') => {
            let mut ahead = *cursor;
            ahead.bump();
            let inside = ahead;
            let segment = in_brackets(&mut ahead).ok_or(BRACKETS)?;
            let written = between(inside, ahead.at());
            // A name stands on one line.
            if written.contains(char::is_control) || !ahead.eat("]") {
                return Err(BRACKETS);
            }
            *cursor = ahead;
            text.extend(["[", &written, "]"]);
            Ok(Some(segment))
        }
        _ => Ok(None),
    }
}

/// A number, or a name in quotes as in a filter.
fn in_brackets(cursor: &mut Cursor<'_>) -> Option<Segment> {
    if let Some('\'' | '"') = cursor.peek() {
        return quoted(cursor).ok().map(Segment::Field);
    }
    cursor.take_while(|c| c.is_ascii_digit()).parse().ok().map(Segment::Index)
}

fn between(mut cursor: Cursor<'_>, end: usize) -> String {
    let mut text = String::new();
    while cursor.at() < end {
        text.extend(cursor.bump());
    }
    text
}

fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn unclosed(text: &str) -> SyntaxError {
    refused(format!("`${{{text}` has no closing `}}`"), LITERAL)
}

/// The caller adds the range.
fn refused(message: impl Into<String>, help: &str) -> SyntaxError {
    SyntaxError::new(0..0, message).help(help)
}
