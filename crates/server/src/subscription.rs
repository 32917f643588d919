//! The requests of a client that follows events.

use std::collections::BTreeSet;

use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SubscriptionRequest {
    /// No `types` stands for all.
    Subscribe {
        aggregate: FollowedAggregate,
        types: BTreeSet<String>,
        sub_id: Option<String>,
    },
    Unsubscribe {
        sub_id: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FollowedAggregate {
    Engine,
    Flow(String),
}

impl FollowedAggregate {
    /// As clients write it.
    pub(crate) fn id(&self) -> Value {
        match self {
            Self::Engine => json!(["engine"]),
            Self::Flow(flow) => json!(["flow", flow]),
        }
    }

    fn read(parts: &Value) -> Option<Self> {
        let parts = parts.as_array()?.iter().map(Value::as_str);
        match *parts.collect::<Option<Vec<_>>>()?.as_slice() {
            ["engine"] => Some(Self::Engine),
            ["flow", flow] if !flow.is_empty() => Some(Self::Flow(flow.to_owned())),
            _ => None,
        }
    }
}

impl SubscriptionRequest {
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let message: Value =
            serde_json::from_str(text).map_err(|error| format!("the message is not JSON: {error}"))?;
        let none = Value::Null;
        let data = message.get("data").unwrap_or(&none);
        let sub_id = match data.get("sub_id") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return Err("`sub_id` must be a string".to_owned()),
        };
        match message.get("type").and_then(Value::as_str) {
            Some("subscribe") => {
                let aggregate = data.get("aggregate_id").and_then(FollowedAggregate::read);
                Ok(Self::Subscribe {
                    aggregate: aggregate.ok_or("`aggregate_id` must be [\"flow\", ID] or [\"engine\"]")?,
                    types: types(data.get("event_types"))?,
                    sub_id,
                })
            }
            Some("unsubscribe") => Ok(Self::Unsubscribe { sub_id: sub_id.ok_or("`sub_id` is missing")? }),
            _ => Err("`type` must be `subscribe` or `unsubscribe`".to_owned()),
        }
    }
}

fn types(names: Option<&Value>) -> Result<BTreeSet<String>, String> {
    let names = match names {
        None | Some(Value::Null) => return Ok(BTreeSet::new()),
        Some(names) => names.as_array(),
    };
    let names = names.and_then(|names| {
        let names = names.iter().map(|name| name.as_str().map(str::to_owned));
        names.collect::<Option<_>>()
    });
    names.ok_or_else(|| "`event_types` must be a list of names".to_owned())
}
