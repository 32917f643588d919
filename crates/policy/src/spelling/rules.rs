//! `rules` and `retry_on`.

use core::fmt;
use core::ops::RangeInclusive;
use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::scalar::{ListSeed, Scalar, SignalNumber, StatusRange, one_or_many, word_of};
use crate::config::RetryConfig;
use crate::failure::FailureClass;
use crate::kind::FailureKind;
use crate::pattern::Pattern;
use crate::rules::{ClassName, Conditions, RetryOn, Rule, RuleAction};

const RULE_KEYS: &[&str] =
    &["exit_code", "signal", "status", "class", "stderr", "output", "then", "retry_config"];

/// Reads the list of `retry_on`.
pub(super) const RETRY_ON: ListSeed<RetryOnSeed> = ListSeed {
    element: RetryOnSeed,
    accepted: "a list of network, timeout, server_error, rate_limit, {pattern: REGEX}",
};

/// Reads one entry of `retry_on`.
#[derive(Clone, Copy)]
pub(super) struct RetryOnSeed;

impl<'de> Deserialize<'de> for Rule<RetryConfig> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RuleVisitor)
    }
}

struct RuleVisitor;

impl<'de> Visitor<'de> for RuleVisitor {
    type Value = Rule<RetryConfig>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a rule: {}", RULE_KEYS.join(", "))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut when = Conditions::default();
        let mut then = None;
        let mut terms: Option<RetryConfig> = None;
        let mut seen = BTreeSet::new();
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            let Some(key) = RULE_KEYS.iter().copied().find(|known| *known == key) else {
                return Err(de::Error::unknown_field(&key, RULE_KEYS));
            };
            if !seen.insert(key) {
                return Err(de::Error::duplicate_field(key));
            }
            match key {
                "exit_code" => when.exit_codes = map.next_value_seed(one_or_many())?,
                "signal" => {
                    let signals: Vec<SignalNumber> = map.next_value_seed(one_or_many())?;
                    when.signals = signals.into_iter().map(|signal| signal.0).collect();
                }
                "status" => {
                    let statuses: Vec<StatusRange> = map.next_value_seed(one_or_many())?;
                    when.statuses = statuses.into_iter().map(|status| status.0).collect();
                }
                "class" => when.classes = map.next_value_seed(one_or_many())?,
                "stderr" => when.stderr = Some(map.next_value()?),
                "output" => when.output = Some(map.next_value()?),
                "then" => then = Some(map.next_value::<RuleAction>()?),
                _ => terms = Some(map.next_value()?),
            }
        }
        let lists = [
            ("exit_code", when.exit_codes.len()),
            ("signal", when.signals.len()),
            ("status", when.statuses.len()),
            ("class", when.classes.len()),
        ];
        if let Some((key, _)) = lists.iter().find(|(key, len)| *len == 0 && seen.contains(key)) {
            // An empty condition holds for every failure, the opposite of what it looks like.
            return Err(de::Error::custom(format_args!("`{key}` is an empty list")));
        }
        let then = then.ok_or_else(|| de::Error::missing_field("then"))?;
        if terms.is_some() && then != RuleAction::Retry {
            return Err(de::Error::custom("a rule's `retry_config` is only allowed with `then: retry`"));
        }
        Ok(Rule { when, then, terms: terms.map(Box::new) })
    }
}

impl Serialize for Rule<RetryConfig> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let when = &self.when;
        if !when.exit_codes.is_empty() {
            map.serialize_entry("exit_code", &when.exit_codes)?;
        }
        if !when.signals.is_empty() {
            map.serialize_entry("signal", &when.signals)?;
        }
        if !when.statuses.is_empty() {
            let statuses: Vec<_> = when.statuses.iter().map(StatusText).collect();
            map.serialize_entry("status", &statuses)?;
        }
        if !when.classes.is_empty() {
            let words: Vec<_> = when.classes.iter().map(|name| name.word()).collect();
            map.serialize_entry("class", &words)?;
        }
        if let Some(pattern) = &when.stderr {
            map.serialize_entry("stderr", pattern)?;
        }
        if let Some(pattern) = &when.output {
            map.serialize_entry("output", pattern)?;
        }
        map.serialize_entry("then", &self.then)?;
        if let Some(terms) = &self.terms {
            map.serialize_entry("retry_config", terms)?;
        }
        map.end()
    }
}

impl ClassName {
    const fn word(self) -> &'static str {
        match self {
            Self::Class(FailureClass::Transient) => "transient",
            Self::Class(FailureClass::Throttled) => "throttled",
            Self::Class(FailureClass::Permanent) => "permanent",
            Self::Kind(kind) => kind.word(),
            Self::Interrupted => "interrupted",
        }
    }
}

impl Scalar for ClassName {
    const ACCEPTED: &'static str = "a class of failures: transient, throttled, permanent, \
         network, timeout, server_error, rate_limit or interrupted";

    fn from_word(word: &str) -> Option<Self> {
        match word {
            "interrupted" => Some(Self::Interrupted),
            word => word_of(word).map(Self::Class).or_else(|| kind(word).map(Self::Kind)),
        }
    }
}

fn kind(word: &str) -> Option<FailureKind> {
    FailureKind::ALL.into_iter().find(|kind| kind.word() == word)
}

impl<'de> DeserializeSeed<'de> for RetryOnSeed {
    type Value = RetryOn;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RetryOn, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RetryOnSeed {
    type Value = RetryOn;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("network, timeout, server_error, rate_limit or {pattern: REGEX}")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<RetryOn, E> {
        const WORDS: &[&str] = &["network", "timeout", "server_error", "rate_limit"];
        kind(word).map(RetryOn::Kind).ok_or_else(|| E::unknown_variant(word, WORDS))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RetryOn, A::Error> {
        match map.next_key::<Cow<'_, str>>()?.as_deref() {
            Some("pattern") => {}
            Some(other) => return Err(de::Error::unknown_field(other, &["pattern"])),
            None => return Err(de::Error::missing_field("pattern")),
        }
        let pattern = map.next_value()?;
        match map.next_key::<Cow<'_, str>>()? {
            None => Ok(RetryOn::Pattern(pattern)),
            Some(second) => Err(de::Error::unknown_field(&second, &["pattern"])),
        }
    }
}

impl Serialize for RetryOn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Kind(kind) => serializer.serialize_str(kind.word()),
            Self::Pattern(pattern) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("pattern", pattern)?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        Self::new(&text).map_err(|problem| {
            de::Error::custom(format_args!("`{text}` is not a regular expression: {problem}"))
        })
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Writes a range of statuses as it is read.
pub(super) struct StatusText<'a>(pub(super) &'a RangeInclusive<u16>);

impl Serialize for StatusText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.start() == self.0.end() {
            serializer.serialize_u16(*self.0.start())
        } else {
            serializer.collect_str(&format_args!("{}-{}", self.0.start(), self.0.end()))
        }
    }
}
