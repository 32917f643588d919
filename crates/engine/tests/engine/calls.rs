//! The contents of HTTP requests.

use serde_json::{Value, json};
use undaunted_engine::event::{Event, JobEvent};
use undaunted_engine::job::Job;
use undaunted_engine::task::{HttpCall, as_uuid, correlation_id};
use undaunted_engine::workflow::{HttpProtocol, Operator, Source, check};
use undaunted_policy::FailureCause;

use crate::fixture::{TestedJob, item_at, secs};

fn header<'c>(call: &'c HttpCall, name: &str) -> Option<&'c str> {
    let mut found = call.headers.iter().filter(|(known, _)| known == name);
    let first = found.next().map(|(_, value)| value.as_str());
    assert_eq!(found.next(), None, "{name} once");
    first
}

const STEP: &str = "
mode: flow
goals: [ship]
init: {order: {id: 7}}
steps:
  - id: ship
    type: sync
    http: {endpoint: 'http://s/ship?v=1', timeout: 1500}
    work_config: {max_retries: 2, backoff: 1000}
    attributes: {order: {role: required}}
";

#[test]
fn a_request_is_by_default_a_get_with_a_token_and_an_id() {
    let test = TestedJob::of("- {id: a, http: {url: 'http://h/x'}}\n");
    let call = test.call(item_at(0));
    assert_eq!((call.method.as_str(), call.url.as_str(), &call.body), ("GET", "http://h/x", &None));
    assert_eq!(call.expect, [200..=299]);
    assert_eq!((call.protocol, call.later), (HttpProtocol::Plain, false));
    let id = correlation_id(&test.job, item_at(0));
    assert_eq!(header(&call, "Undaunted-Correlation-Id"), Some(id.as_str()));
    assert_eq!(header(&call, "Idempotency-Key").unwrap().len(), 32);
    assert_eq!(header(&call, "Content-Type"), None);
}

#[test]
fn the_key_stays_over_attempts_and_crashes_and_differs_from_round_to_round() {
    let mut test = TestedJob::of("- {id: a, http: {url: 'http://h/x'}, retry_config: {attempts: 1}}\n");
    let key = |test: &TestedJob| header(&test.call(item_at(0)), "Idempotency-Key").unwrap().to_owned();
    let first = key(&test);
    test.start().fail(0, FailureCause::Status(503)).crash_and_resume();
    assert_eq!(key(&test), first);
    test.at(5).start();
    assert_eq!(key(&test), first);
    test.fail(0, FailureCause::Interrupted).redrive([item_at(0)]);
    assert_ne!(key(&test), first);
}

#[test]
fn a_body_is_plain_text_or_json_with_values() {
    let text = "
mode: mapreduce
map:
  input: a
  agent_template:
    - id: a
      http: {method: POST, url: 'http://h/${item.id}', body: {n: '${item.n}', text: 'n=${item.n}'}}
    - id: b
      http: {method: PUT, url: 'http://h', headers: {content-type: x/y}, body: ['${item}']}
    - id: c
      http: {method: PUT, url: 'http://h', body: 'n=${item.n}'}
";
    let mut test = TestedJob::over(text, 2);
    let call = test.call(item_at(1));
    assert_eq!(call.url, "http://h/a1");
    assert_eq!(header(&call, "Content-Type"), Some("application/json"));
    let body: Value = serde_json::from_str(&call.body.unwrap()).unwrap();
    assert_eq!(body, json!({"n": 1, "text": "n=1"}));
    test.start().succeed(1);
    let call = test.call(item_at(1));
    assert_eq!(header(&call, "content-type"), Some("x/y"));
    assert_eq!(header(&call, "Content-Type"), None, "its own goes");
    let body: Value = serde_json::from_str(&call.body.unwrap()).unwrap();
    assert_eq!(body, json!([{"id": "a1", "n": 1}]));
    test.start().succeed(1);
    let call = test.call(item_at(1));
    assert_eq!(call.body.as_deref(), Some("n=1"));
    assert_eq!(header(&call, "Content-Type"), None);
}

#[test]
fn a_request_with_a_missing_value_is_refused_before_it_is_sent() {
    for http in [
        "url: 'http://h/${item.gone}'",
        "url: 'http://h', headers: {X: '${item.gone}'}",
        "url: 'http://h', body: '${item.gone}'",
        "url: 'http://h', body: {a: ['${item.gone}']}",
    ] {
        let text =
            format!("mode: mapreduce\nmap: {{input: a, agent_template: [{{id: a, http: {{{http}}}}}]}}\n");
        let test = TestedJob::started_over(&text, 1);
        assert_eq!(test.outcome().2, [0, 1, 0], "{http}");
        assert_eq!(test.attempts(), 0, "{http}");
    }
}

