//! The way from an item to one value inside it: `item.a.b[0]`, `a.b`, `item`.
//!
//! A path names at most one value; a path that may match several is a `json_path` and belongs to
//! `input`. Lookup never fails: a path that leads nowhere finds nothing.

use std::fmt;

use serde_json::Value;

use super::lexer::quoted;
use super::syntax_error::{SyntaxError, next_word, refuse_long};
use crate::workflow::cursor::Cursor;

const ITEM: &str = "item";
const ONE_VALUE: &str = "a path selects one value; use `json_path` to select several";

/// A checked path. `item.a` and `a` are the same path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    Field(String),
    Index(usize),
}

/// A null is a value.
pub(in crate::workflow) fn follow<'v>(path: &[Segment], root: &'v Value) -> Option<&'v Value> {
    path.iter().try_fold(root, |value, segment| match segment {
        Segment::Field(name) => value.as_object()?.get(name),
        Segment::Index(index) => value.as_array()?.get(*index),
    })
}

impl FieldPath {
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        refuse_long(text)?;
        let mut cursor = Cursor::new(text);
        cursor.skip_whitespace();
        let path = Self::read(&mut cursor)?;
        cursor.skip_whitespace();
        if cursor.peek().is_some() {
            let message = format!("unexpected {} after the path", next_word(&cursor));
            let error = SyntaxError::new(cursor.at()..text.len(), message);
            return Err(error.help("write a field with an unusual name as `item['other name']`"));
        }
        Ok(path)
    }

    /// Reads the path that comes next and leaves the text after it.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        let name = name(cursor);
        let mut segments = match name.as_str() {
            "" => return Err(no_path(cursor)),
            ITEM => vec![],
            _ => vec![Segment::Field(name)],
        };
        loop {
            match cursor.peek() {
                Some('.') => segments.push(after_dot(cursor)?),
                Some('[') => segments.push(in_brackets(cursor)?),
                _ => return Ok(Self { segments }),
            }
        }
    }

    pub fn get<'v>(&self, item: &'v Value) -> Option<&'v Value> {
        follow(&self.segments, item)
    }
}

/// The spelling that means the same everywhere in the language.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ITEM)?;
        for segment in &self.segments {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Field(name) if is_plain(name) => write!(f, ".{name}")?,
                // Every JSON string is a quoted text of filters too.
                Segment::Field(name) => write!(f, "[{}]", Value::from(name.as_str()))?,
            }
        }
        Ok(())
    }
}

/// A name without quotes; empty if none comes next.
pub(super) fn name(cursor: &mut Cursor<'_>) -> String {
    match cursor.peek() {
        Some(first) if begins_name(first) => cursor.take_while(continues_name),
        _ => String::new(),
    }
}

pub(super) fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// There is no arithmetic, so a hyphen is part of a name: `item.content-type`.
pub(super) fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

fn is_plain(name: &str) -> bool {
    name.starts_with(begins_name) && name.chars().all(continues_name)
}

fn no_path(cursor: &Cursor<'_>) -> SyntaxError {
    let error = SyntaxError::expected("the name of a field", cursor);
    match cursor.peek() {
        Some('[') => error.help("to index the item itself, write `item[0]`"),
        Some('$' | '@') => error
            .help("JSONPath is not supported here; write `item` for the item and `item.name` for its field"),
        _ => error,
    }
}

fn after_dot(cursor: &mut Cursor<'_>) -> Result<Segment, SyntaxError> {
    cursor.bump();
    let name = name(cursor);
    if !name.is_empty() {
        return Ok(Segment::Field(name));
    }
    let error = SyntaxError::expected("the name of a field after the dot", cursor);
    Err(match cursor.peek() {
        Some('0'..='9') => error.help("write `[0]` for an element, or `['0 name']` for an unusual name"),
        Some('*') => error.help(ONE_VALUE),
        _ => error,
    })
}

