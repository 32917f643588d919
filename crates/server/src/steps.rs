//! The registered steps.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use undaunted_engine::catalog::{Catalog, CatalogEvent};
use undaunted_engine::view::StepHealthView;
use undaunted_engine::workflow::without_nulls;

use crate::answer::{HttpRefusal, PathName, RequestBody, json_of, json_response, object, path_name};
use crate::api::{Api, Served, unavailable};
use crate::fields::Fields;

pub(crate) async fn list(State(api): State<Api>) -> Result<Response, HttpRefusal> {
    api.read_catalog(|catalog| {
        let steps: Vec<Value> = catalog.steps.values().map(|step| object(step)).collect();
        let listed = json!({ "count": steps.len(), "steps": steps });
        Ok(json_response(StatusCode::OK, &listed))
    })
    .await
}

pub(crate) async fn show(State(api): State<Api>, id: PathName) -> Result<Response, HttpRefusal> {
    let id = path_name(id)?;
    api.read_catalog(move |catalog| match catalog.steps.get(&id) {
        Some(step) => Ok(json_response(StatusCode::OK, &object(step))),
        None => Err(unknown(&id)),
    })
    .await
}

pub(crate) async fn register(State(api): State<Api>, body: RequestBody) -> Result<Response, HttpRefusal> {
    let step = read(body)?;
    api.blocking(move |served| {
        let id = served.host.check_step(&step).map_err(HttpRefusal::bad_request)?;
        write(served, id, &step, |known, id| match known {
            StepComparison::Same => Ok(None),
            StepComparison::Other => Err(HttpRefusal::conflict(format!(
                "step `{id}` is already registered with a different definition"
            ))),
            StepComparison::Missing => Ok(Some(true)),
        })?;
        let answer = json!({ "message": "Step registered", "step": step });
        Ok(json_response(StatusCode::CREATED, &answer))
    })
    .await
}

pub(crate) async fn update(
    State(api): State<Api>,
    id: PathName,
    body: RequestBody,
) -> Result<Response, HttpRefusal> {
    let id = path_name(id)?;
    let step = read(body)?;
    api.blocking(move |served| {
        if step.get("id").and_then(Value::as_str) != Some(&id) {
            return Err(HttpRefusal::bad_request(format!(
                "the `id` in the definition must be `{id}`, as in the URL"
            )));
        }
        let id = served.host.check_step(&step).map_err(HttpRefusal::bad_request)?;
        write(served, id, &step, |known, id| match known {
            StepComparison::Same => Ok(None),
            StepComparison::Other => Ok(Some(false)),
            StepComparison::Missing => Err(unknown(id)),
        })?;
        let answer = json!({ "message": "Step updated", "step": step });
        Ok(json_response(StatusCode::OK, &answer))
    })
    .await
}

pub(crate) async fn remove(State(api): State<Api>, id: PathName) -> Result<Response, HttpRefusal> {
    let id = path_name(id)?;
    api.blocking(move |served| {
        let decide = move |catalog: &Catalog| {
            let id = id.clone();
            if catalog.steps.contains_key(&id) {
                Ok(vec![CatalogEvent::StepUnregistered { id }])
            } else {
                Err(unknown(&id))
            }
        };
        let _ = served.host.catalog().change(decide).map_err(unavailable)??;
        served.changes.notify();
        Ok(json_response(StatusCode::OK, &json!({ "message": "Step unregistered" })))
    })
    .await
}

pub(crate) async fn every_health(State(api): State<Api>) -> Result<Response, HttpRefusal> {
    api.read_catalog(|catalog| {
        let health = StepHealthView::of_all(catalog);
        let listed = json!({ "count": health.len(), "health": json_of(&health) });
        Ok(json_response(StatusCode::OK, &listed))
    })
    .await
}

pub(crate) async fn one_health(State(api): State<Api>, id: PathName) -> Result<Response, HttpRefusal> {
    let id = path_name(id)?;
    api.read_catalog(move |catalog| {
        if catalog.steps.contains_key(&id) {
            let health = StepHealthView::of(catalog.health.get(&id));
            Ok(json_response(StatusCode::OK, &json_of(&health)))
        } else {
            Err(unknown(&id))
        }
    })
    .await
}

fn unknown(id: &str) -> HttpRefusal {
    HttpRefusal::not_found(format!("step `{id}` not found"))
}

fn read(body: RequestBody) -> Result<Value, HttpRefusal> {
    let body = body.map_err(|wrong| HttpRefusal::unreadable_body(&wrong))?;
    Ok(Fields::read(&body)?.into_value())
}

/// The registered definition, compared with a new one.
enum StepComparison {
    Missing,
    Same,
    Other,
}

/// Writes a definition. `decide` answers `Some(true)` to register, `Some(false)` to update.
fn write(
    served: &Served,
    id: String,
    step: &Value,
    decide: impl Fn(StepComparison, &str) -> Result<Option<bool>, HttpRefusal> + Send + 'static,
) -> Result<(), HttpRefusal> {
    let definition = step.to_string();
    let wanted = plain(step.clone());
    let change = move |catalog: &Catalog| {
        let known = match catalog.steps.get(&id) {
            None => StepComparison::Missing,
            Some(known) if plain(object(known)) == wanted => StepComparison::Same,
            Some(_) => StepComparison::Other,
        };
        let (id, definition) = (id.clone(), definition.clone());
        Ok(match decide(known, &id)? {
            None => Vec::new(),
            Some(true) => vec![CatalogEvent::StepRegistered { id, definition }],
            Some(false) => vec![CatalogEvent::StepUpdated { id, definition }],
        })
    };
    let _ = served.host.catalog().change(change).map_err(unavailable)??;
    served.changes.notify();
    Ok(())
}

/// A definition without nulls and defaults, so that two that mean the same are equal.
fn plain(mut step: Value) -> Value {
    without_nulls(&mut step);
    let Some(fields) = step.as_object_mut() else {
        return step;
    };
    fields.retain(|name, value| match name.as_str() {
        "memoizable" => *value != Value::Bool(false),
        "labels" => value.as_object().is_none_or(|labels| !labels.is_empty()),
        _ => true,
    });
    let attributes = fields.get_mut("attributes").and_then(Value::as_object_mut);
    for attribute in attributes.into_iter().flat_map(|them| them.values_mut()) {
        if let Some(attribute) = attribute.as_object_mut() {
            attribute.retain(|name, value| name != "for_each" || *value != Value::Bool(false));
        }
    }
    step
}
