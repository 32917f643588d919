//! `backoff` in both dialects: a name alone, or a name with its parameters.
//!
//! The name alone takes its first delay from `initial_delay`; the long form may carry one of its
//! own (`delay`, `initial`), which is the same setting and must not contradict it.

use core::fmt;
use core::time::Duration;
use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::Serializer;

use super::duration::{DurationSeed, format_duration};
use super::retry_config::{Shown, settle};
use super::scalar::number;
use crate::backoff::Backoff;
use crate::strategy::{Parameter, ParameterValue};

/// A strategy, and the initial delay if it stands inside.
pub(super) struct Written {
    pub(super) strategy: Backoff,
    pub(super) initial: Option<Duration>,
}

pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Written, D::Error> {
    deserializer.deserialize_any(BackoffVisitor)
}

struct BackoffVisitor;

/// The strategy with this name.
fn named<E: de::Error>(name: &str) -> Result<Backoff, E> {
    let found = Backoff::ALL.iter().find(|known| known.name() == name);
    found.cloned().ok_or_else(|| {
        let names = Backoff::ALL.iter().map(Backoff::name);
        unknown("variant", name, names)
    })
}

/// What serde says of a word that is not in a list, for a list that it does not have as one.
fn unknown<E: de::Error>(what: &str, word: &str, known: impl Iterator<Item = &'static str>) -> E {
    let known: Vec<_> = known.map(|known| format!("`{known}`")).collect();
    let expected = match known.as_slice() {
        [first, second] => format!("{first} or {second}"),
        [only] => only.clone(),
        several => format!("one of {}", several.join(", ")),
    };
    E::custom(format_args!("unknown {what} `{word}`, expected {expected}"))
}

impl<'de> Visitor<'de> for BackoffVisitor {
    type Value = Written;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Backoff::ALL.iter().map(Backoff::name).collect();
        write!(f, "a strategy ({})", names.join(", "))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Written, E> {
        let strategy = named(name)?;
        match strategy.strategy().required().next() {
            Some((_, missing)) => Err(E::custom(format_args!("`{name}` needs {missing}"))),
            None => Ok(Written { strategy, initial: None }),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Written, A::Error> {
        let Some(name) = map.next_key::<Cow<'_, str>>()? else {
            return Err(de::Error::invalid_length(0, &self));
        };
        let written =
            map.next_value_seed(Parameters { strategy: named(&name)?, initial: None, given: vec![] })?;
        match map.next_key::<Cow<'_, str>>()? {
            None => Ok(written),
            Some(second) => {
                Err(de::Error::custom(format_args!("`backoff` has two strategies, `{name}` and `{second}`")))
            }
        }
    }
}

/// Reads the parameters behind the name of a strategy.
struct Parameters {
    strategy: Backoff,
    initial: Option<Duration>,
    /// Those of its own that were read.
    given: Vec<&'static str>,
}

impl Parameters {
    fn keys(&self) -> impl Iterator<Item = &'static str> {
        let parameters = self.strategy.strategy().parameters.iter();
        parameters.map(|parameter| parameter.key)
    }

    fn written<E: de::Error>(self) -> Result<Written, E> {
        let mut required = self.strategy.strategy().required();
        match required.find(|(key, _)| !self.given.contains(key)) {
            Some((key, _)) => Err(E::missing_field(key)),
            None => Ok(Written { strategy: self.strategy, initial: self.initial }),
        }
    }

    /// Reads one of its own, which may have been read before.
    fn own<'de, A: MapAccess<'de>>(&mut self, of: &'static str, map: &mut A) -> Result<(), A::Error> {
        let again = self.given.contains(&of);
        self.given.push(of);
        let mut slots = self.strategy.slots().into_iter();
        match slots.find(|(key, _)| *key == of) {
            Some((_, ParameterValue::Span(span))) => {
                fill(span, again, of, map.next_value_seed(DurationSeed)?)
            }
            Some((_, ParameterValue::Factor(factor))) => {
                fill(factor, again, of, map.next_value_seed(Number)?)
            }
            Some((_, ParameterValue::Spans(spans))) => {
                fill(spans, again, of, map.next_value_seed(Delays)?.into())
            }
            None => Err(de::Error::custom(format_args!("`{of}` has no place"))),
        }
    }
}

/// Puts a value in its place, unless another was given before.
fn fill<T: Clone + PartialEq + Shown, E: de::Error>(
    place: &mut T,
    again: bool,
    of: &'static str,
    value: T,
) -> Result<(), E> {
    settle(&mut again.then(|| place.clone()), of, value.clone())?;
    *place = value;
    Ok(())
}

impl<'de> DeserializeSeed<'de> for Parameters {
    type Value = Written;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Written, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Parameters {
    type Value = Written;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, keys) = (self.strategy.name(), self.keys().collect::<Vec<_>>());
        write!(f, "the settings of `{name}`: {}", keys.join(", "))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Written, E> {
        self.written()
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Written, A::Error> {
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            let mut parameters = self.strategy.strategy().parameters.iter();
            match parameters.find(|parameter| parameter.key == key) {
                None => return Err(unknown("field", &key, self.keys())),
                Some(shared) if shared.of == Parameter::INITIAL_DELAY => {
                    let initial = map.next_value_seed(DurationSeed)?;
                    settle(&mut self.initial, shared.of, initial)?;
                }
                Some(own) => self.own(own.of, &mut map)?,
            }
        }
        self.written()
    }
}

struct Number;

impl<'de> DeserializeSeed<'de> for Number {
    type Value = f64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<f64, D::Error> {
        number(deserializer)
    }
}

struct Delays;

impl<'de> DeserializeSeed<'de> for Delays {
    type Value = Vec<Duration>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Delays {
    type Value = Vec<Duration>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of durations")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut delays = Vec::new();
        while let Some(delay) = list.next_element_seed(DurationSeed)? {
            delays.push(delay);
        }
        Ok(delays)
    }
}

/// The strategy as it is read back.
pub(super) struct Canonical<'a>(pub(super) &'a Backoff);

impl serde::Serialize for Canonical<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut strategy = self.0.clone();
        let name = strategy.name();
        let parameters: BTreeMap<_, _> = strategy.slots().into_iter().collect();
        if parameters.is_empty() {
            return serializer.serialize_str(name);
        }
        serializer.collect_map([(name, parameters)])
    }
}

impl serde::Serialize for ParameterValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Span(span) => serializer.serialize_str(&format_duration(**span)),
            Self::Factor(factor) => serializer.serialize_f64(**factor),
            Self::Spans(spans) => serializer.collect_seq(spans.iter().map(|span| format_duration(*span))),
        }
    }
}