#[test]
fn a_request_hides_its_contents_in_debug_output() {
    let test =
        TestedJob::of("- {id: a, http: {url: 'http://h/s3cret', headers: {K: s3cret}, body: s3cret}}\n");
    let shown = format!("{:?}", test.call(item_at(0)));
    assert!(shown.contains("GET") && !shown.contains("s3cret"), "{shown}");
}

#[test]
fn a_step_is_called_with_its_arguments_and_metadata() {
    let mut test = TestedJob::of(STEP);
    let call = test.call(item_at(0));
    assert_eq!((call.method.as_str(), call.url.as_str()), ("POST", "http://s/ship?v=1"));
    assert_eq!((call.protocol, call.later), (HttpProtocol::Argyll, false));
    assert_eq!(header(&call, "Content-Type"), Some("application/json"));
    let body: Value = serde_json::from_str(call.body.as_ref().unwrap()).unwrap();
    let token = body["metadata"]["receipt_token"].as_str().unwrap().to_owned();
    assert_eq!(
        body,
        json!({
            "arguments": {"order": {"id": 7}},
            "metadata": {"flow_id": "7f3k", "step_id": "ship", "receipt_token": token},
        })
    );
    assert_eq!(header(&call, "Idempotency-Key"), Some(token.as_str()));
    assert_eq!(test.task(item_at(0)).timeout, Some(secs(3) / 2));
    // The call is the same for all attempts.
    test.start().fail(0, FailureCause::Status(503)).crash_and_resume().at(2).start();
    assert_eq!(test.call(item_at(0)), call);
}

#[test]
fn a_step_is_called_by_its_method_at_the_address_with_its_inputs() {
    let text = STEP.replace("http://s/ship?v=1'", "http://s/ship/{id}?v={order}', method: GET");
    let text = text.replace(
        "order: {role: required}",
        "order: {role: required}, name: {role: required, mapping: {name: id}}",
    );
    let text = text.replace("order: {id: 7}", "order: {id: 7}, name: a b/c");
    let call = TestedJob::of(&text).call(item_at(0));
    assert_eq!((call.method.as_str(), &call.body), ("GET", &None));
    assert_eq!(call.url, "http://s/ship/a%20b%2Fc?v=%7B%22id%22%3A7%7D");
    assert_eq!(header(&call, "Content-Type"), None);
    assert_eq!(header(&call, "Idempotency-Key").unwrap().len(), 36);
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let call = TestedJob::of(&text.replace("GET", method)).call(item_at(0));
        assert_eq!(call.method, method);
        let body: Value = serde_json::from_str(call.body.as_ref().unwrap()).unwrap();
        assert_eq!(body["arguments"], json!({"order": {"id": 7}, "id": "a b/c"}));
    }
    // Without a value the address would be another one.
    let mut test = TestedJob::of(&text.replace("name: a b/c", "name: ''"));
    test.start();
    let (status, _, items) = test.outcome();
    assert_eq!((status, items, test.attempts()), ("failed", [0, 1, 0], 0));
    assert!(test.report().error.unwrap().contains("`id` has no value"));
}

#[test]
fn a_flow_that_an_earlier_release_accepted_is_still_read() {
    let text =
        STEP.replace("role: required", "role: required, type: string, default: '\"1\"', for_each: true");
    let text = text.replace("id: ship", "id: ship\n    name: ''").replace("/ship?v=1", "/{nothing}");
    let refused = check(&Source::new("f.yaml", text.as_str()), &Operator::default());
    assert!(refused.workflow.is_none());
    let mut older = TestedJob::of(STEP).decoded().remove(0);
    if let Event::Job(JobEvent::Submitted(submitted)) = &mut older.event {
        submitted.text = text.as_str().into();
    }
    let job = Job::begin(&older).unwrap();
    assert_eq!(job.workflow().steps[0].name, "ship");
}

#[test]
fn a_token_is_written_in_the_form_of_a_uuid() {
    let token = as_uuid("0123456789abcdef0123456789abcdef");
    assert_eq!(token, "01234567-89ab-cdef-0123-456789abcdef");
}
