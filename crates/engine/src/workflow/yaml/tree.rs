//! The tree, also as a serde deserializer for the settings that the policy crate reads.
//!
//! Text that needs no unescaping is borrowed from the file.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

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
        integer(&text).or_else(|| float(&text)).unwrap_or(Self::Text(text))
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
    text.parse().ok().map(YamlValue::Integer).or_else(|| text.parse().ok().map(YamlValue::Large))
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

/// Errors rise from the innermost value, whose span is kept.
#[derive(Debug)]
pub(crate) struct ReadError {
    pub(crate) message: String,
    pub(crate) span: Option<Span>,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), span: None }
    }
}

impl<'de> Deserializer<'de> for &'de YamlNode<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let read = match &self.value {
            YamlValue::Null => visitor.visit_unit(),
            YamlValue::Bool(flag) => visitor.visit_bool(*flag),
            YamlValue::Integer(number) => match u64::try_from(*number) {
                Ok(number) => visitor.visit_u64(number),
                Err(_) => visitor.visit_i64(*number),
            },
            YamlValue::Large(number) => visitor.visit_u64(*number),
            YamlValue::Float(number) => visitor.visit_f64(*number),
            YamlValue::Text(text) => visitor.visit_borrowed_str(text),
            YamlValue::List(nodes) => visitor.visit_seq(SeqDeserializer::new(nodes.iter())),
            YamlValue::Map(entries) => visitor.visit_map(MapDeserializer::new(
                entries.iter().map(|entry| (entry.key.as_ref(), &entry.node)),
            )),
        };
        read.map_err(|error: ReadError| ReadError { span: error.span.or(Some(self.span)), ..error })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let YamlValue::Text(word) = &self.value else {
            let message = format!("expected text, found {}", self.kind());
            let span = Some(self.span);
            return Err(ReadError { message, span });
        };
        let word: de::value::StrDeserializer<'_, ReadError> = word.as_ref().into_deserializer();
        visitor.visit_enum(word).map_err(|error| ReadError { span: Some(self.span), ..error })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, ReadError> for &'de YamlNode<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
