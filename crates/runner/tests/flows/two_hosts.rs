//! Two hosts on one store: every flow is run by one of them, and results reach it.

use std::collections::BTreeMap;
use std::thread;

use serde_json::{Value, json};
use undaunted_engine::job::JobStage;
use undaunted_runner::drive::DeliveryOutcome;

use crate::fixture::{FlowFixture, async_step, step, wanted};
use crate::http_server::{Reply, ScriptedServer};

/// How often each flow was called.
fn calls(server: &ScriptedServer) -> BTreeMap<String, usize> {
    let mut calls = BTreeMap::new();
    for sent in server.all() {
        let flow = sent.json()["metadata"]["flow_id"].as_str().unwrap().to_owned();
        *calls.entry(flow).or_default() += 1;
    }
    calls
}

#[test]
fn flows_begun_on_two_hosts_are_each_run_once_by_one_host() {
    const FLOWS: usize = 20;
    let server = ScriptedServer::start().on("/s", &[Reply::outputs(&json!({})).gated()]);
    let x = json!({"x": {"role": "required"}});
    let fixture = FlowFixture::of(&[step("s", &server.url("/s"), &x, &Value::Null)]);
    let hosts = [fixture.engine(), fixture.engine()];
    for flow in 0..FLOWS {
        let asked = wanted(&format!("f{flow}"), "s", &json!({"x": flow}));
        hosts[flow % 2].start(&asked);
    }
    server.wait_for("/s", FLOWS);
    // Neither claims the flows of the other, nor its own again.
    for host in &hosts {
        let found = host.host().recover().unwrap();
        assert_eq!(found.resumed, Vec::<String>::new());
        assert_eq!(found.owned.len(), FLOWS);
    }
    server.open("/s");
    for flow in 0..FLOWS {
        hosts[flow % 2].completes(&format!("f{flow}"));
    }
    assert!(calls(&server).values().all(|calls| *calls == 1), "{:?}", calls(&server));
    for (number, host) in hosts.iter().enumerate() {
        let left = host.all_left();
        assert_eq!(left.len(), FLOWS / 2);
        for (flow, ends) in left {
            assert_eq!(ends, [Ok(JobStage::Completed)], "{flow} of {number}");
            assert_eq!(fixture.all(&flow, "attempt_started").len(), 1);
            fixture.ended(&flow);
            assert_eq!(fixture.words_of(&flow), ["flow_activated", "flow_deactivated"]);
        }
    }
}

#[test]
fn a_result_delivered_to_the_wrong_host_reaches_its_flow() {
    const FLOWS: usize = 10;
    let server = ScriptedServer::start().on("/s", &[Reply::outputs(&json!({}))]);
    let y = json!({"y": {"role": "output"}});
    let fixture = FlowFixture::of(&[async_step("s", &server.url("/s"), &y, &Value::Null)]);
    let hosts = [fixture.engine(), fixture.engine()];
    for flow in 0..FLOWS {
        hosts[flow % 2].start(&wanted(&format!("f{flow}"), "s", &json!({})));
    }
    for sent in server.wait_for("/s", FLOWS) {
        let metadata = sent.json()["metadata"].clone();
        let [flow, token] = ["flow_id", "receipt_token"].map(|key| metadata[key].as_str().unwrap());
        fixture.accepted(flow);
        let number: usize = flow[1..].parse().unwrap();
        let wrong = &hosts[(number + 1) % 2];
        let result = json!({"y": number}).to_string();
        assert_eq!(wrong.deliver(flow, "s", token, &result), Some(DeliveryOutcome::Taken));
        hosts[number % 2].completes(flow);
        assert_eq!(fixture.job(flow).attributes["y"].value, json!(number));
        // Again, now that the flow has ended.
        assert_eq!(wrong.deliver(flow, "s", token, "{}"), Some(DeliveryOutcome::Taken));
    }
    assert!(calls(&server).values().all(|calls| *calls == 1));
    for host in &hosts {
        assert_eq!(host.all_left().len(), FLOWS / 2);
    }
}

#[test]
fn a_result_stored_for_a_killed_host_is_used_by_the_next_host() {
    let server = ScriptedServer::start().on("/s", &[Reply::outputs(&json!({}))]);
    let y = json!({"y": {"role": "output"}});
    let fixture = FlowFixture::of(&[async_step("s", &server.url("/s"), &y, &Value::Null)]);
    let mut process = fixture.process();
    process.begin(&wanted("a", "s", &json!({})));
    let token = server.wait_for("/s", 1)[0].token().to_owned();
    fixture.accepted("a");
    let engine = fixture.engine();
    // The process owns the flow until it dies; it may or may not handle the result before.
    assert_eq!(engine.deliver("a", "s", &token, r#"{"y": 3}"#), Some(DeliveryOutcome::Taken));
    process.kill();
    engine.host().recover().unwrap();
    assert_eq!(fixture.ended("a").stage, JobStage::Completed);
    assert_eq!(fixture.job("a").attributes["y"].value, json!(3));
    assert_eq!(server.all().len(), 1);
}

#[test]
fn two_hosts_that_recover_the_flows_of_a_dead_one_share_them() {
    const FLOWS: usize = 30;
    let server = ScriptedServer::start().on("/s", &[Reply::outputs(&json!({})).gated()]);
    let work = json!({"max_retries": 3, "backoff": 1});
    let fixture = FlowFixture::of(&[step("s", &server.url("/s"), &json!({}), &work)]);
    let mut process = fixture.process();
    for flow in 0..FLOWS {
        process.begin(&wanted(&format!("f{flow}"), "s", &json!({})));
    }
    server.wait_for("/s", FLOWS);
    process.kill();
    server.open("/s");
    let hosts = [fixture.engine(), fixture.engine()];
    let found = thread::scope(|scope| {
        let found = hosts.each_ref();
        let found = found.map(|host| scope.spawn(|| host.host().recover().unwrap()));
        found.map(|found| found.join().unwrap())
    });
    let resumed = found[0].resumed.len() + found[1].resumed.len();
    for flow in 0..FLOWS {
        let flow = format!("f{flow}");
        assert_eq!(fixture.ended(&flow).stage, JobStage::Completed);
        assert_eq!(fixture.all(&flow, "job_resumed").len(), 1, "{flow}");
        assert_eq!(fixture.all(&flow, "attempt_started").len(), 2, "{flow}");
    }
    assert_eq!(resumed, FLOWS, "{found:?}");
    assert!(calls(&server).values().all(|calls| *calls == 2));
}
