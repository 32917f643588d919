//! Async results from any bytes: a step, a token and a body.
//!
//! The first line is the step, the second the token, the rest the body. Only a token that was given out for
//! this step is known, and only a body that says so is a success.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use undaunted_engine::decide::react;
use undaunted_engine::id::StartId;
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::law::{violations_by_record, violations_in_state};
use undaunted_engine::task::{TokenStatus, find_token};
use undaunted_policy::FailureCause;
use undaunted_runner::request::ArrivedResult;
use undaunted_runner::{StepResult, step_result};

use super::law::uphold;
use super::waiting_flow::{STEP, WaitingFlow, waiting_flow};

pub fn webhook_result(data: &[u8]) -> BTreeSet<&'static str> {
    let text = String::from_utf8_lossy(data);
    let (step, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let (token, body) = rest.split_once('\n').unwrap_or((rest, ""));
    let mut outcomes = BTreeSet::new();
    outcomes.insert(read(&text));
    let result = step_result(body);
    outcomes.insert(read(body));
    let Some(flow) = waiting_flow() else {
        return outcomes;
    };
    let found = find_token(&flow.job, step, token);
    let word = token_word(flow, step, token, found);
    outcomes.insert(word);
    let result = match result {
        StepResult::Given(outputs) => Ok(outputs),
        StepResult::Failed(error) => Err(error),
        StepResult::Unreadable(_) => return outcomes,
    };
    let input = match found {
        TokenStatus::Running(start) => Some(end_of(start, &result)),
        TokenStatus::Waiting(item) => Some(Input::ResultArrived { item, result: result.clone() }),
        TokenStatus::Late(item) => Some(Input::Late { item, result: result.clone() }),
        TokenStatus::Expired | TokenStatus::Unknown => None,
    };
    if let Some(input) = input {
        check_arrival(flow, &input);
        outcomes.insert("arrived");
    }
    let arrived = ArrivedResult { step: step.to_owned(), token: token.to_owned(), result };
    let stored = serde_json::to_string(&arrived).unwrap_or_default();
    let again = serde_json::from_str(&stored).ok();
    uphold("a stored result is the result that arrived", again == Some(arrived), &stored);
    outcomes
}

/// The body, parsed a second time in another way.
fn read(body: &str) -> &'static str {
    let result = step_result(body);
    uphold("the same body says the same", result == step_result(body), &body);
    let value: Option<Value> = serde_json::from_str(body).ok();
    let field = |name: &str| value.as_ref().and_then(|value| value.get(name));
    let success = field("success").and_then(Value::as_bool);
    match &result {
        StepResult::Given(outputs) => {
            let given: Option<Value> = serde_json::from_str(outputs).ok();
            let nothing = Value::Object(serde_json::Map::new());
            let said = field("outputs").filter(|said| !said.is_null());
            let same = given.as_ref() == Some(said.unwrap_or(&nothing));
            let same = same && given.as_ref().is_some_and(Value::is_object);
            uphold("only a body with success succeeds", success == Some(true), &body);
            uphold("the outputs are those that were sent", same, &(body, outputs));
            "given"
        }
        StepResult::Failed(error) => {
            uphold("only a body without success fails", success == Some(false), &body);
            let said = field("error").and_then(Value::as_str);
            let told = said.is_none_or(|said| said == error);
            uphold("the error is the one that was sent", told, &(body, error));
            "failed"
        }
        StepResult::Unreadable(why) => {
            let is_given = matches!(field("outputs"), None | Some(Value::Null | Value::Object(_)));
            let readable = success == Some(false) || (success == Some(true) && is_given);
            uphold("a readable body is read", !readable, &(body, why));
            uphold("an unreadable body has a reason", !why.is_empty(), &body);
            "unreadable"
        }
    }
}

/// The status of a token, compared with the tokens that were given out.
fn token_word(flow: &WaitingFlow, step: &str, token: &str, found: TokenStatus) -> &'static str {
    // The last item has not begun, so its token was not given out.
    let mut given_out = (0..3).map(|item| flow.token(item));
    let known = step == STEP && given_out.any(|given| given == token);
    let same = known == (found != TokenStatus::Unknown);
    uphold("a token is known if it was given out", same, &(step, token, found));
    match found {
        TokenStatus::Running(_) => "running",
        TokenStatus::Waiting(_) => "waiting",
        TokenStatus::Late(_) => "late",
        TokenStatus::Expired => "over",
        TokenStatus::Unknown => "nowhere",
    }
}

/// The end of a running attempt with this result.
fn end_of(start: StartId, result: &Result<String, String>) -> Input {
    Input::Ended(Box::new(AttemptEnd {
        start,
        failure: result.is_err().then_some(FailureCause::Refused),
        output: result.as_ref().ok().cloned(),
        error: result.as_ref().err().cloned().unwrap_or_default(),
        took: Duration::from_secs(1),
        ..AttemptEnd::default()
    }))
}

/// A result is recorded lawfully.
fn check_arrival(flow: &WaitingFlow, input: &Input) {
    let mut told = flow.job.clone();
    let now = told.times.last_at.after(Duration::from_secs(1));
    let records = react(&mut told, input, now).records;
    uphold("a result has consequences", !records.is_empty(), input);
    let mut folded = flow.job.clone();
    for record in &records {
        let broken = violations_by_record(&folded, record);
        uphold("follow-up events keep the laws", broken.is_empty(), &(record, &broken));
        folded.apply(record);
    }
    let broken = violations_in_state(&folded);
    uphold("follow-up events keep the laws", broken.is_empty(), &broken);
}
