//! Following the journals of flows and of the catalog: the state first, then every later event, in
//! order, none lost and none twice. A subscription to a flow that does not exist yet waits for it.
//!
//! New events are read from the store, after the last record that was sent. So there is no queue that
//! could grow for a slow client, and flows that another process runs are followed as well. Every call
//! here may block on the store.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use undaunted_engine::catalog::{Catalog, CatalogRecord};
use undaunted_engine::job::Plans;
use undaunted_engine::view::CatalogView;
use undaunted_runner::catalog::CatalogHandle;
use undaunted_runner::flows::FlowHost;
use undaunted_runner::journal::{self, JournalError};
use undaunted_store::{Store, Version};

use crate::answer::{json_of, put};
use crate::catalog_events::{catalog_event, part_of};
use crate::everything::FollowedFlows;
use crate::flow_state::FollowedFlow;
use crate::subscription::{FollowedAggregate, SubscriptionRequest};

/// The most subscriptions of one client.
const MAX_SUBSCRIPTIONS: usize = 1000;

/// The most records of one journal that are read in one go.
const PAGE: usize = 256;

pub(crate) struct Follower {
    store: Arc<dyn Store>,
    catalog: CatalogHandle,
    plans: Arc<Plans>,
    pulse: Option<u64>,
    subscriptions: Vec<Subscription>,
}

struct Subscription {
    sub_id: Option<String>,
    aggregate: FollowedAggregate,
    types: BTreeSet<String>,
    position: FollowPosition,
}

enum FollowPosition {
    Flow(Box<FollowedFlow>),
    /// The flow does not exist yet.
    Waiting,
    Catalog(Version),
    Everything(Version, FollowedFlows),
    /// The journal can no longer be read; the client got an error.
    Lost,
}

impl Follower {
    pub(crate) fn of(host: &FlowHost) -> Self {
        Self {
            store: host.store(),
            catalog: host.catalog().clone(),
            plans: host.plans(),
            pulse: None,
            subscriptions: Vec::new(),
        }
    }

    pub(crate) const fn is_idle(&self) -> bool {
        self.subscriptions.is_empty()
    }

    /// Carries out a request of the client and returns the answer, if there is one.
    pub(crate) fn handle(&mut self, request: SubscriptionRequest) -> Option<Value> {
        match request {
            SubscriptionRequest::Unsubscribe { sub_id } => {
                self.subscriptions.retain(|known| known.sub_id.as_ref() != Some(&sub_id));
                None
            }
            SubscriptionRequest::Subscribe { aggregate, types, sub_id } => {
                // Subscribing again replaces the subscription.
                self.subscriptions.retain(|known| {
                    known.sub_id != sub_id || (sub_id.is_none() && known.aggregate != aggregate)
                });
                if self.subscriptions.len() >= MAX_SUBSCRIPTIONS {
                    let error = format!("a client can have at most {MAX_SUBSCRIPTIONS} subscriptions");
                    return Some(refusal(&error, 429, Some(&aggregate), sub_id.as_deref()));
                }
                Some(self.subscribe(aggregate, types, sub_id))
            }
        }
    }

    fn subscribe(
        &mut self,
        aggregate: FollowedAggregate,
        types: BTreeSet<String>,
        sub_id: Option<String>,
    ) -> Value {
        let (data, version, position) = match self.begin(&aggregate) {
            Ok(found) => found,
            Err(error) => return failed(&error, &aggregate, sub_id.as_deref()),
        };
        let mut answer = json!({
            "type": "subscribed",
            "id": aggregate.id(),
            "data": data,
            "sequence": version.next().0,
        });
        put(&mut answer, "sub_id", sub_id.as_deref());
        self.subscriptions.push(Subscription { sub_id, aggregate, types, position });
        answer
    }

    fn begin(&self, aggregate: &FollowedAggregate) -> Result<(Value, Version, FollowPosition), JournalError> {
        Ok(match aggregate {
            FollowedAggregate::Engine | FollowedAggregate::Catalog | FollowedAggregate::Partition => {
                let (data, version) = self.catalog_state(aggregate)?;
                (data, version, FollowPosition::Catalog(version))
            }
            FollowedAggregate::Everything => {
                // The flows first: a flow that begins meanwhile is listed and followed.
                let flows = FollowedFlows::begin(&*self.store)?;
                let (data, version) = self.catalog_state(aggregate)?;
                (data, version, FollowPosition::Everything(version, flows))
            }
            FollowedAggregate::Flow(flow) => {
                if self
                    .store
                    .head(&journal::aggregate(flow)?)?
                    .is_none_or(|head| head.version == Version::EMPTY)
                {
                    // Its events follow from the first on, so there is no state to begin with.
                    return Ok((json!({}), Version::EMPTY, FollowPosition::Waiting));
                }
                let followed = FollowedFlow::read(&*self.store, flow, &self.plans)?;
                let look = |catalog: &Catalog| followed.json(catalog.flows.get(flow.as_str()));
                let data = self.catalog.read(look)?;
                (data, followed.version, FollowPosition::Flow(Box::new(followed)))
            }
        })
    }

