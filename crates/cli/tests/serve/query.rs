//! Lists of flows, page by page.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::history::{assert_fields, text};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, follower_step, provider, start_flows};

fn ids(page: &Value) -> Vec<String> {
    let flows = page["flows"].as_array().unwrap().iter();
    flows.map(|flow| text(&flow["id"])).collect()
}

/// All pages of a query.
fn pages(served: &RunningServer, query: &Value) -> Vec<Value> {
    let mut query = query.clone();
    let mut pages = Vec::new();
    loop {
        let page = served.query(&query);
        let next = page.get("next_cursor").cloned();
        assert_eq!(page["has_more"] == true, next.is_some(), "{page}");
        assert_eq!(page["count"], ids(&page).len());
        pages.push(page);
        match next {
            Some(next) => query["cursor"] = next,
            None => return pages,
        }
    }
}

fn all(served: &RunningServer, query: &Value) -> Vec<String> {
    pages(served, query).iter().flat_map(ids).collect()
}

#[test]
fn two_hundred_and_fifty_flows_are_found_page_by_page_without_loss_or_double() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start()
        .on("/a", &[Reply::x(1)])
        .on("/held", &[Reply::x(1).gated()])
        .on("/bad", &[Reply::status(400)]);
    let served = RunningServer::on(&sandbox);
    for id in ["a", "held", "bad"] {
        served.register(&provider(&handlers, id, &json!({})));
    }
    let id = |n: usize| format!("f{}-{:02}", n / 50, n % 50);
    start_flows(&[served.address()], 250, |n| {
        let goal = match n % 10 {
            0 => "held",
            1 => "bad",
            _ => "a",
        };
        let labels = json!({"part": (n / 50).to_string(), "n": (n % 10).to_string()});
        json!({"id": id(n), "goals": [goal], "labels": labels})
    });
    let query = |query: Value| served.query(&query);
    Sandbox::wait_until("225 flows that have ended", || {
        let ended = query(json!({"statuses": ["completed", "failed"], "limit": 1}));
        ended["total"] == 225
    });
    let every: BTreeSet<String> = (0..250).map(id).collect();
    for sort in ["recent_desc", "recent_asc"] {
        let sorted_pages = pages(&served, &json!({"limit": 7, "sort": sort}));
        assert_eq!(sorted_pages.len(), 36);
        let ids: Vec<String> = sorted_pages.iter().flat_map(ids).collect();
        assert_eq!(ids.len(), 250);
        assert_eq!(ids.iter().cloned().collect::<BTreeSet<_>>(), every);
        // Flows are sorted by creation, or by completion.
        let flows = sorted_pages.iter().flat_map(|page| page["flows"].as_array().unwrap());
        let active = flows.clone().filter(|flow| flow["status"] == "active");
        let active: Vec<String> = active.map(|flow| text(&flow["created_at"])).collect();
        let ended = flows.filter(|flow| flow["status"] != "active");
        let ended: Vec<String> = ended.map(|flow| text(&flow["completed_at"])).collect();
        for mut times in [active, ended] {
            if sort == "recent_desc" {
                times.reverse();
            }
            assert!(times.is_sorted(), "{sort}: {times:?}");
        }
    }
    let many = |asked: Value| all(&served, &asked).len();
    assert_eq!(many(json!({"id_prefix": "f3-", "limit": 9})), 50);
    assert_eq!(many(json!({"id_prefix": "f3-4"})), 10);
    assert_eq!(many(json!({"id_prefix": "g"})), 0);
    assert_eq!(many(json!({"labels": {"part": "2"}, "limit": 49})), 50);
    assert_eq!(all(&served, &json!({"labels": {"part": "2", "n": "7"}, "id_prefix": "f2-3"})), ["f2-37"]);
    assert_eq!(many(json!({"labels": {"part": "9"}})), 0);
    assert_eq!(many(json!({"statuses": ["active"], "limit": 3})), 25);
    assert_eq!(many(json!({"statuses": ["failed"]})), 25);
    assert_eq!(many(json!({"statuses": ["failed", "active"], "limit": 20})), 50);
    assert_eq!(served.list().len(), 250);
    assert_eq!(many(json!({})), 250);

    // Flows that end between two pages move no other flow to another page.
    let page = query(json!({"limit": 200, "statuses": ["completed", "failed"], "sort": "recent_asc"}));
    handlers.open("/held");
    let first = ids(&page);
    Sandbox::wait_until("all flows have ended", || query(json!({"statuses": ["active"]}))["count"] == 0);
    let rest = json!({"limit": 200, "statuses": ["completed", "failed"], "sort": "recent_asc", "cursor": page["next_cursor"]});
    let rest = all(&served, &rest);
    let all_ids: BTreeSet<String> = first.iter().chain(&rest).cloned().collect();
    assert_eq!((first.len() + rest.len(), all_ids.len()), (250, 250));
}

#[test]
fn flows_of_steps_are_found_through_the_flow_they_belong_to() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/inner", &[Reply::outputs(&json!({"y": 2}))]);
    let served = RunningServer::on(&sandbox);
    served.register(&follower_step(&handlers, "inner", &json!({})));
    let outer = json!({
        "id": "outer", "name": "outer", "type": "flow", "flow": {"goals": ["inner"]},
        "attributes": {"x": {"role": "required"}, "y": {"role": "output"}},
    });
    served.register(&outer);
    let flow = served.run_flow("f", "outer", &json!({"x": 1}), "completed");
    assert_eq!(flow["attributes"]["y"]["value"], 2);
    assert_eq!(all(&served, &json!({})), ["f"]);
    served.wait_for_deactivation("f");
    let engine = served.get("/engine").is(200);
    let gone = engine["deactivated"].as_array().unwrap().iter();
    let inner: Vec<&Value> = gone.filter(|flow| flow["parent_flow_id"] == "f").collect();
    assert_eq!(inner.len(), 1, "{engine:#}");
    let metadata = &handlers.all()[0].json()["metadata"];
    assert_fields!(metadata, {"parent_flow_id": "f", "parent_step_id": "outer"});
    let token = flow["executions"]["outer"]["work_items"].as_object().unwrap();
    assert_eq!(token.keys().next(), Some(&text(&metadata["parent_work_item_token"])));
    let id = text(&inner[0]["flow_id"]);
    let inner = served.flow(&id.replace('%', "%25").replace('/', "%2F"));
    assert_eq!((&inner["status"], &inner["metadata"]["parent_flow_id"]), (&json!("completed"), &json!("f")));
}
