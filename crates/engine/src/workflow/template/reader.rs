//! Reads one `${…}`: whether it is ours, and what it names.
//!
//! In a text everything between `${` and `}` must be ours. In a shell text most of it belongs to the
//! shell, so only dotted names and names we gave out are claimed, and the rest is left alone. Whether a
//! reference may stand where it stands is up to the lexer.

use std::ops::Range;

use super::cursor::Cursor;
use super::names::KnownNames;
use super::reference::{Reference, Segment};
use super::template_error::TemplateError;

const LITERAL: &str = "a literal `${` is written `$${`";

/// Decides whether an unknown name is an error or the shell's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Text,
    Shell,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The cursor stands behind the reference.
    Ours(Reference, Range<usize>),
    /// The shell's; the cursor has not moved.
    Foreign,
    /// Ours, and wrong; the cursor stands behind what was read.
    Refused(TemplateError),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'n> {
    names: KnownNames<'n>,
    language: Language,
}

impl<'n> Reader<'n> {
    pub(super) fn new(names: &KnownNames<'n>, language: Language) -> Self {
        Self { names: *names, language }
    }

    pub(super) fn read(&self, cursor: &mut Cursor<'_>) -> Found {
        let start = cursor.at();
        let mut ahead = *cursor;
        ahead.skip(2);
        let raw = raw(&mut ahead);
        let name = name(&mut ahead);
        let mut text = name.clone();
        let mut path = vec![];
        let mut dotted = false;
        let end = loop {
            dotted |= ahead.peek_char() == Some('.');
            match segment(&mut ahead, &mut text) {
                Ok(Some(segment)) => path.push(segment),
                Ok(None) => break Ok(()),
                Err(why) => break Err(why),
            }
        };
        let ours = raw || (dotted && !name.is_empty()) || self.names.claims(&name);
        if !ours && self.language == Language::Shell {
            return Found::Foreign;
        }
        let read = match end {
            _ if name.is_empty() => Err(refused("`${` begins no name", Some(LITERAL))),
            Err(why) => Err(refused(why, Some(LITERAL))),
            Ok(()) => self.default(&mut ahead, &text),
        };
        *cursor = ahead;
        let range = start..ahead.at();
        let found = read.and_then(|default| {
            let (root, path) = self.resolve(&text, &name, path)?;
            Ok(Reference { text, root, path, default, raw })
        });
        match found {
            Ok(reference) => Found::Ours(reference, range),
            Err(error) => Found::Refused(TemplateError { range, ..error }),
        }
    }

    fn resolve(
        &self,
        text: &str,
        name: &str,
        path: Vec<Segment>,
    ) -> Result<(super::Root, Vec<Segment>), TemplateError> {
        let bare = path.is_empty() && self.language == Language::Shell;
        self.names.resolve(text, name, path).map_err(|refusal| {
            let more = if bare && self.names.claims(name) {
                format!("a variable of the shell is written `${name}`")
            } else {
                LITERAL.to_owned()
            };
            let help = format!("{}; {more}", refusal.help);
            refused(refusal.message, Some(&help))
        })
    }

    /// Reads the closing brace, or `:-`, a default and the brace.
    fn default(&self, cursor: &mut Cursor<'_>, text: &str) -> Result<Option<String>, TemplateError> {
        match cursor.peek_char() {
            Some('}') => {
                cursor.bump();
                Ok(None)
            }
            Some(':') if cursor.second_char() == Some('-') => {
                cursor.skip(2);
                self.default_text(cursor, text).map(Some)
            }
            Some(operator) if self.language == Language::Shell && "%#:/^,=?+-@".contains(operator) => {
                let help =
                    format!("give it to a variable first: `value=${{{text}}}`, then `${{value{operator}…}}`");
                let message = format!("`{operator}` is the shell's and cannot follow `{text}`");
                Err(refused(message, Some(&help)))
            }
            Some(other) if !other.is_control() => {
                let message = format!("`{other}` cannot follow `{text}`");
                Err(refused(message, Some(LITERAL)))
            }
            _ => Err(unclosed(text)),
        }
    }

