//! The catalog: its records as they were written, and the state that they fold to.

use std::collections::BTreeMap;

use proptest::prelude::*;
use undaunted_engine::catalog::{Catalog, CatalogEvent, CatalogRecord, FlowLifecycle, FlowStatus};
use undaunted_policy::Timestamp;

use crate::fixture::{
    Cbor, assert_malformed, at, check_damaged, check_golden, check_refused, golden_tree, without_field,
};

fn registered(id: &str, definition: &str) -> CatalogEvent {
    CatalogEvent::StepRegistered { id: id.to_owned(), definition: definition.to_owned() }
}

fn activated(flow: &str, labels: &[(&str, &str)], parent: Option<&str>) -> CatalogEvent {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    CatalogEvent::FlowActivated {
        flow: flow.to_owned(),
        since: at(3),
        labels: labels.iter().map(pair).collect(),
        parent: parent.map(str::to_owned),
    }
}

fn deactivated(flow: &str, error: Option<&str>) -> CatalogEvent {
    CatalogEvent::FlowDeactivated {
        flow: flow.to_owned(),
        status: match error {
            Some(_) => FlowStatus::Failed,
            None => FlowStatus::Completed,
        },
        error: error.map(str::to_owned),
        ended: at(4),
    }
}

fn archiving(flow: &str) -> CatalogEvent {
    CatalogEvent::FlowArchiving { flow: flow.to_owned() }
}

fn archived(flow: &str) -> CatalogEvent {
    CatalogEvent::FlowArchived { flow: flow.to_owned(), file: format!("archive/{flow}.undaunted.jsonl") }
}

