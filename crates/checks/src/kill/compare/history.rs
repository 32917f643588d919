//! The laws a journal keeps by itself, however often somebody was killed.

use std::collections::{BTreeMap, BTreeSet};

use super::case::Case;
use crate::kill::found::{Found, Kind};
use crate::kill::journal::{Event, Place};
use crate::kill::plan::Drawn;

#[derive(Default)]
struct Reading {
    made: BTreeMap<Place, u64>,
    open: BTreeMap<Place, u64>,
    due: BTreeMap<Place, u64>,
    starts: BTreeSet<Option<u64>>,
    succeeded: BTreeSet<Place>,
    settled: BTreeMap<String, String>,
    /// Breakers that let nobody through but a probe.
    shut: BTreeSet<String>,
    ended: bool,
}

pub(super) fn check(case: &Case<'_>, found: &mut Found) {
    let mut reading = Reading::default();
    let mut seq = 0_u64;
    for event in case.events {
        // What happens to breakers is recorded with them, and has no number in a job.
        let is_own = event.number("seq").is_some() || !event.kind.starts_with("breaker_");
        seq = seq.saturating_add(is_own.into());
        let numbered = !is_own || event.number("seq") == Some(seq);
        found.claim(Kind::Lost, numbered, || format!("event {seq} is missing: {}", event.told()));
        found.claim(Kind::Unlawful, !reading.ended, || format!("after the end: {}", event.told()));
        reading.read(case, event, found);
    }
    if !reading.ended {
        let last = case.events.last().map(Event::told).unwrap_or_default();
        found.lost(format!("the job never ends; its last event is {last}"));
        return;
    }
    let open: Vec<_> = reading.open.keys().map(|(_, command)| command).collect();
    found.claim(Kind::Lost, open.is_empty(), || {
        format!("the job has ended, and attempts of {open:?} never do")
    });
    every_item_ends(case, found);
}

impl Reading {
    fn read(&mut self, case: &Case<'_>, event: &Event, found: &mut Found) {
        match event.kind.as_str() {
            "attempt_started" => self.started(case, event, found),
            "attempt_succeeded" | "attempt_failed" => self.attempt_ended(event, found),
            "retry_scheduled" => {
                let due = event.time("due_at").unwrap_or_default();
                let before = self.due.insert(event.place(), due);
                found.claim(Kind::Duplicated, before.is_none(), || {
                    format!("a retry is scheduled twice: {}", event.told())
                });
            }
            "command_stopped" => {
                // Its handler runs from the beginning, in every round of it.
                let of = event.text("correlation_id").to_owned();
                let is_handler = |(item, command): &Place| {
                    let drawn = case.plan.commands.get(command);
                    *item == of && drawn.is_some_and(|it| it.is_handler)
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
                found.claim(Kind::Duplicated, before.is_none(), || {
                    format!("an item ends twice: {}", event.told())
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

    fn started(&mut self, case: &Case<'_>, event: &Event, found: &mut Found) {
        let place = event.place();
        let made = self.made.entry(place.clone()).or_default();
        *made = made.saturating_add(1);
        let made = *made;
        found.claim(Kind::Duplicated, event.attempt() == made, || {
            format!("attempt {made} was expected: {}", event.told())
        });
        let fresh = self.starts.insert(event.number("start"));
        found.claim(Kind::Duplicated, fresh, || {
            format!("a start with a number that was used: {}", event.told())
        });
        let other = self.open.insert(place.clone(), made);
        found.claim(Kind::Duplicated, other.is_none(), || {
            format!("another attempt has not ended: {}", event.told())
        });
        let done = self.succeeded.contains(&place);
        found.claim(Kind::Duplicated, !done, || format!("its success is on record: {}", event.told()));
        let due = self.due.remove(&place).unwrap_or_default();
        found.claim(Kind::Unlawful, due <= event.at, || {
            format!("a retry is started before it is due: {}", event.told())
        });
        let most = case.plan.commands.get(&place.1).map(Drawn::most);
        found.claim(Kind::Duplicated, most.is_some_and(|most| made <= most), || {
            format!("more attempts than the allowed {most:?}: {}", event.told())
        });
        let shut = self.shut.contains(event.text("breaker")) && !event.flag("probe");
        found.claim(Kind::Unlawful, !shut, || format!("started while its breaker is open: {}", event.told()));
    }

    fn attempt_ended(&mut self, event: &Event, found: &mut Found) {
        let place = event.place();
        let open = self.open.remove(&place);
        found.claim(Kind::Duplicated, open == Some(event.attempt()), || {
            format!("what does not run cannot end: {}", event.told())
        });
        if event.is("attempt_succeeded") {
            self.succeeded.insert(place);
        }
    }
}

/// Every item of a map that was begun has ended once.
fn every_item_ends(case: &Case<'_>, found: &mut Found) {
    let mut read = case.events.iter().filter(|it| it.is("items_read"));
    if read.next().is_none() {
        return;
    }
    let mut items: BTreeMap<&str, u64> = BTreeMap::new();
    for event in case.events {
        if ["item_succeeded", "item_dead_lettered", "item_skipped"].contains(&event.kind.as_str()) {
            let times = items.entry(event.text("item")).or_default();
            *times = times.saturating_add(1);
        }
    }
    for item in &case.plan.items {
        found.claim(Kind::Lost, items.contains_key(item.as_str()), || format!("item {item} never ends"));
    }
}
