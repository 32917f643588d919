//! What is shown of a flow, field by field, while it runs.

use serde_json::{Value, json};

use crate::history::{all, is_lawful, one};
use crate::http_server::{Reply, StepServer};
use crate::served::{Served, giver, only, says, step};
use crate::world::World;

fn keys(value: &Value) -> Vec<&String> {
    value.as_object().unwrap().keys().collect()
}

#[test]
fn a_flow_with_a_retry_is_shown_field_by_field_from_its_beginning_to_its_end() {
    let world = World::new();
    let ok = Reply::outputs(&json!({"x": 5})).gated();
    let handlers =
        StepServer::start().on("/a", &[Reply::status(503), ok]).on("/b", &[Reply::outputs(&json!({"y": 6}))]);
    let served = Served::on(&world);
    served.register(&giver(
        &handlers,
        "a",
        &json!({"max_retries": 3, "backoff": 1200, "backoff_type": "fixed"}),
    ));
    let attributes = json!({"x": {"role": "required"}, "y": {"role": "output"}});
    served.register(&step(&handlers, "b", &attributes, &json!({})));
    let wanted = json!({"id": "f", "goals": ["b"], "init": {"region": "US"}, "labels": {"k": "v"}});
    assert_eq!(served.post("/engine/flow", &wanted).is(201)["flow_id"], "f");

    // The first attempt has failed, and the second is waited for.
    let waiting =
        served.until("f", "a retry", |flow| only(flow, "a").is_some_and(|item| item["retry_count"] == 1));
    let events = world.events_of("f");
    let due = one(&events, "retry_scheduled")["due_at"].clone();
    let token = handlers.requests("/a")[0].token().to_owned();
    let execution = &waiting["executions"]["a"];
    assert_eq!(keys(&execution["work_items"]), [&token]);
    let item = &execution["work_items"][&token];
    assert_eq!((&item["status"], &item["next_retry_at"]), (&json!("pending"), &due));
    assert_eq!(item["inputs"], json!({}));
    assert_eq!(item["completed_at"], json!(null));
    assert!(item["error"].as_str().unwrap().contains("503"), "{item}");
    assert_eq!((&execution["status"], &execution["completed_at"]), (&json!("active"), &json!(null)));
    assert_eq!(waiting["executions"]["b"]["status"], "pending");
    assert_eq!(waiting["executions"]["b"]["started_at"], json!(null));
    assert_eq!(waiting["executions"]["b"]["work_items"], json!({}));
    assert_eq!((&waiting["status"], &waiting["completed_at"]), (&json!("active"), &json!(null)));
    assert!(waiting.get("error").is_none(), "{waiting}");
    let engine = served.get("/engine").is(200);
    assert_eq!(keys(&engine["active"]), ["f"]);

    // The second attempt is under way.
    let active = served.item("f", "a", |item| item["status"] == "active");
    assert_eq!((&active["retry_count"], &active["next_retry_at"]), (&json!(1), &json!(null)));
    handlers.open("/a");
    let flow = served.ends("f", "completed");
    let events = world.events_of("f");
    is_lawful(&events);
    assert_eq!(flow["id"], "f");
    assert_eq!(flow["created_at"], one(&events, "job_submitted")["at"]);
    assert_eq!(flow["completed_at"], one(&events, "job_completed")["at"]);
    assert_eq!(flow["last_updated"], flow["completed_at"]);
    assert_eq!(flow["labels"], json!({"k": "v"}));
    assert_eq!(flow["metadata"], json!({}));
    assert_eq!(flow["plan"]["goals"], json!(["b"]));
    assert_eq!(keys(&flow["plan"]["steps"]), ["a", "b"]);
    let attributes = flow["attributes"].as_object().unwrap();
    let given: Vec<_> =
        attributes.iter().map(|(name, it)| (name.as_str(), &it["value"], &it["step"])).collect();
    let expected =
        [("region", json!("US"), json!(null)), ("x", json!(5), json!("a")), ("y", json!(6), json!("b"))];
    let expected: Vec<_> = expected.iter().map(|(name, value, step)| (*name, value, step)).collect();
    assert_eq!(given, expected);
    let [a, b] = ["a", "b"].map(|step| &flow["executions"][step]);
    assert_eq!(
        (&a["status"], &a["outputs"], &a["inputs"]),
        (&json!("completed"), &json!({"x": 5}), &json!({}))
    );
    assert_eq!(
        (&b["status"], &b["outputs"], &b["inputs"]),
        (&json!("completed"), &json!({"y": 6}), &json!({"x": 5}))
    );
    assert!(a["duration"].as_u64().unwrap() >= 1200, "{a}");
    let item = &a["work_items"][&token];
    assert_eq!((&item["status"], &item["outputs"]), (&json!("succeeded"), &json!({"x": 5})));
    assert_eq!((&item["retry_count"], &item["next_retry_at"]), (&json!(1), &json!(null)));
    let ended = all(&events, "attempt_succeeded")[0];
    assert_eq!(item["completed_at"], ended["at"]);
    assert_eq!(handlers.all().len(), 3);
}

