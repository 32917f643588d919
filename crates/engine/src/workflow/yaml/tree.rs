//! The tree. Text that needs no unescaping is borrowed from the file.

use std::borrow::Cow;

use crate::workflow::source::Span;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct YamlNode<'s> {
    pub(crate) span: Span,
    pub(crate) value: YamlValue<'s>,
}

/// By the rules of YAML 1.2's core schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum YamlValue<'s> {
    Null,
    Bool(bool),
    Integer(i64),
    /// Larger than any `Integer`.
    Large(u64),
    Float(f64),
    Text(Cow<'s, str>),
    List(Vec<YamlNode<'s>>),
    Map(Vec<YamlEntry<'s>>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct YamlEntry<'s> {
    pub(crate) key: Cow<'s, str>,
    pub(crate) key_span: Span,
    pub(crate) node: YamlNode<'s>,
}

impl YamlNode<'_> {
    /// For messages: "a list".
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            YamlValue::Null => "nothing",
            YamlValue::Bool(_) => "true or false",
            YamlValue::Integer(_) | YamlValue::Large(_) | YamlValue::Float(_) => "a number",
            YamlValue::Text(_) => "text",
            YamlValue::List(_) => "a list",
            YamlValue::Map(_) => "a mapping",
        }
    }

    /// A number that JSON does not have becomes null.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            YamlValue::Null => serde_json::Value::Null,
            YamlValue::Bool(flag) => (*flag).into(),
            YamlValue::Integer(number) => (*number).into(),
            YamlValue::Large(number) => (*number).into(),
            YamlValue::Float(number) => (*number).into(),
            YamlValue::Text(text) => text.as_ref().into(),
            YamlValue::List(nodes) => nodes.iter().map(Self::to_json).collect(),
            YamlValue::Map(entries) => {
                let json = |entry: &YamlEntry<'_>| (entry.key.to_string(), entry.node.to_json());
                serde_json::Value::Object(entries.iter().map(json).collect())
            }
        }
    }
}

impl<'s> YamlValue<'s> {
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

fn integer(text: &str) -> Option<YamlValue<'static>> {
    let radix = |digits: &str, radix| {
        let clean = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        clean.then(|| i64::from_str_radix(digits, radix).ok())?
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16).map(YamlValue::Integer);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8).map(YamlValue::Integer);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let small = text.parse().ok().map(YamlValue::Integer);
    small.or_else(|| text.parse().ok().map(YamlValue::Large))
}

fn float(text: &str) -> Option<YamlValue<'static>> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let starts = digits.strip_prefix('.').unwrap_or(digits).bytes().next();
    let shape = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'-' | b'+');
    if !starts.is_some_and(|first| first.is_ascii_digit()) || !digits.bytes().all(shape) {
        return None;
    }
    text.parse().ok().map(YamlValue::Float)
}
