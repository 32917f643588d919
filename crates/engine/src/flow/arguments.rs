//! What the items of a step are given: its arguments, and every combination of what is for each.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::event::NewItem;
use crate::id::StepId;
use crate::job::Job;
use crate::workflow::{Attribute, FlowStep, Role};

/// The most items that one step may have.
const MOST: usize = 100_000;

/// The items of a step that is ready, or why there are none to be had.
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
        format!(
            "{} together make more than {MOST} items",
            names.join(" and ")
        )
    })?;
    let alone = each.is_empty();
    let items = (0..many).map(|number| {
        let mut arguments = plain.clone();
        let mut rest = number;
        // The last one turns fastest.
        for (name, values) in each.iter().rev() {
            let value = rest.checked_rem(values.len()).and_then(|at| values.get(at));
            rest = rest.checked_div(values.len()).unwrap_or_default();
            arguments.insert(name.clone(), value.cloned().unwrap_or_default());
        }
        NewItem {
            identity: if alone {
                found.name.clone()
            } else {
                format!("{}[{number}]", found.name)
            },
            input: Value::Object(arguments).to_string(),
        }
    });
    Ok(items.collect())
}

/// What a step is given for an attribute, if anything.
fn value_of<'j>(job: &'j Job, name: &str, taken: &'j Attribute) -> Option<&'j Value> {
    match taken.role {
        Role::Output => None,
        Role::Const => taken.default.as_ref(),
        Role::Required | Role::Optional => {
            let known = job.attributes.get(name).map(|given| &given.value);
            known.or(taken.default.as_ref())
        }
    }
}

type Each = Vec<(String, Vec<Value>)>;

/// Arguments that are the same for all items, and those that are for each.
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
                return Err(format!(
                    "`{name}` is for each of its elements, and is no array"
                ));
            }
            value => {
                plain.insert(inner, value.clone());
            }
        }
    }
    Ok((plain, each))
}

/// What the condition of a step sees: its arguments, those that are for each as they are.
pub(crate) fn seen(job: &Job, step: StepId) -> BTreeMap<String, Value> {
    let call = job.plan().call(step);
    let taken = call.into_iter().flat_map(|call| &call.attributes);
    let taken = taken.filter_map(|(name, taken)| {
        let inner = taken.mapping.as_ref().unwrap_or(name);
        Some((inner.clone(), value_of(job, name, taken)?.clone()))
    });
    taken.collect()
}

/// The names of the arguments that are for each.
pub(super) fn each_names(call: &FlowStep) -> impl Iterator<Item = &String> {
    let each = call.attributes.iter();
    let each = each.filter(|(_, taken)| taken.for_each && taken.role != Role::Output);
    each.map(|(name, taken)| taken.mapping.as_ref().unwrap_or(name))
}
