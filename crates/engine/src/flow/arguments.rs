//! The arguments of a step's items: one item for each combination of its `for_each` values.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::event::NewItem;
use crate::id::StepId;
use crate::job::Job;
use crate::workflow::{Attribute, AttributeRole, FlowStep};

/// The most items that one step may have.
const MOST: usize = 100_000;

/// Fails if a `for_each` value is no array, or if the combinations are too many.
pub(crate) fn items(job: &Job, step: StepId) -> Result<Vec<NewItem>, String> {
    let (Some(call), Some(found)) = (job.plan().call(step), job.plan().step(step)) else {
        return Err("it is no step of a flow".to_owned());
    };
    let (plain, each) = split(job, call)?;
    let many = each.iter().try_fold(1_usize, |many, (_, values)| {
        let many = many.checked_mul(values.len())?;
        (many <= MOST).then_some(many)
    });
    let many = many.ok_or_else(|| {
        let names: Vec<String> = each.iter().map(|(name, _)| format!("`{name}`")).collect();
        format!("{} together make more than {MOST} items", names.join(" and "))
    })?;
    let alone = each.is_empty();
    let items = (0..many).map(|number| {
        let mut arguments = plain.clone();
        let mut rest = number;
        // The last attribute varies fastest.
        for (name, values) in each.iter().rev() {
            let value = rest.checked_rem(values.len()).and_then(|at| values.get(at));
            rest = rest.checked_div(values.len()).unwrap_or_default();
            arguments.insert(name.clone(), value.cloned().unwrap_or_default());
        }
        NewItem {
            identity: if alone { found.name.clone() } else { format!("{}[{number}]", found.name) },
            input: Value::Object(arguments).to_string(),
        }
    });
    Ok(items.collect())
}

fn value_of<'j>(job: &'j Job, name: &str, taken: &'j Attribute) -> Option<&'j Value> {
    match taken.role {
        AttributeRole::Output => None,
        AttributeRole::Const => taken.default.as_ref(),
        AttributeRole::Required | AttributeRole::Optional => {
            let known = job.attributes.get(name).map(|given| &given.value);
            known.or(taken.default.as_ref())
        }
    }
}

type Each = Vec<(String, Vec<Value>)>;

/// Arguments shared by all items, and those with a value for each.
fn split(job: &Job, call: &FlowStep) -> Result<(Map<String, Value>, Each), String> {
    let mut plain = Map::new();
    let mut each = Vec::new();
    for (name, taken) in &call.attributes {
        let Some(value) = value_of(job, name, taken) else {
            continue;
        };
        let inner = taken.mapping.as_ref().unwrap_or(name).clone();
        match value {
            Value::Array(values) if taken.for_each => each.push((inner, values.clone())),
            _ if taken.for_each => {
                return Err(format!("`{name}` is for each of its elements, and is no array"));
            }
            value => {
                plain.insert(inner, value.clone());
            }
        }
    }
    Ok((plain, each))
}

/// The arguments as the step's condition sees them: `for_each` values are whole arrays.
pub(crate) fn seen(job: &Job, step: StepId) -> BTreeMap<String, Value> {
    let call = job.plan().call(step);
    let taken = call.into_iter().flat_map(|call| &call.attributes);
    let taken = taken.filter_map(|(name, taken)| {
        let inner = taken.mapping.as_ref().unwrap_or(name);
        Some((inner.clone(), value_of(job, name, taken)?.clone()))
    });
    taken.collect()
}

pub(super) fn each_names(call: &FlowStep) -> impl Iterator<Item = &String> {
    let each = call.attributes.iter();
    let each = each.filter(|(_, taken)| taken.for_each && taken.role != AttributeRole::Output);
    each.map(|(name, taken)| taken.mapping.as_ref().unwrap_or(name))
}
