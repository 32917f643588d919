//! The laws that a journal keeps by itself, whatever was killed.

use std::collections::{BTreeMap, BTreeSet};

use super::KillEvidence;
use crate::kill::findings::{KillFindings, ViolationKind};
use crate::kill::journal::{CommandKey, JournalEvent};
use crate::kill::plan::PlannedCommand;

#[derive(Default)]
struct HistoryCheck {
    made: BTreeMap<CommandKey, u64>,
    open: BTreeMap<CommandKey, u64>,
    due: BTreeMap<CommandKey, u64>,
    starts: BTreeSet<Option<u64>>,
    succeeded: BTreeSet<CommandKey>,
    settled: BTreeMap<String, String>,
    /// Breakers that admit only probes.
    shut: BTreeSet<String>,
    ended: bool,
}

pub(super) fn check(case: &KillEvidence<'_>, findings: &mut KillFindings) {
    let mut reading = HistoryCheck::default();
    let mut seq = 0_u64;
    for event in case.events {
        // Breaker events are recorded with the breaker and have no number in the job.
        let is_own = event.number("seq").is_some() || !event.kind.starts_with("breaker_");
        seq += u64::from(is_own);
        let numbered = !is_own || event.number("seq") == Some(seq);
        findings.require(ViolationKind::Lost, numbered, || {
            format!("event {seq} is missing: {}", event.describe())
        });
        findings.require(ViolationKind::Unlawful, !reading.ended, || {
            format!("after the end: {}", event.describe())
        });
        reading.read(case, event, findings);
    }
    if !reading.ended {
        let last = case.events.last().map(JournalEvent::describe).unwrap_or_default();
        findings.lost(format!("the job never ends; its last event is {last}"));
        return;
    }
    let open: Vec<_> = reading.open.keys().map(|(_, command)| command).collect();
    findings.require(ViolationKind::Lost, open.is_empty(), || {
        format!("the job has ended, and attempts of {open:?} never do")
    });
    every_item_ends(case, findings);
}

impl HistoryCheck {
    fn read(&mut self, case: &KillEvidence<'_>, event: &JournalEvent, findings: &mut KillFindings) {
        match event.kind.as_str() {
            "attempt_started" => self.started(case, event, findings),
            "attempt_succeeded" | "attempt_failed" => self.attempt_ended(event, findings),
            "retry_scheduled" => {
                let due = event.time("due_at").unwrap_or_default();
                let before = self.due.insert(event.place(), due);
                findings.require(ViolationKind::Duplicated, before.is_none(), || {
                    format!("a retry is scheduled twice: {}", event.describe())
                });
            }
            "command_stopped" => {
                // A handler runs from the beginning in every round.
                let of = event.text("correlation_id").to_owned();
                let is_handler = |(item, command): &CommandKey| {
                    let planned = case.plan.commands.get(command);
                    *item == of && planned.is_some_and(|it| it.is_handler)
                };
                self.made.retain(|place, _| !is_handler(place));
                self.succeeded.retain(|place| !is_handler(place));
                // A retry that was given up is not made.
                self.due.remove(&event.place());
            }
            "item_succeeded" | "item_dead_lettered" | "item_skipped" => {
                let item = event.text("correlation_id").to_owned();
                self.due.retain(|(of, _), _| *of != item);
                let before = self.settled.insert(item, event.kind.clone());
                findings.require(ViolationKind::Duplicated, before.is_none(), || {
                    format!("an item ends twice: {}", event.describe())
                });
            }
            "breaker_opened" => {
                self.shut.insert(event.text("breaker").to_owned());
            }
            "breaker_closed" => {
                self.shut.remove(event.text("breaker"));
            }
            _ => self.ended |= event.is_end(),
        }
    }

    fn started(&mut self, case: &KillEvidence<'_>, event: &JournalEvent, findings: &mut KillFindings) {
        let place = event.place();
        let made = self.made.entry(place.clone()).or_default();
        *made += 1;
        let made = *made;
        findings.require(ViolationKind::Duplicated, event.attempt() == made, || {
            format!("attempt {made} was expected: {}", event.describe())
        });
        let fresh = self.starts.insert(event.number("start"));
        findings.require(ViolationKind::Duplicated, fresh, || {
            format!("a start with a number that was used: {}", event.describe())
        });
        let other = self.open.insert(place.clone(), made);
        findings.require(ViolationKind::Duplicated, other.is_none(), || {
            format!("another attempt has not ended: {}", event.describe())
        });
        let done = self.succeeded.contains(&place);
        findings.require(ViolationKind::Duplicated, !done, || {
            format!("its success is on record: {}", event.describe())
        });
        let due = self.due.remove(&place).unwrap_or_default();
        findings.require(ViolationKind::Unlawful, due <= event.at, || {
            format!("a retry is started before it is due: {}", event.describe())
        });
        let most = case.plan.commands.get(&place.1).map(PlannedCommand::most);
        findings.require(ViolationKind::Duplicated, most.is_some_and(|most| made <= most), || {
            format!("more attempts than the allowed {most:?}: {}", event.describe())
        });
        let shut = self.shut.contains(event.text("breaker")) && !event.flag("probe");
        findings.require(ViolationKind::Unlawful, !shut, || {
            format!("started while its breaker is open: {}", event.describe())
        });
    }

    fn attempt_ended(&mut self, event: &JournalEvent, findings: &mut KillFindings) {
        let place = event.place();
        let open = self.open.remove(&place);
        findings.require(ViolationKind::Duplicated, open == Some(event.attempt()), || {
            format!("what does not run cannot end: {}", event.describe())
        });
        if event.is("attempt_succeeded") {
            self.succeeded.insert(place);
        }
    }
}

/// Every item of a map has ended exactly once.
fn every_item_ends(case: &KillEvidence<'_>, findings: &mut KillFindings) {
    let mut read = case.events.iter().filter(|it| it.is("items_read"));
    if read.next().is_none() {
        return;
    }
    let mut items: BTreeMap<&str, u64> = BTreeMap::new();
    for event in case.events {
        if ["item_succeeded", "item_dead_lettered", "item_skipped"].contains(&event.kind.as_str()) {
            *items.entry(event.text("item")).or_default() += 1;
        }
    }
    for item in &case.plan.items {
        findings.require(ViolationKind::Lost, items.contains_key(item.as_str()), || {
            format!("item {item} never ends")
        });
    }
}
