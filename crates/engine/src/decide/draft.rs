//! The draft of one decision: its events so far, and the job and the time that it is about.
//!
//! No part of a decision changes the job or the time. A long text is kept once and referred to by number.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use undaunted_policy::Timestamp;

use super::words;
use crate::event::{Event, JobEvent, StoredText};
use crate::job::{ActiveItem, Job};

pub(super) struct EventDraft<'j> {
    pub(super) job: &'j Job,
    pub(super) now: Timestamp,
    events: Vec<Event>,
    numbers: BTreeMap<Rc<str>, u32>,
    kept: Vec<Rc<str>>,
    bytes: usize,
}

impl<'j> EventDraft<'j> {
    pub(super) fn new(job: &'j Job, now: Timestamp) -> Self {
        Self { job, now, events: Vec::new(), numbers: BTreeMap::new(), kept: Vec::new(), bytes: 0 }
    }

    pub(super) fn push(&mut self, event: impl Into<Event>) {
        self.events.push(event.into());
    }

    /// Refers to a text. One that is worth sharing and not kept yet is kept first, by an event of its own.
    pub(super) fn text(&mut self, text: &str) -> StoredText {
        // A reference costs as much as a short text.
        const SHORT: usize = 8;
        if text.len() <= SHORT {
            return StoredText::Itself(text.to_owned());
        }
        let known = self.job.texts.number(text);
        if let Some(number) = known.or_else(|| self.numbers.get(text).copied()) {
            return StoredText::Kept(number);
        }
        let room = self.job.texts.room_for(text, self.kept.len(), self.bytes);
        let Some(number) = room else { return StoredText::Itself(text.to_owned()) };
        let shared: Rc<str> = text.into();
        self.numbers.insert(Rc::clone(&shared), number);
        self.kept.push(shared);
        self.bytes = self.bytes.saturating_add(text.len());
        self.events.push(Event::Job(JobEvent::TextKept { text: text.to_owned() }));
        StoredText::Kept(number)
    }

    pub(super) fn after(&self, time: Option<Duration>) -> Option<Timestamp> {
        time.map(|time| self.now.after(time))
    }

    /// Empty if no attempt has failed.
    pub(super) fn last_error(&self, active: &ActiveItem) -> String {
        let lines = active.error.as_ref().map_or("", |lines| self.job.texts.read(lines));
        // The error of a round whose handler failed too has its cause in its text.
        active.cause.map_or_else(|| lines.to_owned(), |cause| words::of_failure(cause, active.limit, lines))
    }

    pub(super) fn into_events(self) -> Vec<Event> {
        self.events
    }
}
