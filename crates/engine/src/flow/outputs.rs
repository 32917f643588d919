//! The attributes that a step sets when all its items are done.

use serde_json::{Map, Value};

use super::arguments::each_names;
use crate::id::StepId;
use crate::job::{ItemState, Job, SettledItem};
use crate::workflow::AttributeRole;

/// A step with one item sets that item's outputs. With several, each attribute is an array of objects that
/// hold the `for_each` arguments and the output, in the order of the items. An attribute that no success has
/// is left out; a step in which nothing has succeeded sets empty arrays.
pub(crate) fn outputs(job: &Job, step: StepId) -> Vec<(String, Value)> {
    let (Some(call), Some(state)) = (job.plan().call(step), job.step(step)) else { return Vec::new() };
    let succeeded = state.items.iter();
    let succeeded =
        succeeded.filter(|(_, found)| matches!(found, ItemState::Settled(SettledItem::Succeeded)));
    let results: Vec<(u32, Map<String, Value>)> = succeeded
        .map(|(item, _)| {
            let output = state.outputs.get(&item).map_or("{}", String::as_str);
            (item, serde_json::from_str(output).unwrap_or_default())
        })
        .collect();
    let with_arguments = |(item, result): &(u32, Map<String, Value>), inner: &String| {
        let output = result.get(inner)?.clone();
        let input: Map<String, Value> = serde_json::from_str(state.items.input(*item)).unwrap_or_default();
        let each = each_names(call).filter_map(|name| Some((name.clone(), input.get(name)?.clone())));
        let mut object: Map<String, Value> = each.collect();
        object.insert(inner.clone(), output);
        Some(Value::Object(object))
    };
    let several = state.items.len() != 1;
    let declared = call.attributes.iter().filter(|(_, attribute)| attribute.role == AttributeRole::Output);
    let values = declared.filter_map(|(name, attribute)| {
        let inner = attribute.mapping.as_ref().unwrap_or(name);
        if !several {
            return Some((name.clone(), results.first()?.1.get(inner)?.clone()));
        }
        let objects: Vec<Value> = results.iter().filter_map(|it| with_arguments(it, inner)).collect();
        let is_missing = objects.is_empty() && !results.is_empty();
        (!is_missing).then(|| (name.clone(), Value::Array(objects)))
    });
    values.collect()
}
