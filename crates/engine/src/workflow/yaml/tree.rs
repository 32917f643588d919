//! The tree. Text that needs no unescaping is borrowed from the file.

use std::borrow::Cow;

use crate::workflow::source::Span;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node<'s> {
    pub(crate) span: Span,
    pub(crate) value: Value<'s>,
}

/// By the rules of YAML 1.2's core schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'s> {
    Null,
    Bool(bool),
    Integer(i64),
    /// Larger than any `Integer`.
    Large(u64),
    Float(f64),
    Text(Cow<'s, str>),
    List(Vec<Node<'s>>),
    Map(Vec<Entry<'s>>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry<'s> {
    pub(crate) key: Cow<'s, str>,
    pub(crate) key_span: Span,
    pub(crate) node: Node<'s>,
}

impl Node<'_> {
    /// For messages: "a list".
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Integer(_) | Value::Large(_) | Value::Float(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// A number that JSON does not have becomes null.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(flag) => (*flag).into(),
            Value::Integer(number) => (*number).into(),
            Value::Large(number) => (*number).into(),
            Value::Float(number) => (*number).into(),
            Value::Text(text) => text.as_ref().into(),
            Value::List(nodes) => nodes.iter().map(Self::to_json).collect(),
            Value::Map(entries) => {
                let json = |entry: &Entry<'_>| (entry.key.to_string(), entry.node.to_json());
                serde_json::Value::Object(entries.iter().map(json).collect())
            }
        }
    }
}

impl<'s> Value<'s> {
    /// The value of a text without quotes.
    pub(crate) fn of_plain(text: Cow<'s, str>) -> Self {
        match &*text {
            "" | "~" | "null" | "Null" | "NULL" => return Self::Null,
            "true" | "True" | "TRUE" => return Self::Bool(true),
            "false" | "False" | "FALSE" => return Self::Bool(false),
            ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
                return Self::Float(f64::INFINITY);
            }
            "-.inf" | "-.Inf" | "-.INF" => return Self::Float(f64::NEG_INFINITY),
            ".nan" | ".NaN" | ".NAN" => return Self::Float(f64::NAN),
            _ => {}
        }
        let number = integer(&text).or_else(|| float(&text));
        number.unwrap_or(Self::Text(text))
    }
}

fn integer(text: &str) -> Option<Value<'static>> {
    let radix = |digits: &str, radix| {
        let clean = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        clean.then(|| i64::from_str_radix(digits, radix).ok())?
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16).map(Value::Integer);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8).map(Value::Integer);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let small = text.parse().ok().map(Value::Integer);
    small.or_else(|| text.parse().ok().map(Value::Large))
}

fn float(text: &str) -> Option<Value<'static>> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let starts = digits.strip_prefix('.').unwrap_or(digits).bytes().next();
    let shape = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'-' | b'+');
    if !starts.is_some_and(|first| first.is_ascii_digit()) || !digits.bytes().all(shape) {
        return None;
    }
    text.parse().ok().map(Value::Float)
}
