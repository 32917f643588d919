//! The arguments of a step's items: one item for each combination of its `for_each` values.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::event::NewItem;
use crate::id::StepId;
use crate::job::Job;
use crate::workflow::{Attribute, AttributeRole, FlowStep};

/// How many items one step may have.
const MAX_ITEMS: usize = 100_000;

/// The value of an attribute, and the step that set it; `None` if the flow started with it.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeValue {
    pub value: Value,
    pub step: Option<StepId>,
}

/// Fails if a `for_each` value is not an array, or if there are too many combinations.
pub(crate) fn items(job: &Job, step: StepId) -> Result<Vec<NewItem>, String> {
    let (Some(call), Some(found)) = (job.plan().call(step), job.plan().step(step)) else {
        return Err("it is not a step of a flow".to_owned());
    };
    let (plain, each) = split(job, call)?;
    let count = each.iter().try_fold(1_usize, |count, (_, values)| {
        let count = count.checked_mul(values.len())?;
        (count <= MAX_ITEMS).then_some(count)
    });
    let count = count.ok_or_else(|| {
        let names: Vec<String> = each.iter().map(|(name, _)| format!("`{name}`")).collect();
        format!("{} together produce more than {MAX_ITEMS} items", names.join(" and "))
    })?;
    let alone = each.is_empty();
    let items = (0..count).map(|number| {
        let mut arguments = plain.clone();
        let mut combination = number;
        // The last attribute varies fastest.
        for (name, values) in each.iter().rev() {
            let value = combination.checked_rem(values.len()).and_then(|at| values.get(at));
            combination = combination.checked_div(values.len()).unwrap_or_default();
            arguments.insert(name.clone(), value.cloned().unwrap_or_default());
        }
        NewItem {
            identity: if alone { found.name.clone() } else { format!("{}[{number}]", found.name) },
            input: Value::Object(arguments).to_string(),
        }
    });
    Ok(items.collect())
}

fn value_of<'j>(job: &'j Job, name: &str, attribute: &'j Attribute) -> Option<&'j Value> {
    match attribute.role {
        AttributeRole::Output => None,
        AttributeRole::Const => attribute.default.as_ref(),
        AttributeRole::Required | AttributeRole::Optional => {
            job.attributes.get(name).map(|known| &known.value).or(attribute.default.as_ref())
        }
    }
}

type ForEachValues = Vec<(String, Vec<Value>)>;

/// Arguments that all items share, and those that differ from item to item.
fn split(job: &Job, call: &FlowStep) -> Result<(Map<String, Value>, ForEachValues), String> {
    let mut plain = Map::new();
    let mut each = Vec::new();
    for (name, attribute) in &call.attributes {
        let Some(value) = value_of(job, name, attribute) else { continue };
        let inner = attribute.mapping.as_ref().unwrap_or(name).clone();
        match value {
            Value::Array(values) if attribute.for_each => each.push((inner, values.clone())),
            _ if attribute.for_each => {
                return Err(format!("`{name}` has `for_each`, but its value is not an array"));
            }
            value => {
                plain.insert(inner, value.clone());
            }
        }
    }
    Ok((plain, each))
}

/// The arguments of a step's condition: `for_each` values are whole arrays.
pub(crate) fn predicate_arguments(job: &Job, step: StepId) -> BTreeMap<String, Value> {
    let call = job.plan().call(step);
    let attributes = call.into_iter().flat_map(|call| &call.attributes);
    let arguments = attributes.filter_map(|(name, attribute)| {
        let inner = attribute.mapping.as_ref().unwrap_or(name);
        Some((inner.clone(), value_of(job, name, attribute)?.clone()))
    });
    arguments.collect()
}

pub(super) fn each_names(call: &FlowStep) -> impl Iterator<Item = &String> {
    let each = call.attributes.iter();
    let each = each.filter(|(_, attribute)| attribute.for_each && attribute.role != AttributeRole::Output);
    each.map(|(name, attribute)| attribute.mapping.as_ref().unwrap_or(name))
}
