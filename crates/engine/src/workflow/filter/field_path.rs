//! The way from an item to one value inside it: `item.a.b[0]`, `a.b`, `item`.
//!
//! A path names at most one value; what may match several is a `json_path` and belongs to `input`.
//! Lookup never fails: a path that leads nowhere finds nothing.

use std::fmt;

use serde_json::Value;

use super::cursor::{Cursor, begins_name, continues_name};
use super::quoted::quoted;
use super::syntax_error::{SyntaxError, refuse_long};

const ITEM: &str = "item";

/// A checked path. `item.a` and `a` are the same path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Element(usize),
}

impl FieldPath {
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        refuse_long(text)?;
        let mut cursor = Cursor::new(text);
        cursor.skip_blank();
        let path = Self::read(&mut cursor)?;
        cursor.skip_blank();
        if cursor.peek().is_some() {
            let found = cursor.next_in_words();
            let message = format!("the path ends here, {found} does not belong to it");
            let error = SyntaxError::new(cursor.at()..text.len(), message);
            return Err(error.help("a field of another name is written `item['other name']`"));
        }
        Ok(path)
    }

    /// Reads the path that comes next and leaves the text after it.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        let name = cursor.name();
        let mut steps = match name {
            "" => return Err(no_path(cursor)),
            ITEM => vec![],
            field => vec![Step::Field(field.to_owned())],
        };
        loop {
            match cursor.peek() {
                Some('.') => steps.push(after_dot(cursor)?),
                Some('[') => steps.push(in_brackets(cursor)?),
                _ => return Ok(Self { steps }),
            }
        }
    }

    /// A null is a value.
    pub fn get<'v>(&self, item: &'v Value) -> Option<&'v Value> {
        let mut steps = self.steps.iter();
        steps.try_fold(item, |value, step| match (step, value) {
            (Step::Field(name), Value::Object(fields)) => fields.get(name),
            (Step::Element(index), Value::Array(elements)) => elements.get(*index),
            _ => None,
        })
    }
}

/// The spelling that means the same everywhere in the language.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ITEM)?;
        for step in &self.steps {
            match step {
                Step::Element(index) => write!(f, "[{index}]")?,
                Step::Field(name) if is_plain(name) => write!(f, ".{name}")?,
                // A JSON string is also a quoted text of ours.
                Step::Field(name) => write!(f, "[{}]", Value::from(name.as_str()))?,
            }
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    name.starts_with(begins_name) && name.chars().all(continues_name)
}

fn no_path(cursor: &Cursor<'_>) -> SyntaxError {
    let error = cursor.expected("the name of a field");
    match cursor.peek() {
        Some('[') => error.help("a path into the item itself begins with `item`: `item[0]`"),
        Some('$' | '@') => error.help("this is not a JSONPath: the item is `item`, its field `item.name`"),
        _ => error,
    }
}

fn after_dot(cursor: &mut Cursor<'_>) -> Result<Step, SyntaxError> {
    cursor.bump();
    match cursor.name() {
        "" => {
            let error = cursor.expected("the name of a field after the dot");
            Err(match cursor.peek() {
                Some('0'..='9') => error.help("an element is written `[0]`, an odd name `['0 name']`"),
                Some('*') => error.help(ONE_VALUE),
                _ => error,
            })
        }
        name => Ok(Step::Field(name.to_owned())),
    }
}

const ONE_VALUE: &str = "a path leads to one value; `json_path` takes several";

fn in_brackets(cursor: &mut Cursor<'_>) -> Result<Step, SyntaxError> {
    cursor.bump();
    cursor.skip_blank();
    let step = match cursor.peek() {
        Some('\'' | '"') => Step::Field(quoted(cursor)?),
        Some('0'..='9') => Step::Element(index(cursor)?),
        _ => {
            let error = cursor.expected("a number or a name in quotes");
            return Err(match cursor.peek() {
                Some('*') => error.help(ONE_VALUE),
                Some('-') => error.help("elements are counted from 0, from the front"),
                _ => error,
            });
        }
    };
    cursor.skip_blank();
    if cursor.eat("]") {
        return Ok(step);
    }
    Err(cursor.expected("`]`"))
}

fn index(cursor: &mut Cursor<'_>) -> Result<usize, SyntaxError> {
    let start = cursor.at();
    let digits = cursor.take_while(|c| c.is_ascii_digit());
    let index = digits.parse::<usize>();
    index.map_err(|_| SyntaxError::new(cursor.since(start), "no array is that long"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(path: &str) -> Value {
        let item = json!({
            "a": {"b": [10, {"c": 20}]}, "content-type": 1, "odd name": 2, "item": 3, "0": 4, "größe": 5
        });
        let path = FieldPath::parse(path).unwrap();
        path.get(&item).cloned().unwrap_or_else(|| json!("nothing"))
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
    fn the_two_spellings_are_one_path() {
        assert_eq!(FieldPath::parse("item.a[0]"), FieldPath::parse("a [0]".replace(' ', "").as_str()));
        assert_eq!(FieldPath::parse("a['b c'].d").unwrap().to_string(), r#"item.a["b c"].d"#);
    }

    #[test]
    fn what_is_no_path_is_marked() {
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
            ("a[99999999999999999999]", 2..22, "no array is that long"),
            ("a b", 2..3, "the path ends here, `b` does not belong to it"),
        ] {
            let error = FieldPath::parse(text).unwrap_err();
            assert_eq!((error.range, error.message.as_str()), (range, message), "{text}");
        }
    }
}