/// The record in each golden file, in the order of their variants.
fn records() -> Vec<(String, CatalogRecord)> {
    let events = [
        registered("resize", r#"{"id":"resize","type":"sync"}"#),
        CatalogEvent::StepUpdated {
            id: "resize".to_owned(),
            definition: r#"{"id":"resize","type":"async"}"#.to_owned(),
        },
        CatalogEvent::StepUnregistered { id: "resize".to_owned() },
        CatalogEvent::StepHealthChanged {
            id: "resize".to_owned(),
            healthy: false,
            error: Some("HTTP 503".to_owned()),
        },
        activated("wf-1", &[("team", "media"), ("tier", "2")], Some("wf-0")),
        deactivated("wf-1", Some("step resize failed")),
        archiving("wf-1"),
        archived("wf-1"),
        CatalogEvent::FlowRemoved { flow: "wf-1".to_owned() },
    ];
    let named = events.map(|event| {
        let name = format!("catalog_record_{}", event.word());
        (name, CatalogRecord { at: at(5), event })
    });
    named.into()
}

fn folded(events: impl IntoIterator<Item = CatalogEvent>) -> Catalog {
    let mut catalog = Catalog::default();
    for (event, seconds) in events.into_iter().zip(10..) {
        let record = CatalogRecord { at: at(seconds), event };
        catalog.apply(&record);
    }
    catalog
}

#[test]
fn every_record_of_the_catalog_is_read_and_written_as_its_golden_record() {
    for (name, record) in records() {
        check_golden(&name, &record);
        check_refused::<CatalogRecord>(&name);
    }
}

#[test]
fn every_event_of_the_catalog_has_a_golden_record() {
    let numbers = records().into_iter().map(|(name, _)| {
        let mut found = golden_tree(&name);
        match found.at(&[1, 0]) {
            Cbor::Plain(number) => number.clone(),
            other @ Cbor::List(_) => panic!("{other:?}"),
        }
    });
    let numbers: Vec<Vec<u8>> = numbers.collect();
    let all = (0_u8..9).map(|number| minicbor::to_vec(number).unwrap());
    assert_eq!(numbers, all.collect::<Vec<_>>());
}

#[test]
fn a_record_of_the_catalog_that_lacks_a_field_is_read_without_it_or_refused() {
    let optional = [
        ("catalog_record_step_health_changed", 2),
        ("catalog_record_flow_activated", 3),
        ("catalog_record_flow_deactivated", 2),
    ];
    for (name, record) in records() {
        let Cbor::List(fields) = golden_tree(&name).at(&[1, 1]).clone() else {
            panic!("{name} has no fields");
        };
        for field in 0..fields.len() {
            let bytes = without_field(&name, &[1, 1, field]);
            if !optional.contains(&(name.as_str(), field)) {
                assert_malformed::<CatalogRecord>(&bytes, &name);
                continue;
            }
            let found = CatalogRecord::decode(&bytes);
            let mut expected = record.clone();
            match &mut expected.event {
                CatalogEvent::StepHealthChanged { error, .. }
                | CatalogEvent::FlowDeactivated { error, .. } => *error = None,
                CatalogEvent::FlowActivated { parent, .. } => *parent = None,
                other => panic!("{other:?}"),
            }
            assert_eq!(found, Ok(expected), "{name} without {field}");
        }
    }
}

#[test]
fn the_last_definition_of_a_step_applies_until_it_is_unregistered() {
    let updated = CatalogEvent::StepUpdated { id: "a".to_owned(), definition: "2".to_owned() };
    let gone = CatalogEvent::StepUnregistered { id: "a".to_owned() };
    let catalog = folded([registered("a", "1"), updated.clone()]);
    assert_eq!(&*catalog.steps["a"], "2");
    assert_eq!(folded([registered("a", "1"), updated, gone]), Catalog::default());
}

#[test]
fn the_health_of_a_step_is_known_while_the_step_is() {
    let health = |id: &str| CatalogEvent::StepHealthChanged {
        id: id.to_owned(),
        healthy: false,
        error: Some("refused".to_owned()),
    };
    let catalog = folded([registered("a", "1"), health("a"), health("b")]);
    let known: Vec<&String> = catalog.health.keys().collect();
    assert_eq!(known, ["a"]);
    assert_eq!(catalog.health["a"].since, at(11));
    let again = folded([registered("a", "1"), health("a"), registered("a", "2")]);
    assert!(again.health.is_empty(), "it was not checked yet");
}

#[test]
fn a_reactivated_flow_keeps_its_labels_and_its_parent() {
    let first = activated("f", &[("k", "v")], Some("g"));
    let catalog = folded([first.clone(), deactivated("f", Some("no")), activated("f", &[], None)]);
    let entry = &catalog.flows["f"];
    let labels = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
    assert_eq!(entry.labels, labels);
    assert_eq!(entry.parent.as_deref(), Some("g"));
    assert_eq!((entry.lifecycle, entry.status), (FlowLifecycle::Active, FlowStatus::Active));
    assert_eq!((&entry.error, entry.ended), (&None, None));
    assert_eq!((entry.since, entry.updated), (at(3), at(12)));
    let renamed = folded([first, activated("f", &[("k", "w")], None)]);
    assert_eq!(renamed.flows["f"].labels["k"], "w");
}

#[test]
fn an_ended_flow_is_archived_and_removed() {
    let mut events = vec![activated("f", &[], None), deactivated("f", Some("no"))];
    let ended = folded(events.clone());
    let entry = &ended.flows["f"];
    assert_eq!((entry.lifecycle, entry.status), (FlowLifecycle::Deactivated, FlowStatus::Failed));
    assert_eq!((entry.error.as_deref(), entry.ended), (Some("no"), Some(at(4))));
    events.push(archiving("f"));
    let moving = folded(events.clone());
    assert_eq!(moving.flows["f"].lifecycle, FlowLifecycle::Archiving);
    assert_eq!(moving.flows["f"].status, FlowStatus::Failed);
    events.push(archived("f"));
    assert_eq!(folded(events), Catalog::default());
}

fn any_event() -> impl Strategy<Value = CatalogEvent> {
    let name = || prop::sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned);
    let text = || any::<String>();
    let maybe = || prop::option::of(any::<String>());
    let time = || any::<u64>().prop_map(Timestamp::from_nanos);
    let statuses = vec![FlowStatus::Active, FlowStatus::Completed, FlowStatus::Failed];
    prop_oneof![
        (name(), text()).prop_map(|(id, definition)| CatalogEvent::StepRegistered { id, definition }),
        (name(), text()).prop_map(|(id, definition)| CatalogEvent::StepUpdated { id, definition }),
        name().prop_map(|id| CatalogEvent::StepUnregistered { id }),
        (name(), any::<bool>(), maybe())
            .prop_map(|(id, healthy, error)| { CatalogEvent::StepHealthChanged { id, healthy, error } }),
        (name(), time(), prop::collection::vec((text(), text()), 0..3), maybe()).prop_map(
            |(flow, since, labels, parent)| CatalogEvent::FlowActivated { flow, since, labels, parent }
        ),
        (name(), prop::sample::select(statuses), maybe(), time()).prop_map(|(flow, status, error, ended)| {
            CatalogEvent::FlowDeactivated { flow, status, error, ended }
        }),
        name().prop_map(|flow| CatalogEvent::FlowArchiving { flow }),
        (name(), text()).prop_map(|(flow, file)| CatalogEvent::FlowArchived { flow, file }),
        name().prop_map(|flow| CatalogEvent::FlowRemoved { flow }),
    ]
}

