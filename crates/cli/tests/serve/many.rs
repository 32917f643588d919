//! A thousand flows at once.

use std::collections::BTreeMap;

use serde_json::json;

use crate::history::text;
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, follower_step, only_item, provider, retries, start_flows};

#[test]
fn a_thousand_flows_begun_at_once_all_complete_and_each_step_is_called_once() {
    const FLOWS: usize = 1000;
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start()
        .by("/a", |request| {
            let n = request.argument("n");
            Reply::outputs(&json!({"x": n}))
        })
        .by("/b", |request| {
            let x = request.argument("x").as_u64().unwrap();
            Reply::outputs(&json!({"y": x * 2}))
        });
    let served = RunningServer::on(&sandbox);
    let mut a = provider(&handlers, "a", &retries(1));
    a["attributes"]["n"] = json!({"role": "required"});
    served.register(&a);
    served.register(&follower_step(&handlers, "b", &json!({})));
    start_flows(
        &[served.address()],
        FLOWS,
        |n| json!({"id": format!("f{n}"), "goals": ["b"], "init": {"n": n}}),
    );
    served.wait_for_completed(FLOWS);
    let mut calls: BTreeMap<(String, String), usize> = BTreeMap::new();
    for call in handlers.all() {
        let metadata = &call.json()["metadata"];
        let subject = (text(&metadata["flow_id"]), text(&metadata["step_id"]));
        *calls.entry(subject).or_default() += 1;
    }
    assert_eq!(calls.len(), 2 * FLOWS);
    assert!(calls.values().all(|count| *count == 1));
    for n in (0..FLOWS).step_by(37) {
        let flow = served.flow(&format!("f{n}"));
        assert_eq!(flow["attributes"]["y"]["value"], 2 * n);
        assert_eq!(only_item(&flow, "a").unwrap()["status"], "succeeded");
    }
    let engine = served.get("/engine").is(200);
    assert_eq!(engine["active"], json!({}));
    assert_eq!(engine["deactivated"].as_array().unwrap().len(), FLOWS);
}