    /// The part of the catalog that an aggregate is about.
    fn catalog_state(&self, aggregate: &FollowedAggregate) -> Result<(Value, Version), JournalError> {
        self.catalog.read(|_| ())?;
        let look = |catalog: &Catalog, version| (json_of(&CatalogView::of(catalog)), version);
        let (mut data, version) = self.catalog.cached(look);
        if let Some(fields) = data.as_object_mut() {
            fields.retain(|name, _| match name.as_str() {
                "last_updated" => true,
                "steps" | "attributes" => *aggregate != FollowedAggregate::Partition,
                _ => *aggregate != FollowedAggregate::Catalog,
            });
        }
        Ok((data, version))
    }

    /// The new events, and whether there may be more at once. Unless `notified`, it reads only if the pulse
    /// of the store has changed.
    pub(crate) fn poll(&mut self, notified: bool) -> (Vec<Value>, bool) {
        let pulse = self.store.pulse().ok();
        if !notified && pulse.is_some() && pulse == self.pulse {
            return (Vec::new(), false);
        }
        self.pulse = pulse;
        let mut events = Vec::new();
        let mut more = false;
        for subscription in &mut self.subscriptions {
            let shared = (&self.catalog, &*self.plans);
            match subscription.read(&*self.store, shared, &mut events) {
                Ok(left) => more |= left,
                Err(error) => {
                    let sub_id = subscription.sub_id.as_deref();
                    events.push(failed(&error, &subscription.aggregate, sub_id));
                    subscription.position = FollowPosition::Lost;
                }
            }
        }
        if more {
            self.pulse = None;
        }
        (events, more)
    }
}

impl Subscription {
    fn read(
        &mut self,
        store: &dyn Store,
        (catalog, plans): (&CatalogHandle, &Plans),
        events: &mut Vec<Value>,
    ) -> Result<bool, JournalError> {
        let mut push = |event: Value| {
            let kind = event.get("type").and_then(Value::as_str);
            let wanted = kind.is_some_and(|kind| self.types.contains(kind));
            if wanted || self.types.is_empty() {
                let mut event = event;
                put(&mut event, "sub_id", self.sub_id.as_deref());
                events.push(event);
            }
        };
        if let (FollowPosition::Waiting, FollowedAggregate::Flow(flow)) = (&self.position, &self.aggregate) {
            let Some((begun, first)) = FollowedFlow::begin(store, flow, plans)? else {
                return Ok(false);
            };
            if let Some(first) = first {
                push(json_of(&first));
            }
            self.position = FollowPosition::Flow(Box::new(begun));
        }
        match &mut self.position {
            FollowPosition::Waiting | FollowPosition::Lost => Ok(false),
            FollowPosition::Catalog(last) => read_catalog(catalog, last, &self.aggregate, &mut push),
            FollowPosition::Everything(last, flows) => {
                let more = read_catalog(catalog, last, &self.aggregate, &mut push)?;
                Ok(flows.read(store, plans, push)? || more)
            }
            FollowPosition::Flow(followed) => {
                let read = followed.follow(store, PAGE, |_, event| {
                    if let Some(event) = event {
                        push(json_of(&event));
                    }
                });
                Ok(read? >= PAGE)
            }
        }
    }
}

/// The new events of the catalog that an aggregate is about, and whether there may be more.
fn read_catalog(
    catalog: &CatalogHandle,
    last: &mut Version,
    aggregate: &FollowedAggregate,
    push: &mut impl FnMut(Value),
) -> Result<bool, JournalError> {
    let mut read = 0_usize;
    for (version, record) in catalog.records_after(*last)?.into_iter().take(PAGE) {
        if let Some(id) = event_id(aggregate, &record) {
            let mut event = catalog_event(version, &record);
            put(&mut event, "id", Some(id));
            push(event);
        }
        *last = version;
        read = read.saturating_add(1);
    }
    Ok(read >= PAGE)
}

/// Under which aggregate a client gets an event of the catalog. `None` if it is not about the client's.
fn event_id(aggregate: &FollowedAggregate, record: &CatalogRecord) -> Option<Value> {
    let part = part_of(&record.event);
    match aggregate {
        FollowedAggregate::Engine => Some(aggregate.id()),
        FollowedAggregate::Everything => Some(part.id()),
        FollowedAggregate::Catalog | FollowedAggregate::Partition => (part == *aggregate).then(|| part.id()),
        FollowedAggregate::Flow(_) => None,
    }
}

fn failed(error: &JournalError, aggregate: &FollowedAggregate, sub_id: Option<&str>) -> Value {
    let status = match error {
        JournalError::NotFound { .. } => 404,
        _ => 503,
    };
    let text = match (error, aggregate) {
        (JournalError::NotFound { .. }, FollowedAggregate::Flow(flow)) => {
            format!("flow `{flow}` not found")
        }
        _ => error.to_string(),
    };
    refusal(&text, status, Some(aggregate), sub_id)
}

pub(crate) fn refusal(
    error: &str,
    status: u16,
    aggregate: Option<&FollowedAggregate>,
    sub_id: Option<&str>,
) -> Value {
    let mut answer = json!({ "type": "error", "error": error, "status": status });
    put(&mut answer, "id", aggregate.map(FollowedAggregate::id));
    put(&mut answer, "sub_id", sub_id);
    answer
}
