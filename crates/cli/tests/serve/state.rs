//! The state of a flow, field by field, while it runs.

use serde_json::{Value, json};

use crate::history::{all, assert_contains, assert_fields, one};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, follower_step, only_item, provider, retries, step};

fn keys(value: &Value) -> Vec<&String> {
    value.as_object().unwrap().keys().collect()
}

#[test]
fn a_flow_with_a_retry_is_shown_field_by_field_from_its_beginning_to_its_end() {
    let sandbox = Sandbox::new();
    let ok = Reply::outputs(&json!({"x": 5})).gated();
    let handlers = ScriptedServer::start()
        .on("/a", &[Reply::status(503), ok])
        .on("/b", &[Reply::outputs(&json!({"y": 6}))]);
    let served = RunningServer::on(&sandbox);
    served.register(&provider(
        &handlers,
        "a",
        &json!({"max_retries": 3, "backoff": 1200, "backoff_type": "fixed"}),
    ));
    served.register(&follower_step(&handlers, "b", &json!({})));
    let wanted = json!({"id": "f", "goals": ["b"], "init": {"region": "US"}, "labels": {"k": "v"}});
    assert_eq!(served.post("/engine/flow", &wanted).is(201)["flow_id"], "f");

    // The first attempt has failed, and the flow waits for the second.
    let waiting = served.wait_for_flow("f", "a retry", |flow| {
        only_item(flow, "a").is_some_and(|item| item["retry_count"] == 1)
    });
    let events = sandbox.events_of("f");
    let due = one(&events, "retry_scheduled")["due_at"].clone();
    let token = handlers.requests("/a")[0].token().to_owned();
    let execution = &waiting["executions"]["a"];
    assert_eq!(keys(&execution["work_items"]), [&token]);
    let item = &execution["work_items"][&token];
    assert_eq!((&item["status"], &item["next_retry_at"]), (&json!("pending"), &due));
    assert_fields!(item, {"inputs": {}, "completed_at": null});
    assert!(item["error"].as_str().unwrap().contains("503"), "{item}");
    assert_fields!(execution, {"status": "active", "completed_at": null});
    assert_fields!(waiting["executions"]["b"], {"status": "pending", "started_at": null, "work_items": {}});
    assert_fields!(waiting, {"status": "active", "completed_at": null});
    assert!(waiting.get("error").is_none(), "{waiting}");
    let engine = served.get("/engine").is(200);
    assert_eq!(keys(&engine["active"]), ["f"]);

    // The second attempt is running.
    let active = served.wait_for_item("f", "a", |item| item["status"] == "active");
    assert_fields!(active, {"retry_count": 1, "next_retry_at": null});
    handlers.open("/a");
    let flow = served.wait_for_end("f", "completed");
    let events = sandbox.lawful_events_of("f");
    assert_eq!(flow["id"], "f");
    assert_eq!(flow["created_at"], one(&events, "job_submitted")["at"]);
    assert_eq!(flow["completed_at"], one(&events, "job_completed")["at"]);
    assert_eq!(flow["last_updated"], flow["completed_at"]);
    assert_fields!(flow, {"labels": {"k": "v"}, "metadata": {}});
    assert_eq!(flow["plan"]["goals"], json!(["b"]));
    assert_eq!(keys(&flow["plan"]["steps"]), ["a", "b"]);
    let attributes = flow["attributes"].as_object().unwrap();
    let attributes_with_steps: Vec<_> =
        attributes.iter().map(|(name, it)| (name.as_str(), &it["value"], &it["step"])).collect();
    let expected =
        [("region", json!("US"), json!(null)), ("x", json!(5), json!("a")), ("y", json!(6), json!("b"))];
    let expected: Vec<_> = expected.iter().map(|(name, value, step)| (*name, value, step)).collect();
    assert_eq!(attributes_with_steps, expected);
    let [a, b] = ["a", "b"].map(|step| &flow["executions"][step]);
    assert_fields!(a, {"status": "completed", "outputs": {"x": 5}, "inputs": {}});
    assert_fields!(b, {"status": "completed", "outputs": {"y": 6}, "inputs": {"x": 5}});
    assert!(a["duration"].as_u64().unwrap() >= 1200, "{a}");
    let item = &a["work_items"][&token];
    assert_fields!(item, {
        "status": "succeeded", "outputs": {"x": 5}, "retry_count": 1, "next_retry_at": null,
    });
    let ended = all(&events, "attempt_succeeded")[0];
    assert_eq!(item["completed_at"], ended["at"]);
    assert_eq!(handlers.all().len(), 3);
}