fn any_record() -> impl Strategy<Value = CatalogRecord> {
    (any::<u64>(), any_event())
        .prop_map(|(nanos, event)| CatalogRecord { at: Timestamp::from_nanos(nanos), event })
}

/// Whether an event is about a step, and the name of the step or flow.
fn subject(event: &CatalogEvent) -> (bool, &str) {
    match event {
        CatalogEvent::StepRegistered { id, .. }
        | CatalogEvent::StepUpdated { id, .. }
        | CatalogEvent::StepUnregistered { id }
        | CatalogEvent::StepHealthChanged { id, .. } => (true, id),
        CatalogEvent::FlowActivated { flow, .. }
        | CatalogEvent::FlowDeactivated { flow, .. }
        | CatalogEvent::FlowArchiving { flow }
        | CatalogEvent::FlowArchived { flow, .. }
        | CatalogEvent::FlowRemoved { flow } => (false, flow),
    }
}

proptest! {
    #[test]
    fn any_record_of_the_catalog_is_read_as_it_was_written(record in any_record()) {
        prop_assert_eq!(CatalogRecord::decode(&record.encode()), Ok(record));
    }

    #[test]
    fn a_damaged_record_of_the_catalog_is_refused_or_is_another_one(
        which in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        check_damaged::<CatalogRecord>(&which.get(&records()).0, place, byte);
    }

    #[test]
    fn steps_and_flows_do_not_affect_each_other(
        records in prop::collection::vec(any_record(), 0..40),
        steps in any::<bool>(),
        name in prop::sample::select(vec!["a", "b", "c"]),
    ) {
        let mut whole = Catalog::default();
        let mut alone = Catalog::default();
        for record in &records {
            whole.apply(record);
            if subject(&record.event) == (steps, name) {
                alone.apply(record);
            }
        }
        prop_assert!(whole.health.keys().all(|id| whole.steps.contains_key(id)));
        if steps {
            prop_assert_eq!(whole.steps.get(name), alone.steps.get(name));
            prop_assert_eq!(whole.health.get(name), alone.health.get(name));
        } else {
            prop_assert_eq!(whole.flows.get(name), alone.flows.get(name));
        }
    }

    #[test]
    fn a_repeated_record_changes_nothing(records in prop::collection::vec(any_record(), 0..20)) {
        let mut catalog = Catalog::default();
        for record in &records {
            catalog.apply(record);
            let once = catalog.clone();
            catalog.apply(record);
            prop_assert_eq!(&catalog, &once);
        }
    }
}
