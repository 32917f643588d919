//! Results of async steps: early, repeated, late, wrong, malformed, lost.

use std::sync::Arc;
use std::sync::Mutex;

use serde_json::json;

use crate::client::{failure, send_result, success};
use crate::history::{assert_contains, count, has_event, one, outcomes};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, async_step, deliver, only_item, retries};

/// A flow of an async step whose call was accepted, and its webhook URL.
fn waiting() -> (Sandbox, ScriptedServer, RunningServer, String) {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", &[Reply::accepted()]);
    let served = RunningServer::on(&sandbox);
    served.register(&async_step(&handlers, "a", &retries(2)));
    served.start_flow("f", "a", &json!({}));
    let url = handlers.wait_for_call("/a").webhook_url();
    let events = Sandbox::eventually("an accepted call", || {
        let events = sandbox.events_of("f");
        (has_event(&events, "attempt_accepted")).then_some(events)
    });
    assert_eq!(count(&events, "attempt_started"), 1);
    (sandbox, handlers, served, url)
}

#[test]
fn a_result_is_taken_once_and_answered_200_however_often_it_comes() {
    let (sandbox, handlers, served, url) = waiting();
    let token = handlers.all()[0].token().to_owned();
    assert_eq!(url, format!("http://{}/webhook/f/a/{token}", served.address()));
    let flow = served.flow("f");
    assert_eq!(only_item(&flow, "a").unwrap()["status"], "active");
    assert_eq!(
        send_result(&url, success(&json!({"x": 1, "more": 2}))).unwrap().is(200),
        json!({"success": true})
    );
    // Results sent again, while the flow runs and after its end, are answered and ignored.
    send_result(&url, success(&json!({"x": 1}))).unwrap().is(200);
    let flow = served.completes_with_x("f", &json!(1));
    for other in [success(&json!({"x": 9})), failure("late")] {
        send_result(&url, &other).unwrap().is(200);
    }
    served.wait_for_deactivation("f");
    send_result(&url, success(&json!({"x": 9}))).unwrap().is(200);
    assert_eq!(served.flow("f"), flow);
    let events = sandbox.lawful_events_of("f");
    assert_eq!(outcomes(&events), ["success"]);
}