#[test]
fn for_each_returns_a_list_in_the_order_of_its_items() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start()
        .by("/price", |request| {
            let n = request.argument("item").as_u64().unwrap();
            Reply::outputs(&json!({"price": n * 10}))
        })
        .by("/pair", |request| {
            let body = request.json();
            let both = format!("{}{}", body["arguments"]["size"], body["arguments"]["colour"]);
            Reply::outputs(&json!({"both": both.replace('"', "")}))
        });
    let served = RunningServer::on(&sandbox);
    let each = json!({"item": {"role": "required", "for_each": true}, "price": {"role": "output"}});
    served.register(&step(&handlers, "price", &each, &json!({"work_config": {"parallelism": 2}})));
    let two = json!({
        "colour": {"role": "required", "for_each": true}, "size": {"role": "required", "for_each": true},
        "both": {"role": "output"},
    });
    served.register(&step(&handlers, "pair", &two, &json!({})));
    served.start_flow("prices", "price", &json!({"item": [3, 1, 2]}));
    served.start_flow("single", "price", &json!({"item": [3]}));
    served.start_flow("none", "price", &json!({"item": []}));
    served.start_flow("pairs", "pair", &json!({"colour": ["red", "blue"], "size": [1, 2, 3]}));
    served.start_flow("wrong", "price", &json!({"item": 7}));

    let flow = served.wait_for_end("prices", "completed");
    let prices = json!([{"item": 3, "price": 30}, {"item": 1, "price": 10}, {"item": 2, "price": 20}]);
    assert_eq!(flow["attributes"]["price"]["value"], prices);
    assert_fields!(flow["executions"]["price"], {
        "outputs": {"price": prices}, "inputs": {"item": [3, 1, 2]},
    });
    let items = flow["executions"]["price"]["work_items"].as_object().unwrap();
    let mut inputs: Vec<String> = items.values().map(|item| item["inputs"].to_string()).collect();
    inputs.sort();
    assert_eq!(inputs, [r#"{"item":1}"#, r#"{"item":2}"#, r#"{"item":3}"#]);
    let flow = served.wait_for_end("single", "completed");
    assert_eq!(flow["attributes"]["price"]["value"], 30);
    let flow = served.wait_for_end("none", "completed");
    assert_eq!(flow["attributes"]["price"]["value"], json!([]));
    let flow = served.wait_for_end("wrong", "failed");
    assert_eq!(flow["executions"]["price"]["status"], "failed");

    let flow = served.wait_for_end("pairs", "completed");
    let pairs = flow["attributes"]["both"]["value"].as_array().unwrap().clone();
    let both: Vec<&Value> = pairs.iter().map(|pair| &pair["both"]).collect();
    assert_eq!(both, ["1red", "2red", "3red", "1blue", "2blue", "3blue"]);
    assert_eq!(pairs[0], json!({"both": "1red", "colour": "red", "size": 1}));
}

#[test]
fn a_failed_flow_says_which_step_failed_and_why() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start()
        .on("/bad", &[Reply::refusal("out of stock")])
        .on("/good", &[Reply::outputs(&json!({"z": 1}))]);
    let served = RunningServer::on(&sandbox);
    served.register(&provider(&handlers, "bad", &retries(3)));
    served.register(&follower_step(&handlers, "after", &json!({})));
    let never = json!({"predicate": {"language": "cel", "script": "false"}});
    served.register(&step(&handlers, "never", &json!({"w": {"role": "output"}}), &never));
    served.register(&step(&handlers, "good", &json!({"z": {"role": "output"}}), &json!({})));
    served.start_flow_with("f", &json!({"goals": ["after", "good"]}));
    let flow = served.wait_for_end("f", "failed");
    let error = flow["error"].as_str().unwrap();
    assert!(error.contains("bad") && error.contains("out of stock"), "{error}");
    let bad = &flow["executions"]["bad"];
    assert_eq!(bad["status"], "failed");
    assert_contains(&bad["error"], "out of stock");
    let item = only_item(&flow, "bad").unwrap();
    let token = handlers.requests("/bad")[0].token().to_owned();
    assert_eq!(keys(&bad["work_items"]), [&token]);
    assert_eq!(item["status"], "failed");
    assert_contains(&item["error"], "out of stock");
    assert_eq!(item["retry_count"], 0);
    let after = &flow["executions"]["after"];
    assert_eq!(after["status"], "failed");
    assert!(after["error"].as_str().unwrap().contains("`x`"), "{after}");
    assert_eq!(handlers.requests("/after").len(), 0);

    let flow = served.run_flow("skipping", "never", &json!({}), "completed");
    assert_eq!(flow["executions"]["never"]["status"], "skipped");
    assert_eq!(handlers.requests("/never").len(), 0);
}
