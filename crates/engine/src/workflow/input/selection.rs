//! Selects the work items from a document, and their order.
//!
//! The steps have a fixed order, whatever the order of the keys in a file: `json_path`, `filter`,
//! `sort_by`, `distinct`, `offset`, `max_items`, and last the identities. Items are moved, not copied;
//! where a path finds them all over a document, only those that pass all steps are copied.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::identity::identities;
use super::json_path::JsonPath;
use super::reader::InputError;
use crate::workflow::filter::{FieldPath, Filter, SortBy, compare};

/// An item of a step, and the name it keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkItem {
    /// Unique in the step, and independent of the item's position in the input.
    pub identity: String,
    pub input: Value,
}

/// The items of a step, and whether its `json_path` has found nothing at all. A `filter` may well leave no items, but
/// such a path is usually mistyped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SelectedItems {
    pub items: Vec<WorkItem>,
    pub unmatched: bool,
}

/// The default takes every element of an array.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    pub json_path: Option<JsonPath>,
    pub filter: Option<Filter>,
    /// Without it, the order of the document.
    pub sort_by: Option<SortBy>,
    /// Of items with an equal value here, only the first is taken. Missing and null are equal.
    pub distinct: Option<FieldPath>,
    pub offset: usize,
    pub max_items: Option<usize>,
}

impl Selection {
    /// Fails if there is no `json_path` and the document is no array.
    pub fn select(&self, document: Value) -> Result<SelectedItems, InputError> {
        let (items, unmatched) = match (&self.json_path, document) {
            (Some(path), document) => self.found(path, document),
            (None, Value::Array(elements)) => (self.narrowed(elements), false),
            (None, other) => return Err(no_array(&other)),
        };
        let named = identities(&items).into_iter().zip(items);
        let items = named.map(|(identity, input)| WorkItem { identity, input });
        Ok(SelectedItems { items: items.collect(), unmatched })
    }

    fn found(&self, path: &JsonPath, document: Value) -> (Vec<Value>, bool) {
        match path.take_elements(document) {
            Ok(elements) => {
                let unmatched = elements.is_empty();
                (self.narrowed(elements), unmatched)
            }
            Err(document) => {
                let elements = path.query(&document);
                let unmatched = elements.is_empty();
                (self.narrowed(elements).into_iter().cloned().collect(), unmatched)
            }
        }
    }

    fn narrowed<V: Borrow<Value>>(&self, mut items: Vec<V>) -> Vec<V> {
        if let Some(filter) = &self.filter {
            items.retain(|item| filter.matches(item.borrow()));
        }
        if let Some(order) = &self.sort_by {
            items = order.sort(items);
        }
        if let Some(path) = &self.distinct {
            items = distinct(items, path);
        }
        let most = self.max_items.unwrap_or(usize::MAX);
        items.truncate(self.offset.saturating_add(most));
        items.drain(..self.offset.min(items.len()));
        items
    }
}

fn distinct<V: Borrow<Value>>(items: Vec<V>, path: &FieldPath) -> Vec<V> {
    let values = items.iter().map(|item| path.get(item.borrow()).unwrap_or(&Value::Null));
    let mut values: Vec<(&Value, usize)> = values.zip(0..).collect();
    // The sort is stable, so the first of equal values is the first item.
    values.sort_by(|(a, _), (b, _)| compare(a, b));
    let equal = values.chunk_by(|(a, _), (b, _)| compare(a, b).is_eq());
    let first: BTreeSet<usize> = equal.filter_map(|items| Some(items.first()?.1)).collect();
    let items = items.into_iter().zip(0..);
    items.filter_map(|(item, index)| first.contains(&index).then_some(item)).collect()
}

fn no_array(document: &Value) -> InputError {
    let kind = match document {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    let message = format!("the document is {kind}, not an array of items");
    InputError::new(None, message).help(match array_in(document) {
        Some(name) => format!("select the array in `{name}` with `json_path: \"{}\"`", path_to(name)),
        None => "select the items with `json_path`, as in `json_path: \"$.items[*]\"`".to_owned(),
    })
}

fn array_in(document: &Value) -> Option<&str> {
    document.as_object()?.iter().find_map(|(name, value)| value.is_array().then_some(name.as_str()))
}

fn path_to(name: &str) -> String {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return format!("$.{name}[*]");
    }
    let name = name.replace('\\', "\\\\").replace('\'', "\\'");
    format!("$['{name}'][*]")
}

#[cfg(test)]
mod tests;
