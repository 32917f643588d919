//! Which flows are found, and in which order.

use serde_json::{Value, json};
use undaunted_engine::catalog::{CatalogEvent, CatalogRecord};
use undaunted_policy::Timestamp;

use super::*;
use crate::answer::json_of;

/// A flow, how it stands, and when it began or ended.
fn catalog(flows: &[(&str, FlowStatus, u64)]) -> Catalog {
    let mut catalog = Catalog::default();
    for (flow, status, at) in flows {
        let at = Timestamp::from_millis(*at);
        let flow = (*flow).to_owned();
        let label = ("team".to_owned(), flow[..1].to_owned());
        let activated =
            CatalogEvent::FlowActivated { flow: flow.clone(), since: at, labels: vec![label], parent: None };
        catalog.apply(&CatalogRecord { at, event: activated });
        if *status != FlowStatus::Active {
            let ended = CatalogEvent::FlowDeactivated { flow, status: *status, error: None, ended: at };
            catalog.apply(&CatalogRecord { at, event: ended });
        }
    }
    catalog
}

fn usual() -> Catalog {
    use FlowStatus::{Active, Completed, Failed};
    catalog(&[
        ("b-2", Active, 20),
        ("a-1", Active, 10),
        ("a-3", Completed, 30),
        ("b-4", Failed, 40),
        ("a-5", Completed, 30),
        ("a-1:step:token", Active, 11),
    ])
}

fn query(asked: &Value) -> Result<Query, String> {
    let fields = Fields::read(asked.to_string().as_bytes()).unwrap();
    Query::read(&fields).map_err(|refused| {
        assert_eq!(refused.status.as_u16(), 400);
        refused.error
    })
}

fn shown(query: &Query, catalog: &Catalog) -> Value {
    json_of(&query.page(catalog))
}

fn ids(answer: &Value) -> Vec<&str> {
    let flows = answer["flows"].as_array().unwrap();
    flows.iter().map(|flow| flow["id"].as_str().unwrap()).collect()
}

#[track_caller]
fn finds(asked: &Value, expected: &[&str]) {
    let answer = shown(&query(asked).unwrap(), &usual());
    assert_eq!(ids(&answer), expected, "{asked}");
    assert_eq!(answer["count"], expected.len());
}

#[test]
fn flows_are_found_by_id_prefix_labels_and_statuses_active_ones_first() {
    finds(&json!({}), &["a-1", "b-2", "a-3", "a-5", "b-4"]);
    finds(&json!({"sort": "recent_desc"}), &["b-2", "a-1", "b-4", "a-3", "a-5"]);
    finds(&json!({"id_prefix": "a-"}), &["a-1", "a-3", "a-5"]);
    finds(&json!({"id_prefix": "c"}), &[]);
    finds(&json!({"labels": {"team": "b"}}), &["b-2", "b-4"]);
    finds(&json!({"labels": {"team": "b", "x": "y"}}), &[]);
    finds(&json!({"statuses": ["failed", "active"]}), &["a-1", "b-2", "b-4"]);
    finds(
        &json!({"id_prefix": null, "labels": null, "statuses": null, "cursor": "", "sort": ""}),
        &["a-1", "b-2", "a-3", "a-5", "b-4"],
    );
    let answer = shown(&Query::all(), &usual());
    let first = &answer["flows"][0];
    assert_eq!(first["status"], "active");
    assert_eq!(first["digest"]["status"], "active");
    assert_eq!(first["labels"], json!({"team": "b"}));
}

#[test]
fn pages_have_no_gaps_even_when_flows_start_or_end_in_between() {
    for sort in ["recent_asc", "recent_desc"] {
        let all = shown(&query(&json!({ "sort": sort })).unwrap(), &usual());
        let mut seen = Vec::new();
        let mut cursor = json!(null);
        loop {
            let asked = json!({"sort": sort, "limit": 2, "cursor": cursor});
            let answer = shown(&query(&asked).unwrap(), &usual());
            seen.extend(ids(&answer).into_iter().map(str::to_owned));
            assert_eq!(answer["total"], 5);
            cursor = answer["next_cursor"].clone();
            if cursor.is_null() {
                assert!(answer.get("has_more").is_none());
                break;
            }
            assert_eq!(answer["has_more"], true);
        }
        assert_eq!(seen, ids(&all));
    }
    // The last one that was shown is gone when the next page is asked for.
    let answer = shown(&query(&json!({"limit": 1})).unwrap(), &usual());
    let cursor = answer["next_cursor"].clone();
    let mut fewer = usual();
    let _ = fewer.flows.remove("a-1");
    let answer = query(&json!({"limit": 1, "cursor": cursor})).unwrap();
    assert_eq!(ids(&shown(&answer, &fewer)), ["b-2"]);
}

#[test]
fn an_invalid_query_is_refused_with_the_name_of_the_field() {
    for (asked, field) in [
        (json!({"id_prefix": 1}), "id_prefix"),
        (json!({"id_prefix": "a b"}), "id_prefix"),
        (json!({"labels": {"a": 1}}), "labels"),
        (json!({"labels": {"": "x"}}), "labels"),
        (json!({"labels": ["x"]}), "labels"),
        (json!({"statuses": "active"}), "statuses"),
        (json!({"statuses": ["pending"]}), "statuses"),
        (json!({"limit": -1}), "limit"),
        (json!({"limit": 1001}), "limit"),
        (json!({"limit": "5"}), "limit"),
        (json!({"limit": 1.5}), "limit"),
        (json!({"sort": "oldest"}), "sort"),
        (json!({"cursor": "x"}), "cursor"),
        (json!({"cursor": "2-3-x"}), "cursor"),
        (json!({"cursor": 3}), "cursor"),
    ] {
        let error = query(&asked).unwrap_err();
        assert!(error.contains(&format!("`{field}`")), "{asked}: {error}");
    }
    assert!(query(&json!({"limit": 1000, "more": "than is known"})).is_ok());
}