#[test]
fn an_invalid_step_result_is_refused_and_changes_nothing() {
    let (sandbox, _server, served, url) = waiting();
    let before = served.flow("f");
    let (base, token) = url.rsplit_once('/').unwrap();
    let origin = url.strip_suffix(&format!("/webhook/f/a/{token}")).unwrap();
    let body = success(&json!({"x": 1}));
    for wrong in [
        format!("{base}/{token}0"),
        format!("{base}/00000000-0000-0000-0000-000000000000"),
        format!("{base}/%00"),
        format!("{origin}/webhook/f/b/{token}"),
        format!("{origin}/webhook/g/a/{token}"),
        format!("{origin}/webhook/F/a/{token}"),
    ] {
        send_result(&wrong, &body).unwrap().refused(404);
    }
    for garbage in
        ["", "{", "null", "[]", "7", "{}", r#"{"success":"yes"}"#, r#"{"success":true,"outputs":[1]}"#]
    {
        let answer = send_result(&url, garbage.as_bytes()).unwrap();
        assert_eq!(answer.status, 400, "{garbage}: {}", answer.text());
        answer.refused(400);
    }
    send_result(&url, [0xff, 0xfe, 0]).unwrap().refused(400);
    let huge = success(&json!({"x": "x".repeat(17 << 20)}));
    // The server may close the connection before it has read everything.
    if let Some(answer) = send_result(&url, &huge) {
        answer.refused(413);
    }
    assert_eq!(served.flow("f"), before);
    let large = "y".repeat(3 << 20);
    send_result(&url, success(&json!({"x": large}))).unwrap().is(200);
    let _flow = served.completes_with_x("f", &json!(large));
    assert_eq!(outcomes(&sandbox.events_of("f")), ["success"]);
}

#[test]
fn a_result_that_arrives_before_the_answer_to_its_call_counts() {
    let sandbox = Sandbox::new();
    let answers = Arc::new(Mutex::new(Vec::new()));
    let sender = Arc::clone(&answers);
    let handlers = ScriptedServer::start().by("/a", move |request| {
        let answer = send_result(&request.webhook_url(), success(&json!({"x": 3}))).unwrap();
        sender.lock().unwrap().push(answer.status);
        Reply::accepted()
    });
    let served = RunningServer::on(&sandbox);
    served.register(&async_step(&handlers, "a", &retries(2)));
    for id in ["f", "g", "h"] {
        served.start_flow(id, "a", &json!({}));
        let _flow = served.completes_with_x(id, &json!(3));
        assert_eq!(outcomes(&sandbox.events_of(id)), ["success"]);
    }
    assert_eq!(*answers.lock().unwrap(), [200; 3]);
    assert_eq!(handlers.all().len(), 3);
}

#[test]
fn a_failing_result_is_final_and_a_lost_one_is_requested_again_with_the_same_token() {
    let (_sandbox, _server, served, url) = waiting();
    send_result(&url, failure("no room")).unwrap().is(200);
    let flow = served.wait_for_end("f", "failed");
    assert_contains(&flow["error"], "no room");
    send_result(&url, success(&json!({"x": 1}))).unwrap().is(200);
    assert_eq!(served.flow("f"), flow);

    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", &[Reply::accepted()]);
    let served = RunningServer::on(&sandbox);
    let mut step = async_step(&handlers, "a", &retries(1));
    step["http"]["completion_timeout"] = json!(300);
    served.register(&step);
    served.start_flow("lost", "a", &json!({}));
    let calls = handlers.wait_for("/a", 2);
    assert_eq!(calls[0].token(), calls[1].token());
    assert_eq!(calls[0].webhook_url(), calls[1].webhook_url());
    // The result of the first call counts as well as that of the second.
    deliver(&calls[0].webhook_url(), success(&json!({"x": 4})));
    served.wait_for_flow("lost", "the end", |flow| flow["status"] != "active");
    let events = sandbox.lawful_events_of("lost");
    assert_eq!(outcomes(&events)[0], "timeout");
    let scheduled = one(&events, "retry_scheduled");
    assert_eq!(scheduled["retry"], 1);

    // No result arrives: the attempts are used up, and the flow fails.
    let flow = served.run_flow("silent", "a", &json!({}), "failed");
    assert_eq!(only_item(&flow, "a").unwrap()["retry_count"], 1);
    assert_eq!(outcomes(&sandbox.events_of("silent")), ["timeout", "timeout"]);
}

#[test]
fn a_result_that_arrives_during_a_retry_wait_counts_and_no_call_follows() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", &[Reply::status(503)]);
    let served = RunningServer::on(&sandbox);
    let work = json!({"max_retries": 1, "backoff": 60_000, "backoff_type": "fixed"});
    served.register(&async_step(&handlers, "a", &work));
    served.start_flow("f", "a", &json!({}));
    served.wait_for_first_retry("f", "a");
    let address = handlers.requests("/a")[0].webhook_url();
    for x in [1, 2] {
        send_result(&address, success(&json!({"x": x}))).unwrap().is(200);
    }
    let flow = served.completes_with_x("f", &json!(1));
    let item = only_item(&flow, "a").unwrap();
    assert_eq!((&item["status"], &item["outputs"]), (&json!("succeeded"), &json!({"x": 1})));
    assert_eq!((&item["next_retry_at"], &item["error"]), (&json!(null), &json!(null)));
    assert_eq!(handlers.all().len(), 1);
    assert_eq!(one(&sandbox.lawful_events_of("f"), "result_arrived")["result"], "succeeded");
}
