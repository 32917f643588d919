//! `backoff` in both dialects: a name alone, or a name with its parameters.
//!
//! The name alone takes its first delay from `initial_delay`; the long form may carry one of its
//! own (`delay`, `initial`), which is the same setting and must not contradict it.

use core::fmt;
use core::time::Duration;
use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};

use super::duration::{DurationSeed, format_duration};
use super::retry_config::settle;
use super::scalar::number;
use crate::backoff::Backoff;

const STRATEGIES: &[&str] = &["fixed", "linear", "exponential", "fibonacci", "custom"];

/// A strategy, and the initial delay if it stands inside.
pub(super) struct Written {
    pub(super) strategy: Backoff,
    pub(super) initial: Option<Duration>,
}

pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Written, D::Error> {
    deserializer.deserialize_any(BackoffVisitor)
}

struct BackoffVisitor;

impl<'de> Visitor<'de> for BackoffVisitor {
    type Value = Written;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a strategy (fixed, linear, exponential, fibonacci, custom)")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Written, E> {
        let strategy = match name {
            "fixed" => Backoff::Fixed,
            "exponential" => Backoff::DEFAULT,
            "fibonacci" => Backoff::Fibonacci,
            "linear" => {
                return Err(E::custom(
                    "`linear` needs its step: `{linear: {increment: 1s}}`",
                ));
            }
            "custom" => {
                return Err(E::custom(
                    "`custom` needs its delays: `{custom: {delays: [1s, 5s]}}`",
                ));
            }
            other => return Err(E::unknown_variant(other, STRATEGIES)),
        };
        Ok(Written {
            strategy,
            initial: None,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Written, A::Error> {
        let Some(name) = map.next_key::<Cow<'_, str>>()? else {
            return Err(de::Error::invalid_length(0, &self));
        };
        let Some(name) = STRATEGIES.iter().find(|known| **known == name) else {
            return Err(de::Error::unknown_variant(&name, STRATEGIES));
        };
        let written = map.next_value_seed(Parameters::of(name))?;
        match map.next_key::<Cow<'_, str>>()? {
            None => Ok(written),
            Some(second) => Err(de::Error::custom(format_args!(
                "`backoff` has two strategies, `{name}` and `{second}`"
            ))),
        }
    }
}

/// Reads the parameters behind the name of a strategy.
#[derive(Default)]
struct Parameters {
    name: &'static str,
    initial: Option<Duration>,
    increment: Option<Duration>,
    base: Option<f64>,
    delays: Option<Vec<Duration>>,
}

impl Parameters {
    fn of(name: &'static str) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    fn keys(&self) -> &'static [&'static str] {
        match self.name {
            "fixed" => &["delay", "initial"],
            "linear" => &["initial", "increment"],
            "exponential" => &["initial", "base", "multiplier"],
            "fibonacci" => &["initial"],
            _ => &["delays"],
        }
    }

    fn written<E: de::Error>(self) -> Result<Written, E> {
        let strategy = match self.name {
            "fixed" => Backoff::Fixed,
            "fibonacci" => Backoff::Fibonacci,
            "linear" => Backoff::Linear {
                increment: self
                    .increment
                    .ok_or_else(|| E::missing_field("increment"))?,
            },
            "exponential" => self
                .base
                .map_or(Backoff::DEFAULT, |base| Backoff::Exponential { base }),
            _ => Backoff::Custom {
                delays: self
                    .delays
                    .ok_or_else(|| E::missing_field("delays"))?
                    .into(),
            },
        };
        Ok(Written {
            strategy,
            initial: self.initial,
        })
    }
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
        write!(
            f,
            "the settings of `{}`: {}",
            self.name,
            self.keys().join(", ")
        )
    }

    fn visit_unit<E: de::Error>(self) -> Result<Written, E> {
        self.written()
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Written, A::Error> {
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            if !self.keys().contains(&key.as_ref()) {
                return Err(de::Error::unknown_field(&key, self.keys()));
            }
            match key.as_ref() {
                "increment" => {
                    let increment = map.next_value_seed(DurationSeed)?;
                    settle(&mut self.increment, "increment", increment)?;
                }
                "delays" => {
                    settle(&mut self.delays, "delays", map.next_value_seed(Delays)?)?;
                }
                "base" | "multiplier" => {
                    let base = map.next_value_seed(Number)?;
                    settle(&mut self.base, "base", base)?;
                }
                _ => {
                    let initial = map.next_value_seed(DurationSeed)?;
                    settle(&mut self.initial, "initial_delay", initial)?;
                }
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
        let name = self.0.name();
        let mut map = match self.0 {
            Backoff::Fixed | Backoff::Fibonacci => return serializer.serialize_str(name),
            _ => serializer.serialize_map(Some(1))?,
        };
        match self.0 {
            Backoff::Linear { increment } => {
                map.serialize_entry(
                    name,
                    &BTreeMap::from([("increment", format_duration(*increment))]),
                )?;
            }
            Backoff::Exponential { base } => {
                map.serialize_entry(name, &BTreeMap::from([("base", *base)]))?;
            }
            Backoff::Custom { delays } => {
                let delays: Vec<_> = delays.iter().map(|delay| format_duration(*delay)).collect();
                map.serialize_entry(name, &BTreeMap::from([("delays", delays)]))?;
            }
            Backoff::Fixed | Backoff::Fibonacci => {}
        }
        map.end()
    }
}
