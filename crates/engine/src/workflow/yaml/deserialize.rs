//! A node as a serde deserializer, for the settings that the policy crate reads.

use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::tree::{YamlNode, YamlValue};
use crate::workflow::source::Span;

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
            let message = format!("{} stands where one of a few words is expected", self.kind());
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