fn in_brackets(cursor: &mut Cursor<'_>) -> Result<Segment, SyntaxError> {
    cursor.bump();
    cursor.skip_whitespace();
    let segment = match cursor.peek() {
        Some('\'' | '"') => Segment::Field(quoted(cursor)?),
        Some('0'..='9') => Segment::Index(index(cursor)?),
        next => {
            let error = SyntaxError::expected("a number or a name in quotes", cursor);
            return Err(match next {
                Some('*') => error.help(ONE_VALUE),
                Some('-') => error.help("elements are numbered from 0; negative indexes are not supported"),
                _ => error,
            });
        }
    };
    cursor.skip_whitespace();
    if cursor.eat("]") {
        return Ok(segment);
    }
    Err(SyntaxError::expected("`]`", cursor))
}

fn index(cursor: &mut Cursor<'_>) -> Result<usize, SyntaxError> {
    let start = cursor.at();
    let digits = cursor.take_while(|c| c.is_ascii_digit());
    digits.parse().map_err(|_| SyntaxError::new(cursor.since(start), "the index is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(path: &str) -> Value {
        let item = json!({
            "a": {"b": [10, {"c": 20}]}, "content-type": 1, "odd name": 2, "item": 3, "0": 4, "größe": 5
        });
        FieldPath::parse(path).unwrap().get(&item).cloned().unwrap_or_else(|| json!("nothing"))
    }

    #[test]
    fn a_path_leads_to_its_value_with_or_without_the_word_item() {
        assert_eq!(found("item.a.b[1].c"), 20);
        assert_eq!(found("a.b[0]"), 10);
        assert_eq!(found(" a['b'][ 0 ] "), 10);
        assert_eq!(found("item['odd name']"), 2);
        assert_eq!(found(r#"item["odd name"]"#), 2);
        assert_eq!(found("content-type"), 1);
        assert_eq!(found("item.item"), 3);
        assert_eq!(found("item['0']"), 4);
        assert_eq!(found("größe"), 5);
        assert_eq!(FieldPath::parse("item").unwrap().get(&json!(7)), Some(&json!(7)));
    }

    #[test]
    fn a_path_that_leads_nowhere_finds_nothing() {
        for path in ["b", "a.b.c", "a.b[2]", "a[0]", "item[0]", "a.b['0']"] {
            assert_eq!(found(path), "nothing", "{path}");
        }
    }

    #[test]
    fn a_path_with_and_without_the_word_item_is_the_same() {
        assert_eq!(FieldPath::parse("item.a[0]"), FieldPath::parse("a [0]".replace(' ', "").as_str()));
        assert_eq!(FieldPath::parse("a['b c'].d").unwrap().to_string(), r#"item.a["b c"].d"#);
    }

    #[test]
    fn the_mistake_in_a_path_is_marked() {
        for (text, range, message) in [
            ("", 0..0, "expected the name of a field, found the end"),
            ("$.a", 0..1, "expected the name of a field, found `$`"),
            ("[0]", 0..1, "expected the name of a field, found `[`"),
            ("a.", 2..2, "expected the name of a field after the dot, found the end"),
            ("a.0", 2..3, "expected the name of a field after the dot, found `0`"),
            ("a..b", 2..3, "expected the name of a field after the dot, found `.`"),
            ("a[*]", 2..3, "expected a number or a name in quotes, found `*`"),
            ("a[-1]", 2..3, "expected a number or a name in quotes, found `-1`"),
            ("a[0", 3..3, "expected `]`, found the end"),
            ("a['é'x", 6..7, "expected `]`, found `x`"),
            ("a[99999999999999999999]", 2..22, "the index is too large"),
            ("a b", 2..3, "unexpected `b` after the path"),
        ] {
            let error = FieldPath::parse(text).unwrap_err();
            assert_eq!((error.range, error.message.as_str()), (range, message), "{text}");
        }
    }
}
