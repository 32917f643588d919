//! A `json_path` (RFC 9535) that selects the items of a document.
//!
//! The library defines the language; this file bounds it. The library's parser recurses and reads a
//! nested filter twice at every level, so a short text could take hours or the whole stack: nesting is
//! counted first. It also panics on a text that ends within `\u` of a quoted name, so an open quote is
//! refused first.

use serde_json::Value;

use crate::workflow::filter::{SyntaxError, refuse_long};

/// Brackets inside brackets; each level doubles the time the parser takes.
const MOST_BRACKETS: usize = 5;
/// Brackets and parentheses together; each level takes a piece of the stack.
const DEEPEST: usize = 50;
/// Selectors beside each other (`[0, 1]`) and descents (`..`) multiply what is found with every
/// further one.
const MOST_CHOICES: usize = 16;
const MOST_DESCENTS: usize = 3;

/// A checked `json_path:`, equal to another if their texts are equal.
#[derive(Clone, Debug)]
pub struct JsonPath {
    text: String,
    path: serde_json_path::JsonPath,
    /// The field names in `$.a.b[*]`; `None` for any other path.
    usual: Option<Vec<String>>,
}

impl JsonPath {
    /// Whitespace around the path is ignored.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        refuse_long(text)?;
        let path = text.trim();
        let before = text.len().saturating_sub(text.trim_start().len());
        if !path.starts_with('$') {
            return Err(no_root(path, before));
        }
        refuse_unbounded(path, before)?;
        let parsed = serde_json_path::JsonPath::parse(path);
        Ok(Self {
            path: parsed.map_err(|error| refusal(path, before, &error))?,
            text: text.to_owned(),
            usual: usual(path),
        })
    }

    /// In the order of the document, unless the path sets another.
    pub fn query<'v>(&self, document: &'v Value) -> Vec<&'v Value> {
        self.path.query(document).all()
    }

    /// The same values, moved out of the document instead of copied, if the path has the usual form
    /// `$.items[*]`. Otherwise the document is returned unchanged.
    pub(super) fn take_elements(&self, mut document: Value) -> Result<Vec<Value>, Value> {
        let Some(names) = &self.usual else {
            return Err(document);
        };
        for name in names {
            let field = document.get_mut(name.as_str()).map(Value::take);
            document = field.unwrap_or_default();
        }
        Ok(match document {
            Value::Array(elements) => elements,
            Value::Object(fields) => fields.into_values().collect(),
            _ => vec![],
        })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for JsonPath {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for JsonPath {}

/// The names in `$.a.b[*]`, the form of nearly all paths.
fn usual(path: &str) -> Option<Vec<String>> {
    let names = path.strip_prefix('$')?.strip_suffix("[*]")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    names
        .split('.')
        .skip(1)
        .map(|name| (!name.is_empty() && name.chars().all(plain)).then(|| name.to_owned()))
        .collect::<Option<Vec<String>>>()
        .filter(|_| names.is_empty() || names.starts_with('.'))
}

fn no_root(path: &str, before: usize) -> SyntaxError {
    let end = before.saturating_add(path.chars().next().map_or(0, char::len_utf8));
    let error = SyntaxError::new(before..end, "a JSONPath must begin with `$`");
    match path {
        "" => error.help("write `$[*]` for the elements of an array"),
        _ => error.help("write `$.items[*]` for the elements of the field `items`"),
    }
}

fn refuse_unbounded(path: &str, before: usize) -> Result<(), SyntaxError> {
    let mark = |at: usize, message: String| {
        let at = before.saturating_add(at);
        SyntaxError::new(at..at.saturating_add(1), message)
    };
    let (mut brackets, mut parentheses) = (0_usize, 0_usize);
    let (mut choices, mut descents) = (0_usize, 0_usize);
    let mut quote = None;
    let mut escaped = false;
    for (at, character) in path.char_indices() {
        if let Some((open, _)) = quote {
            if character == open && !escaped {
                quote = None;
            }
            escaped = character == '\\' && !escaped;
            continue;
        }
        match character {
            '\'' | '"' => quote = Some((character, at)),
            '[' => brackets = brackets.saturating_add(1),
            ']' => brackets = brackets.saturating_sub(1),
            '(' => parentheses = parentheses.saturating_add(1),
            ')' => parentheses = parentheses.saturating_sub(1),
            ',' => choices = choices.saturating_add(1),
            '.' if path.get(at..).is_some_and(|rest| rest.starts_with("..")) => {
                descents = descents.saturating_add(1);
            }
            _ => {}
        }
        if choices > MOST_CHOICES || descents > MOST_DESCENTS {
            return Err(mark(at, "the JSONPath may select too many values".to_owned()));
        }
        if brackets > MOST_BRACKETS || brackets.saturating_add(parentheses) > DEEPEST {
            return Err(mark(at, "the JSONPath is nested too deeply".to_owned()));
        }
    }
    match quote {
        Some((open, at)) => Err(mark(at, format!("a closing `{open}` is missing"))),
        None => Ok(()),
    }
}

fn refusal(path: &str, before: usize, error: &serde_json_path::ParseError) -> SyntaxError {
    // The library calls its position 1-based; it is the number of bytes before the mistake.
    let at = error.position().min(path.len());
    let found = path.get(at..).and_then(|rest| rest.chars().next());
    let message = match (error.message(), found) {
        (message, Some(found)) if message.ends_with("parser error") => {
            format!("unexpected `{}` in the JSONPath", found.escape_debug())
        }
        (message, None) if message.ends_with("parser error") => "the JSONPath is incomplete".to_owned(),
        (message, _) => {
            message.trim_start_matches("in long-hand segment, ").replace("lowercase alpha", "a letter")
        }
    };
    let start = before.saturating_add(at);
    let end = start.saturating_add(found.map_or(0, char::len_utf8));
    SyntaxError::new(start..end, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(path: &str) -> Value {
        let document = json!({"items": [{"n": 1, "sub": [{"n": 2}]}, {"n": 3}], "n": 0});
        JsonPath::parse(path).unwrap().query(&document).into_iter().cloned().collect()
    }

    #[test]
    fn nodes_come_in_the_order_of_the_document() {
        assert_eq!(found("$.items[*].n"), json!([1, 3]));
        assert_eq!(found(" $..n\n"), json!([0, 1, 2, 3]));
        assert_eq!(found("$.items[?@.n > 1].n"), json!([3]));
        assert_eq!(found("$.items[::-1].n"), json!([3, 1]));
        assert_eq!(found("$.gone[*]"), json!([]));
        assert_eq!(found("$"), json!([{"items": [{"n": 1, "sub": [{"n": 2}]}, {"n": 3}], "n": 0}]));
    }

    #[test]
    fn a_mistake_is_marked_where_it_is() {
        for (text, range, message) in [
            ("", 0..0, "a JSONPath must begin with `$`"),
            (" items", 1..2, "a JSONPath must begin with `$`"),
            ("$.", 2..2, "in dot member name, must start with a letter or '_'"),
            ("$.items[", 7..8, "unexpected `[` in the JSONPath"),
            ("$.items[*", 9..9, "expected closing ']'"),
            (" $[?@.a = 1]", 8..9, "expected closing ']'"),
            (" $['a', \"b\\u", 8..9, "a closing `\"` is missing"),
            ("$['\\uD83D\\uD", 2..3, "a closing `'` is missing"),
            ("$é", 1..3, "unexpected `é` in the JSONPath"),
            ("$[?foo(@.a)]", 3..4, "function name 'foo' is not defined"),
        ] {
            let error = JsonPath::parse(text).unwrap_err();
            assert_eq!((error.range, error.message.as_str()), (range, message), "{text}");
        }
    }

    #[test]
    fn the_number_of_selected_values_is_bounded() {
        assert!(JsonPath::parse("$[0, 1, 2]..a..b").is_ok());
        assert!(JsonPath::parse(&format!("${}", "[0,0]".repeat(20))).is_err());
        assert!(JsonPath::parse(&format!("${}", "..*".repeat(4))).is_err());
    }

    #[test]
    fn nesting_is_bounded_before_the_parser_sees_it() {
        for (open, close, most) in [("@[?", "]", 4), ("(", ")", 49), ("count(@[?", "]) > 0", 4)] {
            let nested = |n: usize| format!("$[?{}@.a{}]", open.repeat(n), close.repeat(n));
            assert!(JsonPath::parse(&nested(most)).is_ok(), "{open}");
            for n in [most + 1, 500] {
                let error = JsonPath::parse(&nested(n)).unwrap_err();
                assert_eq!(error.message, "the JSONPath is nested too deeply");
            }
        }
        let quoted = format!("$['{}\\'[[[[[[']", "(".repeat(100));
        assert!(JsonPath::parse(&quoted).is_ok());
    }
}
