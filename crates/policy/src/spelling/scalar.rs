//! The scalar values of a `retry_config`: a number or a word, alone or in a list.
//!
//! The visitors are written by hand, because a derived untagged enum answers every mistake with "did not
//! match any variant".

use core::fmt;
use core::marker::PhantomData;
use core::ops::RangeInclusive;

use serde::Deserializer;
use serde::de::{self, DeserializeSeed, IntoDeserializer, SeqAccess, Visitor};

use crate::config::JitterMode;
use crate::failure::signal_number;
use crate::limits::Attempts;

pub(super) trait Scalar: Sized {
    /// What is accepted, for error messages.
    const ACCEPTED: &'static str;

    fn from_number(_number: i64) -> Option<Self> {
        None
    }

    fn from_word(_word: &str) -> Option<Self> {
        None
    }

    fn from_bool(_flag: bool) -> Option<Self> {
        None
    }
}

pub(super) struct OneScalar<T>(PhantomData<T>);

/// Reads one scalar, or a list of them.
pub(super) struct OneOrMany<T>(PhantomData<T>);

pub(super) const fn one<T>() -> OneScalar<T> {
    OneScalar(PhantomData)
}

pub(super) const fn one_or_many<T>() -> OneOrMany<T> {
    OneOrMany(PhantomData)
}

impl<'de, T: Scalar> DeserializeSeed<'de> for OneScalar<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }
}

fn accepted<T: Scalar, E: de::Error>(value: Option<T>, given: &dyn fmt::Display) -> Result<T, E> {
    let refused = || E::custom(format_args!("`{given}` is not {}", T::ACCEPTED));
    value.ok_or_else(refused)
}

impl<T: Scalar> Visitor<'_> for OneScalar<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::ACCEPTED)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        accepted(T::from_number(number), &number)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        let value = i64::try_from(number).ok().and_then(T::from_number);
        accepted(value, &number)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        accepted(None, &format_args!("{number:?}"))
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<T, E> {
        accepted(T::from_word(word), &word)
    }

    fn visit_bool<E: de::Error>(self, flag: bool) -> Result<T, E> {
        accepted(T::from_bool(flag), &flag)
    }
}

impl<'de, T: Scalar> DeserializeSeed<'de> for OneOrMany<T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Scalar> Visitor<'de> for OneOrMany<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, or a list of these", T::ACCEPTED)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Vec<T>, E> {
        one().visit_i64(number).map(|value| vec![value])
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Vec<T>, E> {
        one().visit_u64(number).map(|value| vec![value])
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Vec<T>, E> {
        one().visit_str(word).map(|value| vec![value])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(one())? {
            values.push(value);
        }
        Ok(values)
    }
}

/// Reads a number, with or without a decimal point. A factor of 2^53 or more is past any cap, so its last
/// digits do not matter.
pub(super) struct NumberSeed;

impl<'de> DeserializeSeed<'de> for NumberSeed {
    type Value = f64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<f64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

#[expect(clippy::cast_precision_loss, reason = "the last digits of a large factor do not matter")]
impl Visitor<'_> for NumberSeed {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<f64, E> {
        Ok(number)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<f64, E> {
        Ok(number as f64)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<f64, E> {
        Ok(number as f64)
    }
}

/// Reads a list, each element with the same seed.
pub(super) struct ListSeed<S> {
    pub(super) element: S,
    /// What is accepted, for error messages.
    pub(super) accepted: &'static str,
}

impl<'de, S: DeserializeSeed<'de> + Copy> DeserializeSeed<'de> for ListSeed<S> {
    type Value = Vec<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, S: DeserializeSeed<'de> + Copy> Visitor<'de> for ListSeed<S> {
    type Value = Vec<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.accepted)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self.element)? {
            values.push(value);
        }
        Ok(values)
    }
}

/// Reads a word as a variant of an enum with a derived `Deserialize`.
pub(super) fn word_of<T: de::DeserializeOwned>(word: &str) -> Option<T> {
    let deserializer: de::value::StrDeserializer<'_, de::value::Error> = word.into_deserializer();
    T::deserialize(deserializer).ok()
}

impl Scalar for Attempts {
    const ACCEPTED: &'static str = "a number of retries, or `unlimited`";

    fn from_number(number: i64) -> Option<Self> {
        u32::try_from(number).ok().map(Self::AtMost)
    }

    fn from_word(word: &str) -> Option<Self> {
        (word == "unlimited").then_some(Self::Unlimited)
    }
}

impl Scalar for JitterMode {
    const ACCEPTED: &'static str = "`true`, `false`, `full`, `equal` or `decorrelated`";

    fn from_bool(flag: bool) -> Option<Self> {
        Some(if flag { Self::PlusMinus } else { Self::Off })
    }

    fn from_word(word: &str) -> Option<Self> {
        match word {
            "full" => Some(Self::Full),
            "equal" => Some(Self::Equal),
            "decorrelated" => Some(Self::Decorrelated),
            _ => None,
        }
    }
}

impl Scalar for i32 {
    const ACCEPTED: &'static str = "an exit code from 0 to 255";

    fn from_number(number: i64) -> Option<Self> {
        u8::try_from(number).ok().map(Self::from)
    }
}

/// A signal, by number or name.
pub(super) struct SignalNumber(pub(super) i32);

impl Scalar for SignalNumber {
    const ACCEPTED: &'static str = "a signal: a number from 1 to 64, or a name such as `TERM`";

    fn from_number(number: i64) -> Option<Self> {
        let signal = i32::try_from(number).ok()?;
        (1..=64).contains(&signal).then_some(Self(signal))
    }

    fn from_word(word: &str) -> Option<Self> {
        signal_number(word).map(Self)
    }
}

/// HTTP statuses: `429`, `500-599` or `5xx`.
pub(super) struct StatusRange(pub(super) RangeInclusive<u16>);

impl Scalar for StatusRange {
    const ACCEPTED: &'static str = "an HTTP status such as `429`, `500-599` or `5xx`";

    fn from_number(number: i64) -> Option<Self> {
        let status = u16::try_from(number).ok()?;
        (100..=599).contains(&status).then_some(Self(status..=status))
    }

    fn from_word(word: &str) -> Option<Self> {
        let digits = |text: &str| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        let status = |text: &str| {
            let number = digits(text).then(|| text.parse().ok())??;
            Some(Self::from_number(number)?.0)
        };
        if let Some((low, high)) = word.split_once('-') {
            let (low, high) = (*status(low)?.start(), *status(high)?.end());
            return (low <= high).then_some(Self(low..=high));
        }
        match word.strip_suffix("xx") {
            Some(hundreds) => {
                let low = *status(&format!("{hundreds}00"))?.start();
                Some(Self(low..=low.saturating_add(99)))
            }
            None => status(word).map(Self),
        }
    }
}
