//! Which steps of a flow can start at all, because all their required inputs can appear.
//!
//! The smallest set that follows from the initial attributes: steps that only wait for each other are not in
//! it. Planning leaves out a provider that is not available if another one is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::workflow::{Attribute, AttributeRole};

type Attributes = BTreeMap<String, Attribute>;

/// The steps are given by their attributes, and are known by their position.
pub(crate) struct AvailableSteps<'a> {
    steps: Vec<&'a Attributes>,
    init: &'a BTreeMap<String, Value>,
    providers: BTreeMap<&'a str, Vec<usize>>,
    available: Vec<bool>,
}

impl<'a> AvailableSteps<'a> {
    pub(crate) fn of(steps: Vec<&'a Attributes>, init: &'a BTreeMap<String, Value>) -> Self {
        let mut providers: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut consumers: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut unmet: Vec<BTreeSet<&str>> = Vec::new();
        for (index, attributes) in steps.iter().enumerate() {
            for (name, _) in attributes.iter().filter(|(_, it)| it.role == AttributeRole::Output) {
                providers.entry(name).or_default().push(index);
            }
            let needed = attributes.iter().filter(|(name, it)| is_needed(it) && !init.contains_key(*name));
            let needed: BTreeSet<&str> = needed.map(|(name, _)| name.as_str()).collect();
            for name in &needed {
                consumers.entry(name).or_default().push(index);
            }
            unmet.push(needed);
        }
        let mut available: Vec<bool> = unmet.iter().map(BTreeSet::is_empty).collect();
        let started = available.iter().enumerate().filter(|(_, available)| **available);
        let mut open: Vec<usize> = started.map(|(index, _)| index).collect();
        while let Some(provider) = open.pop() {
            let outputs = steps.get(provider).into_iter().copied().flatten();
            for (name, _) in outputs.filter(|(_, it)| it.role == AttributeRole::Output) {
                let consumers = consumers.get(name.as_str()).into_iter().flatten();
                for consumer in consumers.copied().filter(|consumer| *consumer != provider) {
                    if let (Some(unmet), Some(available)) =
                        (unmet.get_mut(consumer), available.get_mut(consumer))
                        && unmet.remove(name.as_str())
                        && unmet.is_empty()
                    {
                        *available = true;
                        open.push(consumer);
                    }
                }
            }
        }
        Self { steps, init, providers, available }
    }

    pub(crate) fn has(&self, step: usize) -> bool {
        self.available.get(step).copied().unwrap_or_default()
    }

    /// The inputs of a step that the flow does not start with.
    pub(crate) fn open_inputs(&self, step: usize) -> impl Iterator<Item = (&'a str, &'a Attribute)> {
        let attributes = self.steps.get(step).copied().into_iter().flatten();
        let init = self.init;
        let inputs = attributes.filter(move |(name, it)| {
            matches!(it.role, AttributeRole::Required | AttributeRole::Optional) && !init.contains_key(*name)
        });
        inputs.map(|(name, attribute)| (name.as_str(), attribute))
    }

    /// Every other step that sets an attribute.
    pub(crate) fn others(&self, step: usize, name: &str) -> impl Iterator<Item = usize> {
        let providers = self.providers.get(name).into_iter().flatten();
        providers.copied().filter(move |provider| *provider != step)
    }

    /// The steps from which a step takes an input: the available ones, or all if only they could set an input
    /// that it needs. Then the step is not available itself, and following them shows why.
    pub(crate) fn providers(&self, step: usize, name: &str, input: &Attribute) -> Vec<usize> {
        let available: Vec<usize> = self.others(step, name).filter(|it| self.has(*it)).collect();
        if available.is_empty() && is_needed(input) { self.others(step, name).collect() } else { available }
    }

    /// The inputs that a step needs and that no available step sets.
    pub(crate) fn missing(&self, step: usize) -> Vec<&'a str> {
        let needed = self.open_inputs(step).filter(|(_, it)| is_needed(it));
        let missing = needed.filter(|(name, _)| !self.others(step, name).any(|it| self.has(it)));
        missing.map(|(name, _)| name).collect()
    }
}

fn is_needed(attribute: &Attribute) -> bool {
    attribute.role == AttributeRole::Required && attribute.default.is_none()
}