#[test]
fn what_is_for_each_gives_a_list_in_the_order_of_its_items() {
    let world = World::new();
    let handlers = StepServer::start()
        .by("/price", |request| {
            let n = request.json()["arguments"]["item"].as_u64().unwrap();
            Reply::outputs(&json!({"price": n * 10}))
        })
        .by("/pair", |request| {
            let body = request.json();
            let both = format!("{}{}", body["arguments"]["size"], body["arguments"]["colour"]);
            Reply::outputs(&json!({"both": both.replace('"', "")}))
        });
    let served = Served::on(&world);
    let each = json!({"item": {"role": "required", "for_each": true}, "price": {"role": "output"}});
    served.register(&step(&handlers, "price", &each, &json!({"work_config": {"parallelism": 2}})));
    let two = json!({
        "colour": {"role": "required", "for_each": true}, "size": {"role": "required", "for_each": true},
        "both": {"role": "output"},
    });
    served.register(&step(&handlers, "pair", &two, &json!({})));
    served.begin("prices", "price", &json!({"item": [3, 1, 2]}));
    served.begin("single", "price", &json!({"item": [3]}));
    served.begin("none", "price", &json!({"item": []}));
    served.begin("pairs", "pair", &json!({"colour": ["red", "blue"], "size": [1, 2, 3]}));
    served.begin("wrong", "price", &json!({"item": 7}));

    let flow = served.ends("prices", "completed");
    let prices = json!([{"item": 3, "price": 30}, {"item": 1, "price": 10}, {"item": 2, "price": 20}]);
    assert_eq!(flow["attributes"]["price"]["value"], prices);
    assert_eq!(flow["executions"]["price"]["outputs"], json!({"price": prices}));
    assert_eq!(flow["executions"]["price"]["inputs"], json!({"item": [3, 1, 2]}));
    let items = flow["executions"]["price"]["work_items"].as_object().unwrap();
    let mut inputs: Vec<String> = items.values().map(|item| item["inputs"].to_string()).collect();
    inputs.sort();
    assert_eq!(inputs, [r#"{"item":1}"#, r#"{"item":2}"#, r#"{"item":3}"#]);
    let flow = served.ends("single", "completed");
    assert_eq!(flow["attributes"]["price"]["value"], 30);
    let flow = served.ends("none", "completed");
    assert_eq!(flow["attributes"]["price"]["value"], json!([]));
    let flow = served.ends("wrong", "failed");
    assert_eq!(flow["executions"]["price"]["status"], "failed");

    let flow = served.ends("pairs", "completed");
    let pairs = flow["attributes"]["both"]["value"].as_array().unwrap().clone();
    let both: Vec<&Value> = pairs.iter().map(|pair| &pair["both"]).collect();
    assert_eq!(both, ["1red", "2red", "3red", "1blue", "2blue", "3blue"]);
    assert_eq!(pairs[0], json!({"both": "1red", "colour": "red", "size": 1}));
}

#[test]
fn a_failed_flow_says_which_step_failed_and_why() {
    let world = World::new();
    let handlers = StepServer::start()
        .on("/bad", &[Reply::refusal("out of stock")])
        .on("/good", &[Reply::outputs(&json!({"z": 1}))]);
    let served = Served::on(&world);
    served.register(&giver(&handlers, "bad", &json!({"max_retries": 3, "backoff": 1})));
    let attributes = json!({"x": {"role": "required"}, "y": {"role": "output"}});
    served.register(&step(&handlers, "after", &attributes, &json!({})));
    let never = json!({"predicate": {"language": "cel", "script": "false"}});
    served.register(&step(&handlers, "never", &json!({"w": {"role": "output"}}), &never));
    served.register(&step(&handlers, "good", &json!({"z": {"role": "output"}}), &json!({})));
    let wanted = json!({"id": "f", "goals": ["after", "good"]});
    served.post("/engine/flow", &wanted).is(201);
    let flow = served.ends("f", "failed");
    let error = flow["error"].as_str().unwrap();
    assert!(error.contains("bad") && error.contains("out of stock"), "{error}");
    let bad = &flow["executions"]["bad"];
    assert_eq!(bad["status"], "failed");
    says(&bad["error"], "out of stock");
    let item = only(&flow, "bad").unwrap();
    let token = handlers.requests("/bad")[0].token().to_owned();
    assert_eq!(keys(&bad["work_items"]), [&token]);
    assert_eq!(item["status"], "failed");
    says(&item["error"], "out of stock");
    assert_eq!(item["retry_count"], 0);
    let after = &flow["executions"]["after"];
    assert_eq!(after["status"], "failed");
    assert!(after["error"].as_str().unwrap().contains("`x`"), "{after}");
    assert_eq!(handlers.requests("/after").len(), 0);

    served.begin("skipping", "never", &json!({}));
    let flow = served.ends("skipping", "completed");
    assert_eq!(flow["executions"]["never"]["status"], "skipped");
    assert_eq!(handlers.requests("/never").len(), 0);
}
