//! Lists of flows, page by page.

use std::collections::BTreeSet;
use std::thread;

use serde_json::{Value, json};

use crate::client::Connection;
use crate::history::text;
use crate::http_server::{Reply, StepServer};
use crate::served::{Served, giver, step};
use crate::world::World;

fn ids(found: &Value) -> Vec<String> {
    let flows = found["flows"].as_array().unwrap().iter();
    flows.map(|flow| text(&flow["id"])).collect()
}

/// All pages of a query.
fn pages(served: &Served, query: &Value) -> Vec<Value> {
    let mut query = query.clone();
    let mut pages = Vec::new();
    loop {
        let page = served.post("/engine/flow/query", &query).is(200);
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

fn all(served: &Served, query: &Value) -> Vec<String> {
    pages(served, query).iter().flat_map(ids).collect()
}

#[test]
fn two_hundred_and_fifty_flows_are_found_page_by_page_without_loss_or_double() {
    let world = World::new();
    let handlers = StepServer::start()
        .on("/a", &[Reply::outputs(&json!({"x": 1}))])
        .on("/held", &[Reply::outputs(&json!({"x": 1})).gated()])
        .on("/bad", &[Reply::status(400)]);
    let served = Served::on(&world);
    for id in ["a", "held", "bad"] {
        served.register(&giver(&handlers, id, &json!({})));
    }
    let address = served.address();
    thread::scope(|scope| {
        for part in 0..5 {
            scope.spawn(move || {
                let mut connection = Connection::to(address);
                for n in 0..50 {
                    let goal = match n % 10 {
                        0 => "held",
                        1 => "bad",
                        _ => "a",
                    };
                    let labels = json!({"part": part.to_string(), "n": (n % 10).to_string()});
                    let wanted = json!({"id": format!("f{part}-{n:02}"), "goals": [goal], "labels": labels});
                    connection.ask("POST", "/engine/flow", &wanted.to_string()).unwrap().is(201);
                }
            });
        }
    });
    let query = |query: Value| served.post("/engine/flow/query", &query).is(200);
    World::eventually("225 flows that have ended", || {
        let ended = query(json!({"statuses": ["completed", "failed"], "limit": 1}));
        (ended["total"] == 225).then_some(())
    });
    let every: BTreeSet<String> =
        (0..5).flat_map(|part| (0..50).map(move |n| format!("f{part}-{n:02}"))).collect();
    for sort in ["recent_desc", "recent_asc"] {
        let found = pages(&served, &json!({"limit": 7, "sort": sort}));
        assert_eq!(found.len(), 36);
        let ids: Vec<String> = found.iter().flat_map(ids).collect();
        assert_eq!(ids.len(), 250);
        assert_eq!(ids.iter().cloned().collect::<BTreeSet<_>>(), every);
        // By when they were begun, or have ended.
        let flows = found.iter().flat_map(|page| page["flows"].as_array().unwrap());
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
    assert_eq!(served.get("/engine/flow").is(200)["count"], 250);
    assert_eq!(many(json!({})), 250);

    // Flows that end between two pages shift nothing that has not been shown.
    let page = query(json!({"limit": 200, "statuses": ["completed", "failed"], "sort": "recent_asc"}));
    handlers.open("/held");
    let shown = ids(&page);
    World::eventually("all flows have ended", || {
        (query(json!({"statuses": ["active"]}))["count"] == 0).then_some(())
    });
    let rest = json!({"limit": 200, "statuses": ["completed", "failed"], "sort": "recent_asc", "cursor": page["next_cursor"]});
    let rest = all(&served, &rest);
    let both: BTreeSet<String> = shown.iter().chain(&rest).cloned().collect();
    assert_eq!((shown.len() + rest.len(), both.len()), (250, 250));
}

#[test]
fn flows_of_steps_are_found_through_the_flow_they_belong_to() {
    let world = World::new();
    let handlers = StepServer::start().on("/inner", &[Reply::outputs(&json!({"y": 2}))]);
    let served = Served::on(&world);
    let inner = json!({"x": {"role": "required"}, "y": {"role": "output"}});
    served.register(&step(&handlers, "inner", &inner, &json!({})));
    let outer = json!({
        "id": "outer", "name": "outer", "type": "flow", "flow": {"goals": ["inner"]}, "attributes": inner,
    });
    served.register(&outer);
    served.begin("f", "outer", &json!({"x": 1}));
    let flow = served.ends("f", "completed");
    assert_eq!(flow["attributes"]["y"]["value"], 2);
    assert_eq!(all(&served, &json!({})), ["f"]);
    served.deactivated("f");
    let engine = served.get("/engine").is(200);
    let gone = engine["deactivated"].as_array().unwrap().iter();
    let inner: Vec<&Value> = gone.filter(|flow| flow["parent_flow_id"] == "f").collect();
    assert_eq!(inner.len(), 1, "{engine:#}");
    let metadata = &handlers.all()[0].json()["metadata"];
    assert_eq!((&metadata["parent_flow_id"], &metadata["parent_step_id"]), (&json!("f"), &json!("outer")));
    let token = flow["executions"]["outer"]["work_items"].as_object().unwrap();
    assert_eq!(token.keys().next(), Some(&text(&metadata["parent_work_item_token"])));
    let id = text(&inner[0]["flow_id"]);
    let inner = served.flow(&id.replace('%', "%25").replace('/', "%2F"));
    assert_eq!((&inner["status"], &inner["metadata"]["parent_flow_id"]), (&json!("completed"), &json!("f")));
}
