//! The attributes that a step gives when all its items are done.

use serde_json::{Map, Value};

use super::arguments::each_names;
use crate::id::StepId;
use crate::job::{ItemState, Job, SettledItem};
use crate::workflow::AttributeRole;

/// A step with one item gives that item's outputs. With several, each attribute is an array of objects
/// that hold the `for_each` arguments and the output, in the order of the items. An attribute that no
/// item gave is left out; a step without items gives empty arrays.
pub(crate) fn outputs(job: &Job, step: StepId) -> Vec<(String, Value)> {
    let (Some(call), Some(state)) = (job.plan().call(step), job.step(step)) else {
        return Vec::new();
    };
    let succeeded = state.items.iter().filter(|(item, found)| {
        matches!(found, ItemState::Settled(SettledItem::Succeeded)) && !state.late.contains(item)
    });
    let results: Vec<(u32, Map<String, Value>)> = succeeded
        .map(|(item, _)| {
            let output = state.outputs.get(&item).map_or("{}", String::as_str);
            (item, serde_json::from_str(output).unwrap_or_default())
        })
        .collect();
    let given = call.attributes.iter();
    let given = given.filter(|(_, given)| given.role == AttributeRole::Output);
    let several = state.items.len() != 1;
    given
        .filter_map(|(name, given)| {
            let inner = given.mapping.as_ref().unwrap_or(name);
            let value = if several {
                let objects = results.iter().filter_map(|(item, result)| {
                    let output = result.get(inner)?.clone();
                    let input: Map<String, Value> =
                        serde_json::from_str(state.items.input(*item)).unwrap_or_default();
                    let each = each_names(call);
                    let each = each.filter_map(|it| Some((it.clone(), input.get(it)?.clone())));
                    let mut object: Map<String, Value> = each.collect();
                    object.insert(inner.clone(), output);
                    Some(Value::Object(object))
                });
                let objects: Vec<Value> = objects.collect();
                if objects.is_empty() && !state.items.is_empty() {
                    return None;
                }
                Value::Array(objects)
            } else {
                results.first()?.1.get(inner)?.clone()
            };
            Some((name.clone(), value))
        })
        .collect()
}
