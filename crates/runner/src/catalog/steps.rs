//! A cache of checked steps.
//!
//! The catalog has the definitions of registered steps; this cache has the checked steps, so that a
//! definition is checked once, however often it is registered and however many flows need it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use undaunted_engine::workflow::{
    Diagnostic, FlowStep, Operator, Source, check_registered_step, check_step, plain_definition,
    without_unset,
};

use super::CatalogHandle;
use crate::error_text::diagnostics_line;
use crate::{JournalError, locked};

/// Cached definitions beyond those of the catalog: replaced or refused ones.
const SPARE: usize = 1024;

pub(crate) struct CheckedSteps {
    catalog: CatalogHandle,
    operator: Operator,
    known: Mutex<BTreeMap<Arc<str>, StepCheck>>,
    /// Definitions that were accepted for registration.
    new: Mutex<BTreeMap<Arc<str>, Arc<RegisteredStep>>>,
}

type DefinitionCheck = fn(&Source, &Operator) -> Result<(String, FlowStep), Vec<Diagnostic>>;

type StepCheck = Result<Arc<RegisteredStep>, String>;

#[derive(Debug)]
pub(crate) struct RegisteredStep {
    pub(crate) id: String,
    /// Without unknown keys and nulls; it becomes part of the texts of its flows.
    pub(crate) definition: Value,
    pub(crate) checked: Arc<FlowStep>,
}

impl RegisteredStep {
    /// Checks the definition of a step that is registered already, perhaps by an earlier release.
    pub(crate) fn check(definition: &Value, operator: &Operator) -> Result<Self, String> {
        Self::check_by(check_registered_step, plain_definition(definition), operator)
    }

    /// Checks the definition of a step that is to be registered: unknown keys are refused by name.
    fn check_new(definition: &Value, operator: &Operator) -> Result<Self, String> {
        Self::check_by(check_step, without_unset(definition), operator)
    }

    fn check_by(check: DefinitionCheck, definition: Value, operator: &Operator) -> Result<Self, String> {
        let source = Source::new("step", definition.to_string());
        match check(&source, operator) {
            Ok((id, step)) => Ok(Self { id, definition, checked: Arc::new(step) }),
            Err(found) => Err(diagnostics_line(&source, &found)),
        }
    }
}

impl CheckedSteps {
    pub(crate) fn new(catalog: CatalogHandle, operator: Operator) -> Self {
        Self { catalog, operator, known: Mutex::default(), new: Mutex::default() }
    }

    pub(crate) fn check(&self, definition: &Value) -> StepCheck {
        self.check_given(definition.to_string().into(), || definition.clone())
    }

    /// Checks a definition that is to be registered.
    pub(crate) fn check_new(&self, definition: &Value) -> StepCheck {
        let given: Arc<str> = definition.to_string().into();
        if let Some(known) = locked(&self.new).get(&given) {
            return Ok(Arc::clone(known));
        }
        let checked = Arc::new(RegisteredStep::check_new(definition, &self.operator)?);
        let mut new = locked(&self.new);
        if new.len() >= SPARE {
            new.clear();
        }
        let _ = new.insert(Arc::clone(&given), Arc::clone(&checked));
        // What is accepted by all rules is accepted without the newer ones.
        self.keep(given, Ok(Arc::clone(&checked)));
        Ok(checked)
    }

    /// The steps of the catalog by id, without those that only an earlier release accepted.
    pub(crate) fn all(&self) -> Result<BTreeMap<String, Arc<RegisteredStep>>, JournalError> {
        let steps = self.catalog.read(|catalog| catalog.steps.clone())?.into_iter();
        let steps = steps.filter_map(|(id, given)| {
            let read = || serde_json::from_str(&given).unwrap_or_default();
            Some((id, self.check_given(Arc::clone(&given), read).ok()?))
        });
        Ok(steps.collect())
    }

    fn check_given(&self, given: Arc<str>, definition: impl FnOnce() -> Value) -> StepCheck {
        if let Some(known) = locked(&self.known).get(&given) {
            return known.clone();
        }
        let checked = RegisteredStep::check(&definition(), &self.operator).map(Arc::new);
        self.keep(given, checked.clone());
        checked
    }

    fn keep(&self, given: Arc<str>, checked: StepCheck) {
        let mut known = locked(&self.known);
        self.catalog.cached(|catalog, _| {
            if known.len() > catalog.steps.len().saturating_add(SPARE) {
                let wanted: BTreeSet<&Arc<str>> = catalog.steps.values().collect();
                known.retain(|given, _| wanted.contains(given));
            }
        });
        known.insert(given, checked);
    }
}
