//! Dead letters: their reasons, errors and attempts.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use undaunted_policy::Reason;

use super::attempt::{AttemptView, attempt};
use super::context::command_id;
use super::history::History;
use super::signature::{signature, signature_id};
use super::time::InstantView;
use crate::id::ItemId;
use crate::job::{ItemState, Job, SettledItem};
use crate::task::correlation_id;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeadLetterView {
    pub item: String,
    pub index: u32,
    pub input: Value,
    pub reason: Option<Reason>,
    pub error: Option<String>,
    /// When the item became a dead letter.
    pub at: Option<InstantView>,
    pub round: u32,
    pub correlation_id: String,
    /// Attempts of all commands and rounds.
    pub attempts: Vec<AttemptView>,
}

impl DeadLetterView {
    /// The job must know the name and the input of the item.
    pub fn of(job: &Job, item: ItemId, history: &History) -> Self {
        let end = history.end.as_ref();
        let attempts = history.attempts.iter();
        Self {
            item: job.identity(item).to_owned(),
            index: item.index,
            input: serde_json::from_str(job.value(item)).unwrap_or_default(),
            reason: end.and_then(|end| end.reason),
            error: end.and_then(|end| end.error.clone()),
            at: end.map(|end| InstantView(end.at)),
            round: history.round.max(1),
            correlation_id: correlation_id(job, item),
            attempts: attempts.map(|it| attempt(job, it)).collect(),
        }
    }
}

/// A dead letter in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeadLetterLine {
    pub item: String,
    pub reason: Reason,
    /// The command that failed.
    pub command: Option<String>,
    /// Attempts of that command in its last round.
    pub attempts: u32,
    /// The last error; null without error output.
    pub error: Option<String>,
}

impl DeadLetterLine {
    pub fn of(job: &Job, item: ItemId) -> Option<Self> {
        let ItemState::Settled(SettledItem::Dead(reason)) = job.item(item)? else {
            return None;
        };
        let dead = job.dead.get(&item)?;
        Some(Self {
            item: job.identity(item).to_owned(),
            reason,
            command: command_id(job, dead.command),
            attempts: dead.attempts,
            error: dead
                .error
                .as_ref()
                .map(|error| job.texts.read(error).to_owned())
                .filter(|error| !error.is_empty()),
        })
    }
}

/// Dead letters whose errors differ only in numbers, paths and ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeadLetterGroup {
    pub signature: String,
    /// The signature as an argument of a command.
    pub signature_id: String,
    pub count: u64,
    pub items: Vec<String>,
}

/// The items of dead letters by the signature of their errors, the largest group first.
pub fn group_dead_letters(job: &Job, items: impl IntoIterator<Item = ItemId>) -> Vec<(String, Vec<ItemId>)> {
    let mut groups: BTreeMap<String, Vec<ItemId>> = BTreeMap::new();
    let mut signatures: BTreeMap<&str, String> = BTreeMap::new();
    for item in items {
        let error = job.dead.get(&item).and_then(|dead| dead.error.as_ref());
        let error = error.map_or("", |error| job.texts.read(error));
        let found = signatures.entry(error).or_insert_with(|| signature(error));
        match groups.get_mut(found.as_str()) {
            Some(group) => group.push(item),
            None => drop(groups.insert(found.clone(), vec![item])),
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then_with(|| a.0.cmp(&b.0)));
    groups
}

impl DeadLetterGroup {
    pub fn of(job: &Job, (signature, items): (String, Vec<ItemId>)) -> Self {
        let names = items.iter().map(|item| job.identity(*item).to_owned());
        Self {
            signature_id: signature_id(&signature),
            signature,
            count: u64::try_from(items.len()).unwrap_or(u64::MAX),
            items: names.collect(),
        }
    }
}
