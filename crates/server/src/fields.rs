//! The fields of a request, read one by one, so that an error names the field.
//!
//! Unknown fields are ignored: clients may send more than is known here. A field that is null counts as
//! missing.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::answer::HttpRefusal;

#[derive(Clone, Debug)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    pub(crate) fn read(body: &[u8]) -> Result<Self, HttpRefusal> {
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(HttpRefusal::bad_request("the request body is not a JSON object")),
            Err(error) => {
                Err(HttpRefusal::bad_request(format!("the request body is not valid JSON: {error}")))
            }
        }
    }

    pub(crate) fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    fn get<T>(
        &self,
        name: &str,
        kind: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, HttpRefusal> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value)
                .map(Some)
                .ok_or_else(|| HttpRefusal::bad_request(format!("`{name}` must be {kind}"))),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, HttpRefusal> {
        self.get(name, "a string", |value| value.as_str().map(str::to_owned))
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, HttpRefusal> {
        let texts = |value: &Value| {
            let texts = value.as_array()?.iter();
            texts.map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let texts = self.get(name, "a list of strings", texts)?;
        Ok(texts.unwrap_or_default())
    }

    pub(crate) fn object(&self, name: &str) -> Result<Map<String, Value>, HttpRefusal> {
        let object = self.get(name, "an object", |value| value.as_object().cloned())?;
        Ok(object.unwrap_or_default())
    }

    pub(crate) fn labels(&self, name: &str) -> Result<BTreeMap<String, String>, HttpRefusal> {
        let labels = |value: &Value| {
            let labels = value.as_object()?.iter();
            labels.map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
        };
        let labels = self.get(name, "an object with string values", labels)?;
        Ok(labels.unwrap_or_default())
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, HttpRefusal> {
        self.get(name, "a whole number of at least 0", Value::as_u64)
    }

    /// A count that a limit bounds later: one that is too large to represent is the largest.
    pub(crate) fn any_count(&self, name: &str) -> Result<Option<u64>, HttpRefusal> {
        // JSON numbers beyond 64 bits are read as floating-point numbers.
        let large =
            |value: &Value| value.as_f64().is_some_and(|number| number >= 18_446_744_073_709_551_615.0);
        let count = |value: &Value| value.as_u64().or_else(|| large(value).then_some(u64::MAX));
        self.get(name, "a whole number of at least 0", count)
    }

    pub(crate) fn seconds(&self, name: &str) -> Result<Option<f64>, HttpRefusal> {
        let seconds = |value: &Value| value.as_f64().filter(|seconds| *seconds >= 0.0);
        self.get(name, "a number of at least 0", seconds)
    }

    pub(crate) fn switch(&self, name: &str) -> Result<Option<bool>, HttpRefusal> {
        self.get(name, "true or false", Value::as_bool)
    }
}
