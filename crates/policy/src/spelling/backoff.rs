//! `backoff` in both dialects: a name alone, or a name with its parameters.
//!
//! A name alone takes its initial delay from `initial_delay`. The long form may contain it (`delay`,
//! `initial`), which is another spelling of the same setting and must not contradict it.

use core::fmt;
use core::time::Duration;
use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::ser::Serializer;

use super::duration::{DurationSeed, format_duration};
use super::retry_config::{ConflictText, settle};
use super::scalar::{ListSeed, NumberSeed};
use crate::backoff::Backoff;
use crate::strategy::{Parameter, ParameterValue};

/// A strategy, and the initial delay if the long form contains it.
pub(super) struct BackoffSetting {
    pub(super) strategy: Backoff,
    pub(super) initial: Option<Duration>,
}

pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BackoffSetting, D::Error> {
    deserializer.deserialize_any(BackoffVisitor)
}

struct BackoffVisitor;

fn named<E: de::Error>(name: &str) -> Result<Backoff, E> {
    let found = Backoff::ALL.iter().find(|known| known.name() == name);
    found.cloned().ok_or_else(|| {
        let names = Backoff::ALL.iter().map(Backoff::name);
        unknown("variant", name, names)
    })
}

/// serde's message for an unknown word, which serde itself gives only for a static list.
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
    type Value = BackoffSetting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Backoff::ALL.iter().map(Backoff::name).collect();
        write!(f, "a strategy ({})", names.join(", "))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<BackoffSetting, E> {
        let strategy = named(name)?;
        match strategy.strategy().required().next() {
            Some((_, missing)) => Err(E::custom(format_args!("`{name}` needs {missing}"))),
            None => Ok(BackoffSetting { strategy, initial: None }),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<BackoffSetting, A::Error> {
        let Some(name) = map.next_key::<Cow<'_, str>>()? else {
            return Err(de::Error::invalid_length(0, &self));
        };
        let written =
            map.next_value_seed(ParametersSeed { strategy: named(&name)?, initial: None, given: vec![] })?;
        match map.next_key::<Cow<'_, str>>()? {
            None => Ok(written),
            Some(second) => {
                Err(de::Error::custom(format_args!("`backoff` has two strategies, `{name}` and `{second}`")))
            }
        }
    }
}

/// Reads the parameters that follow the name of a strategy.
struct ParametersSeed {
    strategy: Backoff,
    initial: Option<Duration>,
    /// The strategy's own parameters that were read.
    given: Vec<&'static str>,
}

impl ParametersSeed {
    fn keys(&self) -> impl Iterator<Item = &'static str> {
        let parameters = self.strategy.strategy().parameters.iter();
        parameters.map(|parameter| parameter.key)
    }

    fn written<E: de::Error>(self) -> Result<BackoffSetting, E> {
        let mut required = self.strategy.strategy().required();
        match required.find(|(key, _)| !self.given.contains(key)) {
            Some((key, _)) => Err(E::missing_field(key)),
            None => Ok(BackoffSetting { strategy: self.strategy, initial: self.initial }),
        }
    }

    /// Reads a parameter of the strategy itself, which may have been read before under another name.
    fn own<'de, A: MapAccess<'de>>(&mut self, of: &'static str, map: &mut A) -> Result<(), A::Error> {
        let again = self.given.contains(&of);
        self.given.push(of);
        let delays = ListSeed { element: DurationSeed, accepted: "a list of durations" };
        let mut slots = self.strategy.slots().into_iter();
        match slots.find(|(key, _)| *key == of) {
            Some((_, ParameterValue::Span(span))) => {
                fill(span, again, of, map.next_value_seed(DurationSeed)?)
            }
            Some((_, ParameterValue::Factor(factor))) => {
                fill(factor, again, of, map.next_value_seed(NumberSeed)?)
            }
            Some((_, ParameterValue::Spans(spans))) => {
                fill(spans, again, of, map.next_value_seed(delays)?.into())
            }
            None => Err(de::Error::custom(format_args!("`{of}` is not a parameter"))),
        }
    }
}

/// Sets a parameter, unless a different value was given before.
fn fill<T: Clone + PartialEq + ConflictText, E: de::Error>(
    parameter: &mut T,
    again: bool,
    of: &'static str,
    value: T,
) -> Result<(), E> {
    settle(&mut again.then(|| parameter.clone()), of, value.clone())?;
    *parameter = value;
    Ok(())
}

impl<'de> DeserializeSeed<'de> for ParametersSeed {
    type Value = BackoffSetting;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<BackoffSetting, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ParametersSeed {
    type Value = BackoffSetting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, keys) = (self.strategy.name(), self.keys().collect::<Vec<_>>());
        write!(f, "the settings of `{name}`: {}", keys.join(", "))
    }

    fn visit_unit<E: de::Error>(self) -> Result<BackoffSetting, E> {
        self.written()
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<BackoffSetting, A::Error> {
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

/// Writes a strategy in its shortest form.
pub(super) struct BackoffText<'a>(pub(super) &'a Backoff);

impl serde::Serialize for BackoffText<'_> {
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
