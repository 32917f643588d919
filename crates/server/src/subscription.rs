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
    /// Steps, their health and the list of flows, as earlier clients know it.
    Engine,
    /// The steps.
    Catalog,
    /// The health of steps, and the list of flows.
    Partition,
    Flow(String),
    /// All of these, and every flow.
    Everything,
}

impl FollowedAggregate {
    /// As clients write it.
    pub(crate) fn id(&self) -> Value {
        match self {
            Self::Engine => json!(["engine"]),
            Self::Catalog => json!(["catalog"]),
            Self::Partition => json!(["partition"]),
            Self::Flow(flow) => json!(["flow", flow]),
            Self::Everything => json!([]),
        }
    }

    fn read(parts: &Value) -> Option<Self> {
        let none = Vec::new();
        let parts = if parts.is_null() { &none } else { parts.as_array()? };
        let parts = parts.iter().map(Value::as_str);
        match *parts.collect::<Option<Vec<_>>>()?.as_slice() {
            [] => Some(Self::Everything),
            ["engine"] => Some(Self::Engine),
            ["catalog"] => Some(Self::Catalog),
            ["partition"] => Some(Self::Partition),
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
                if data.get("aggregate_ids").is_some() {
                    // Without this, the client would get everything.
                    return Err(
                        "`aggregate_ids` is not supported; subscribe with one `aggregate_id` each".to_owned()
                    );
                }
                let wrong = "`aggregate_id` must be [\"catalog\"], [\"partition\"], [\"flow\", ID], [\"engine\"] or absent";
                let aggregate = FollowedAggregate::read(data.get("aggregate_id").unwrap_or(&none));
                Ok(Self::Subscribe {
                    aggregate: aggregate.ok_or(wrong)?,
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
