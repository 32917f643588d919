//! Flows: planned, started, listed and shown.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Map, Value, json};
use undaunted_engine::catalog::Catalog;
use undaunted_engine::view::plan_preview;
use undaunted_engine::workflow::FlowGoals;
use undaunted_runner::flows::{BeginError, FlowSubmission, PlanError};

use crate::answer::{HttpRefusal, PathName, RequestBody, json_of, json_response, path_name};
use crate::api::{Api, unavailable};
use crate::fields::Fields;
use crate::flow_state::FollowedFlow;
use crate::query::{Query, is_of_id};

const MAX_ID_BYTES: usize = 200;

pub(crate) async fn list(State(api): State<Api>) -> Result<Response, HttpRefusal> {
    api.read_catalog(|catalog| {
        let page = Query::all().page(catalog);
        Ok(json_response(StatusCode::OK, &json_of(&page.flows)))
    })
    .await
}

pub(crate) async fn query(State(api): State<Api>, body: RequestBody) -> Result<Response, HttpRefusal> {
    let query = Query::read(&fields(body)?)?;
    api.read_catalog(move |catalog| Ok(json_response(StatusCode::OK, &json_of(&query.page(catalog))))).await
}

pub(crate) async fn show(State(api): State<Api>, flow: PathName) -> Result<Response, HttpRefusal> {
    let flow = path_name(flow)?;
    api.blocking(move |served| {
        let host = &served.host;
        let read = FollowedFlow::read(&*host.store(), &flow, &host.plans());
        let followed = read.map_err(unavailable)?;
        let look = |catalog: &Catalog| followed.json(catalog.flows.get(flow.as_str()));
        let shown = host.catalog().read(look).map_err(unavailable)?;
        Ok(json_response(StatusCode::OK, &shown))
    })
    .await
}

pub(crate) async fn plan(State(api): State<Api>, body: RequestBody) -> Result<Response, HttpRefusal> {
    let fields = fields(body)?;
    let goals = goals(&fields)?;
    let init = fields.object("init")?.into_iter().collect();
    api.blocking(move |served| {
        let planned = served.host.preview(&FlowGoals { goals, init });
        let (planned, required) = planned.map_err(not_planned)?;
        let plan = plan_preview(&planned.workflow, &planned.text, &required);
        Ok(json_response(StatusCode::OK, &json_of(&plan)))
    })
    .await
}

pub(crate) async fn start(State(api): State<Api>, body: RequestBody) -> Result<Response, HttpRefusal> {
    let fields = fields(body)?;
    let flow = FlowSubmission {
        id: flow_id(&fields.text("id")?.unwrap_or_default())?,
        goals: goals(&fields)?,
        init: fields.object("init")?,
        labels: fields.labels("labels")?,
        retry_budget: fields.any_count("retry_budget")?,
        retry_budget_per_workflow: fields.any_count("retry_budget_per_workflow")?,
        of_steps: completion(&fields)?,
    };
    api.blocking(move |served| {
        let _ = served.host.start(&flow).map_err(not_begun)?;
        let answer = json!({ "message": "Flow started", "flow_id": flow.id });
        Ok(json_response(StatusCode::CREATED, &answer))
    })
    .await
}

fn completion(fields: &Fields) -> Result<Map<String, Value>, HttpRefusal> {
    let (switch, least) = ("best_effort", "best_effort_min_dcs");
    let deadline = "best_effort_deadline_seconds";
    let given = [
        (switch, fields.switch(switch)?.map(Value::from)),
        (least, fields.number(least)?.map(Value::from)),
        (deadline, fields.seconds(deadline)?.map(Value::from)),
    ];
    let given = given.into_iter();
    Ok(given.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

fn not_planned(error: PlanError) -> HttpRefusal {
    match error {
        PlanError::UnknownStep(_) => HttpRefusal::not_found(error.to_string()),
        PlanError::Journal(error) => unavailable(error),
        error => HttpRefusal::bad_request(error.to_string()),
    }
}

fn not_begun(error: BeginError) -> HttpRefusal {
    match error {
        BeginError::Plan(error) => not_planned(error),
        BeginError::Exists(_) => HttpRefusal::conflict(error.to_string()),
        BeginError::Unfit(_) => HttpRefusal::bad_request(error.to_string()),
        BeginError::Journal(error) => unavailable(error),
        error => HttpRefusal::unavailable(error.to_string()),
    }
}

fn fields(body: RequestBody) -> Result<Fields, HttpRefusal> {
    Fields::read(&body.map_err(|wrong| HttpRefusal::unreadable_body(&wrong))?)
}

fn goals(fields: &Fields) -> Result<Vec<String>, HttpRefusal> {
    let goals = fields.texts("goals")?;
    if goals.is_empty() {
        return Err(HttpRefusal::bad_request("`goals` is empty: name at least one step"));
    }
    Ok(goals)
}

/// The id of a flow, made from the one the client wants: lower case, dashes for spaces, no other signs.
fn flow_id(wanted: &str) -> Result<String, HttpRefusal> {
    let lower = wanted.to_lowercase();
    let kept = lower.chars().filter(|it| is_of_id(*it) || *it == ' ');
    let id: String = kept.map(|it| if it == ' ' { '-' } else { it }).collect();
    let id = id.trim_matches('-');
    if matches!(id, "" | "." | "..") {
        return Err(HttpRefusal::bad_request("`id` needs at least one letter, digit, `_` or `+`"));
    }
    if id.len() > MAX_ID_BYTES {
        return Err(HttpRefusal::bad_request(format!("`id` has more than {MAX_ID_BYTES} characters")));
    }
    Ok(id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_made_of_what_is_allowed() {
        let id = |wanted: &str| flow_id(wanted).map_err(|refused| refused.status.as_u16());
        assert_eq!(id("wf-1"), Ok("wf-1".to_owned()));
        assert_eq!(id("My Flow:/1+2_3."), Ok("my-flow1+2_3.".to_owned()));
        assert_eq!(id("a  b"), Ok("a--b".to_owned()));
        assert_eq!(id("äöü x"), Ok("x".to_owned()));
        for nothing in ["", " ", "::", ".", "..", " . ", "äöü"] {
            assert_eq!(id(nothing), Err(400), "{nothing}");
        }
        assert_eq!(id(&"x".repeat(200)).unwrap().len(), 200);
        assert_eq!(id(&"x".repeat(201)), Err(400));
    }
}
