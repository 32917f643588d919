//! The small values of a `retry_config`: a number or a word, one thing or a list of them.
//!
//! Visitors are written out instead of derived: a derived untagged enum would answer every mistake
//! with "did not match any variant".

use core::fmt;
use core::marker::PhantomData;
use core::ops::RangeInclusive;

use serde::Deserializer;
use serde::de::{self, DeserializeSeed, IntoDeserializer, SeqAccess, Visitor};

use crate::config::JitterMode;
use crate::limits::Attempts;
use crate::signal::signal_number;

/// A value that is read from a scalar.
pub(super) trait Scalar: Sized {
    /// What is accepted, for the message.
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

/// Reads one scalar.
pub(super) struct One<T>(PhantomData<T>);

/// Reads one scalar, or a list of them.
pub(super) struct OneOrMany<T>(PhantomData<T>);

pub(super) const fn one<T>() -> One<T> {
    One(PhantomData)
}

pub(super) const fn one_or_many<T>() -> OneOrMany<T> {
    OneOrMany(PhantomData)
}

impl<'de, T: Scalar> DeserializeSeed<'de> for One<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }
}

fn accepted<T: Scalar, E: de::Error>(value: Option<T>, given: &dyn fmt::Display) -> Result<T, E> {
    let refused = || E::custom(format_args!("`{given}` is not {}", T::ACCEPTED));
    value.ok_or_else(refused)
}

impl<T: Scalar> Visitor<'_> for One<T> {
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
        write!(f, "{}, or a list of such", T::ACCEPTED)
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

/// Reads a finite or infinite number, written with or without a point.
pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    struct Number;
    impl Visitor<'_> for Number {
        type Value = f64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number")
        }

        fn visit_f64<E: de::Error>(self, number: f64) -> Result<f64, E> {
            Ok(number)
        }

        #[expect(clippy::cast_precision_loss, reason = "a factor of 2^53 is past any cap")]
        fn visit_u64<E: de::Error>(self, number: u64) -> Result<f64, E> {
            Ok(number as f64)
        }

        #[expect(clippy::cast_precision_loss, reason = "a factor of 2^53 is past any cap")]
        fn visit_i64<E: de::Error>(self, number: i64) -> Result<f64, E> {
            Ok(number as f64)
        }
    }
    deserializer.deserialize_any(Number)
}

/// Reads the words of an enum that serde was derived for.
pub(super) fn word_of<T: de::DeserializeOwned>(word: &str) -> Option<T> {
    let deserializer: de::value::StrDeserializer<'_, de::value::Error> = word.into_deserializer();
    T::deserialize(deserializer).ok()
}

impl Scalar for Attempts {
    const ACCEPTED: &'static str = "a number of retries from 0 to 4294967295, or `unlimited`";

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

/// An exit code.
impl Scalar for i32 {
    const ACCEPTED: &'static str = "an exit code from 0 to 255";

    fn from_number(number: i64) -> Option<Self> {
        u8::try_from(number).ok().map(Self::from)
    }
}

/// A signal, by number or name.
pub(super) struct Signal(pub(super) i32);

impl Scalar for Signal {
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
pub(super) struct Statuses(pub(super) RangeInclusive<u16>);

impl Scalar for Statuses {
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
