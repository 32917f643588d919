//! The laws that a journal keeps by itself, whatever was killed.

use std::collections::{BTreeMap, BTreeSet};

use super::KillEvidence;
use crate::kill::findings::KillFindings;
use crate::kill::journal::{CommandKey, JournalEvent};
use crate::kill::plan::PlannedCommand;

#[derive(Default)]
struct HistoryCheck {
    made: BTreeMap<CommandKey, u64>,
    /// Of those, the attempts in earlier rounds of a handler.
    before: BTreeMap<CommandKey, u64>,
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
        findings.lost_unless(numbered, format_args!("event {seq} is missing: {event}"));
        findings.unlawful_unless(!reading.ended, format_args!("after the end: {event}"));
        reading.read(case, event, findings);
    }
    if !reading.ended {
        let last = case.events.last().map(ToString::to_string).unwrap_or_default();
        findings.lost(format_args!("the job never ends; its last event is {last}"));
        return;
    }
    let open: Vec<_> = reading.open.keys().map(|(_, command)| command).collect();
    findings
        .lost_unless(open.is_empty(), format_args!("the job has ended, and attempts of {open:?} never do"));
    every_item_ends(case, findings);
}

impl HistoryCheck {
    fn read(&mut self, case: &KillEvidence<'_>, event: &JournalEvent, findings: &mut KillFindings) {
        match event.kind.as_str() {
            "attempt_started" => self.started(case, event, findings),
            "attempt_succeeded" | "attempt_failed" => self.attempt_ended(event, findings),
            "retry_scheduled" => {
                let due = event.time("due_at").unwrap_or_default();
                let before = self.due.insert(event.key(), due);
                findings
                    .duplicated_unless(before.is_none(), format_args!("a retry is scheduled twice: {event}"));
            }
            "command_stopped" => {
                // A handler runs from the beginning in every round; its attempts are numbered over all of them.
                let of = event.text("correlation_id").to_owned();
                let is_handler = |(item, command): &CommandKey| {
                    let planned = case.plan.commands.get(command);
                    *item == of && planned.is_some_and(|it| it.is_handler)
                };
                let made = self.made.iter().filter(|(key, _)| is_handler(key));
                self.before.extend(made.map(|(key, made)| (key.clone(), *made)));
                self.succeeded.retain(|key| !is_handler(key));
                // A retry that was given up is not made.
                self.due.remove(&event.key());
            }
            "item_succeeded" | "item_dead_lettered" | "item_skipped" => {
                let item = event.text("correlation_id").to_owned();
                self.due.retain(|(of, _), _| *of != item);
                let before = self.settled.insert(item, event.kind.clone());
                findings.duplicated_unless(before.is_none(), format_args!("an item ends twice: {event}"));
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
        let key = event.key();
        let made = self.made.entry(key.clone()).or_default();
        *made += 1;
        let made = *made;
        findings
            .duplicated_unless(event.attempt() == made, format_args!("attempt {made} was expected: {event}"));
        let fresh = self.starts.insert(event.number("start"));
        findings.duplicated_unless(fresh, format_args!("a start with a number that was used: {event}"));
        let other = self.open.insert(key.clone(), made);
        findings.duplicated_unless(other.is_none(), format_args!("another attempt has not ended: {event}"));
        let done = self.succeeded.contains(&key);
        findings.duplicated_unless(!done, format_args!("its success is on record: {event}"));
        let due = self.due.remove(&key).unwrap_or_default();
        findings
            .unlawful_unless(due <= event.at, format_args!("a retry is started before it is due: {event}"));
        let most = case.plan.commands.get(&key.1).map(PlannedCommand::most);
        let before = self.before.get(&key).copied().unwrap_or_default();
        let is_allowed = most.is_some_and(|most| made.saturating_sub(before) <= most);
        findings
            .duplicated_unless(is_allowed, format_args!("more attempts than the allowed {most:?}: {event}"));
        let shut = self.shut.contains(event.text("breaker")) && !event.flag("probe");
        findings.unlawful_unless(!shut, format_args!("started while its breaker is open: {event}"));
    }

    fn attempt_ended(&mut self, event: &JournalEvent, findings: &mut KillFindings) {
        let key = event.key();
        let open = self.open.remove(&key);
        findings.duplicated_unless(
            open == Some(event.attempt()),
            format_args!("what does not run cannot end: {event}"),
        );
        if event.is("attempt_succeeded") {
            self.succeeded.insert(key);
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
        findings.lost_unless(items.contains_key(item.as_str()), format_args!("item {item} never ends"));
    }
}