    /// The default is plain text; braces inside of it pair.
    fn default_text(&self, cursor: &mut Cursor<'_>, text: &str) -> Result<String, TemplateError> {
        let mut default = String::new();
        let mut depth = 0_usize;
        loop {
            let Some(c) = cursor.peek_char() else {
                return Err(unclosed(text));
            };
            match c {
                '}' if depth == 0 => {
                    cursor.bump();
                    return Ok(default);
                }
                '}' => depth = depth.saturating_sub(1),
                '{' => depth = depth.saturating_add(1),
                '$' | '`' if self.expands(cursor) => {
                    let message =
                        format!("the default of `{text}` is plain text, and nothing in it is expanded");
                    let help = "give the default as plain text, or choose in the command";
                    return Err(refused(message, Some(help)));
                }
                _ => {}
            }
            default.push(c);
            cursor.bump();
        }
    }

    /// Whether the author could expect an expansion here.
    fn expands(&self, cursor: &Cursor<'_>) -> bool {
        match cursor.second_char() {
            _ if cursor.peek_char() == Some('`') => self.language == Language::Shell,
            Some('{') => true,
            Some(c) => self.language == Language::Shell && (begins_name(c) || c == '('),
            None => false,
        }
    }
}

fn raw(cursor: &mut Cursor<'_>) -> bool {
    let mut ahead = *cursor;
    let raw = ahead.starts_with("raw:");
    ahead.skip(4);
    // `${raw:-x}` and `${raw:0:3}` are the shell's variable `raw`.
    let ours = raw && ahead.peek_char().is_some_and(begins_name);
    if ours {
        *cursor = ahead;
    }
    ours
}

/// A name has no `-`, because `${name-word}` is the shell's.
fn name(cursor: &mut Cursor<'_>) -> String {
    if !cursor.peek_char().is_some_and(begins_name) {
        return String::new();
    }
    cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The next step of the path, if any, which is also added to `text` as written. The cursor stays before
/// brackets that hold no step.
fn segment(cursor: &mut Cursor<'_>, text: &mut String) -> Result<Option<Segment>, &'static str> {
    match cursor.peek_char() {
        Some('.') => {
            cursor.bump();
            text.push('.');
            let field = cursor.take_while(in_field);
            if field.is_empty() {
                return Err("a name is missing behind the `.`");
            }
            text.push_str(&field);
            Ok(Some(Segment::Field(field)))
        }
        Some('[') => {
            let mut ahead = *cursor;
            ahead.bump();
            let (segment, written) = in_brackets(&mut ahead)
                .filter(|_| ahead.peek_char() == Some(']'))
                .ok_or("brackets hold a number or a name in quotes, as in `[0]` or `['a b']`")?;
            ahead.bump();
            *cursor = ahead;
            text.extend(["[", &written, "]"]);
            Ok(Some(segment))
        }
        _ => Ok(None),
    }
}

/// A number, or a name in quotes as in a filter; and how it is written.
fn in_brackets(cursor: &mut Cursor<'_>) -> Option<(Segment, String)> {
    if let Some('\'' | '"') = cursor.peek_char() {
        return quoted(cursor);
    }
    let digits = cursor.take_while(|c| c.is_ascii_digit());
    Some((Segment::Index(digits.parse().ok()?), digits))
}

/// A name in quotes, on one line. The escapes are those of JSON, and `\'`.
fn quoted(cursor: &mut Cursor<'_>) -> Option<(Segment, String)> {
    let quote = cursor.peek_char()?;
    cursor.bump();
    let mut written = String::from(quote);
    let mut json = String::from('"');
    loop {
        let c = cursor.peek_char()?;
        cursor.bump();
        written.push(c);
        match c {
            _ if c == quote => break,
            '\\' => {
                let escape = cursor.peek_char()?;
                cursor.bump();
                written.push(escape);
                if escape != '\'' {
                    json.push('\\');
                }
                json.push(escape);
            }
            '"' => json.push_str("\\\""),
            _ if c.is_control() => return None,
            _ => json.push(c),
        }
    }
    json.push('"');
    let field = serde_json::from_str(&json).ok()?;
    Some((Segment::Field(field), written))
}

fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn in_field(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn unclosed(text: &str) -> TemplateError {
    let message = format!("`${{{text}` is not closed by a `}}`");
    refused(message, Some(LITERAL))
}

fn refused(message: impl Into<String>, help: Option<&str>) -> TemplateError {
    TemplateError { range: 0..0, message: message.into(), help: help.map(str::to_owned) }
}
