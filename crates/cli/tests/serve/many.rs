//! A thousand flows at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use crate::client::Connection;
use crate::history::text;
use crate::http_server::{Reply, StepServer};
use crate::served::{Served, giver, only, step};
use crate::world::World;

#[test]
fn a_thousand_flows_begun_at_once_all_complete_and_each_step_is_called_once() {
    const FLOWS: usize = 1000;
    let world = World::new();
    let handlers = StepServer::start()
        .by("/a", |request| {
            let n = &request.json()["arguments"]["n"];
            Reply::outputs(&json!({"x": n}))
        })
        .by("/b", |request| {
            let x = request.json()["arguments"]["x"].as_u64().unwrap();
            Reply::outputs(&json!({"y": x * 2}))
        });
    let served = Served::on(&world);
    let mut a = giver(&handlers, "a", &json!({"max_retries": 1, "backoff": 1}));
    a["attributes"]["n"] = json!({"role": "required"});
    served.register(&a);
    let attributes = json!({"x": {"role": "required"}, "y": {"role": "output"}});
    served.register(&step(&handlers, "b", &attributes, &json!({})));
    let address = served.address();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let mut connection = Connection::to(address);
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= FLOWS {
                        return;
                    }
                    let wanted = json!({"id": format!("f{n}"), "goals": ["b"], "init": {"n": n}});
                    let answer = connection.ask("POST", "/engine/flow", &wanted.to_string());
                    assert_eq!(answer.unwrap().is(201)["flow_id"], format!("f{n}"));
                }
            });
        }
    });
    World::eventually("a thousand flows that have ended", || {
        let query = json!({"statuses": ["completed"], "limit": 1});
        let found = served.post("/engine/flow/query", &query).is(200);
        (found["total"] == FLOWS).then_some(())
    });
    let mut calls: BTreeMap<(String, String), usize> = BTreeMap::new();
    for call in handlers.all() {
        let metadata = &call.json()["metadata"];
        let of = (text(&metadata["flow_id"]), text(&metadata["step_id"]));
        *calls.entry(of).or_default() += 1;
    }
    assert_eq!(calls.len(), 2 * FLOWS);
    assert!(calls.values().all(|count| *count == 1));
    for n in (0..FLOWS).step_by(37) {
        let flow = served.flow(&format!("f{n}"));
        assert_eq!(flow["attributes"]["y"]["value"], 2 * n);
        assert_eq!(only(&flow, "a").unwrap()["status"], "succeeded");
    }
    let engine = served.get("/engine").is(200);
    assert_eq!(engine["active"], json!({}));
    assert_eq!(engine["deactivated"].as_array().unwrap().len(), FLOWS);
}
