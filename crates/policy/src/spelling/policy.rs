//! A checked policy, saved and restored.
//!
//! It is saved as the `retry_config` that describes it with every default written out, and is
//! restored through the same checks as one that a person wrote: a damaged or forged record cannot
//! become a policy that no file could.

use core::fmt;
use std::borrow::Cow;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::duration::{DurationSeed, format_duration};
use super::retry_config::Setting;
use crate::config::RetryConfig;
use crate::policy::Policy;

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let config = RetryConfig::from(self);
        let mut map = serializer.serialize_map(None)?;
        config.write(&mut map)?;
        if let Some(deadline) = self.terms.limits.deadline {
            map.serialize_entry("deadline", &format_duration(deadline))?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PolicyVisitor)
    }
}

struct PolicyVisitor;

impl<'de> Visitor<'de> for PolicyVisitor {
    type Value = Policy;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a saved policy")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Policy, A::Error> {
        let mut config = RetryConfig::new();
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            // Not part of a `retry_config`: there the deadline belongs to the item or the job.
            if key == "deadline" {
                if config.deadline.is_some() {
                    return Err(de::Error::duplicate_field("deadline"));
                }
                config.deadline = Some(map.next_value_seed(DurationSeed)?);
            } else {
                map.next_value_seed(Setting { config: &mut config, key: &key })?;
            }
        }
        config.build().map_err(de::Error::custom)
    }
}
