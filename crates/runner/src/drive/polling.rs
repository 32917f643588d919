//! Polling the store: the event loop asks one question a poll, which is answered outside the loop.
//!
//! During an outage nothing is submitted and nothing starts. The loop repeats its question, less and less
//! often. When the store answers again, every batch whose fate is unknown is submitted again, in the original
//! order. If the first submission had succeeded, the second one conflicts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use undaunted_store::{AggregateId, Findings, Question, StoreError, Version};

use super::{DriveError, EventLoop, JobDriver, Message, StoreOutage};
use crate::journal;

/// How often to poll for requests and records of other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The longest wait between two questions during an outage.
const MAX_RECONNECT_WAIT: Duration = Duration::from_secs(5);

pub(super) struct StorePolling<'w> {
    /// When the last poll began, as an uptime.
    began: Duration,
    pending: Option<PendingQuestion>,
    /// The pulse of the last findings, and the journals they were about.
    last: Option<(u64, BTreeSet<AggregateId>)>,
    /// The last question failed, but not for an outage.
    failed: bool,
    outage: Option<Outage>,
    /// Jobs that could not begin during an outage.
    unbegun: Vec<JobDriver<'w>>,
}

struct PendingQuestion {
    question: Question,
    /// A regular poll, rather than a question between two polls for which a start waits.
    is_poll: bool,
    /// A job was added since then; requests to it may be older than the question.
    is_outdated: bool,
}

struct Outage {
    since: Duration,
    tries: u32,
    next: Duration,
    error: StoreError,
}

impl StorePolling<'_> {
    pub(super) const fn new(now: Duration) -> Self {
        Self { began: now, pending: None, last: None, failed: false, outage: None, unbegun: Vec::new() }
    }

    /// Whether the store can be asked between two polls.
    pub(super) const fn may_ask(&self) -> bool {
        self.pending.is_none() && self.outage.is_none()
    }

    pub(super) fn idle_time(&self, now: Duration) -> Duration {
        match (&self.outage, &self.pending) {
            // The answer wakes the loop.
            (_, Some(_)) => POLL_INTERVAL,
            (Some(outage), None) => outage.next.saturating_sub(now),
            (None, None) => POLL_INTERVAL.saturating_sub(now.saturating_sub(self.began)),
        }
    }

    /// When to ask again during an outage, as an uptime.
    pub(super) fn next_try(&self) -> Option<Duration> {
        self.pending.is_none().then_some(self.outage.as_ref()?.next)
    }

    /// A job was added, which the last findings do not cover.
    pub(super) fn forget_last(&mut self) {
        self.last = None;
        if let Some(pending) = &mut self.pending {
            pending.is_outdated = true;
        }
    }
}

impl<'w> EventLoop<'w> {
    /// Asks the store if a poll is due or a start waits for an answer, unless a question is pending.
    pub(super) fn ask_store(&mut self) {
        let now = self.services.machine.uptime();
        let is_due = match &self.polling.outage {
            Some(outage) => now >= outage.next,
            None => now.saturating_sub(self.polling.began) >= POLL_INTERVAL,
        };
        let is_wanted = self.polling.may_ask() && self.breakers.borrow().has_questions();
        if self.polling.pending.is_some() || !(is_due || is_wanted) {
            return;
        }
        let mut awaits = BTreeSet::new();
        if is_due {
            self.polling.began = now;
            self.note_alive();
            awaits = self.sub_flows_elsewhere();
        }
        awaits.extend(self.breakers.borrow_mut().overdue_probes());
        let follows = self.breakers.borrow().follows();
        let last = self.polling.last.as_ref().filter(|(_, of)| follows.keys().all(|name| of.contains(name)));
        let since = last.map(|(pulse, _)| *pulse);
        let since = since.filter(|_| !follows.values().any(|known| *known == Version::EMPTY));
        let question = Question { follows, awaits, since };
        self.polling.pending =
            Some(PendingQuestion { question: question.clone(), is_poll: is_due, is_outdated: false });
        let sender = self.sender.clone();
        self.services.store.ask(
            question,
            // A loop that has ended needs no answer.
            Box::new(move |found| drop(sender.send(Message::Found(Box::new(found))))),
        );
    }

    /// Handles the answer of the store. Returns whether it has consequences.
    pub(super) fn found(
        &mut self,
        found: Result<Findings, StoreError>,
        touched: &mut BTreeMap<Arc<str>, bool>,
    ) -> bool {
        let Some(pending) = self.polling.pending.take() else {
            return false;
        };
        let mut findings = match found {
            Ok(findings) => findings,
            Err(error) if error.is_outage() => {
                self.begin_outage(&error);
                return true;
            }
            // A single error may be transient; the loop asks again at once.
            Err(error) if std::mem::replace(&mut self.polling.failed, true) => {
                self.give_up(&error);
                return true;
            }
            Err(_) => {
                self.polling.began = Duration::ZERO;
                return true;
            }
        };
        self.polling.failed = false;
        let of = pending.question.follows.keys().cloned().collect();
        self.polling.last = (!pending.is_outdated).then_some((findings.pulse, of));
        let mut matters = !findings.requests.is_empty() || !findings.records.is_empty();
        let mut breakers = self.breakers.borrow_mut();
        breakers.apply_findings(&pending.question, &mut findings);
        if pending.is_poll {
            // An error about a breaker is reported to the jobs that use it.
            drop(breakers.maintain());
        }
        for job in breakers.take_waiting() {
            matters = true;
            touched.entry(job).or_default();
        }
        drop(breakers);
        for (aggregate, requests) in findings.requests {
            let name: Arc<str> = aggregate.id().into();
            let entry = self.jobs.get_mut(&name).filter(|_| aggregate.family() == journal::FAMILY);
            match (entry, requests) {
                (None, _) => {}
                (Some(entry), Ok(requests)) => {
                    entry.drive.handle_requests(requests);
                    touched.entry(name).or_default();
                }
                (Some(_), Err(error)) => self.settle(&name, Err(error.into())),
            }
        }
        matters |= self.end_outage(touched);
        matters | self.look_for_sub_flows(&findings.unowned)
    }

    /// The store cannot be reached: everything waits, for longer after each failed question.
    pub(super) fn begin_outage(&mut self, error: &StoreError) {
        let now = self.services.machine.uptime();
        self.breakers.borrow_mut().is_cut_off = true;
        let outage = self.polling.outage.get_or_insert_with(|| Outage {
            since: now,
            tries: 0,
            next: now,
            error: error.clone(),
        });
        if self.polling.pending.is_some() || now < outage.next {
            return;
        }
        let is_first = outage.tries == 0;
        outage.tries = outage.tries.saturating_add(1);
        let longest = POLL_INTERVAL.saturating_mul(1 << outage.tries.min(8)).min(MAX_RECONNECT_WAIT);
        // Jittered, so that processes that have lost the same store do not all ask at the same instant.
        let part = now.subsec_nanos() % 512;
        let spread = longest.saturating_mul(part) / 1024;
        outage.next = now.saturating_add(longest).saturating_sub(spread);
        outage.error = error.clone();
        if is_first {
            self.notify_outage(&StoreOutage::Begins(error));
        }
        if self.interrupts > 1 {
            self.give_up(error);
        }
    }

    /// The store has answered: submits and begins everything that waited. Returns whether there was an
    /// outage.
    fn end_outage(&mut self, touched: &mut BTreeMap<Arc<str>, bool>) -> bool {
        let Some(outage) = self.polling.outage.take() else {
            return false;
        };
        self.breakers.borrow_mut().is_cut_off = false;
        let mut lost: Vec<(u64, Arc<str>)> = Vec::new();
        for (name, entry) in &self.jobs {
            lost.extend(entry.drive.journal.lost().map(|order| (order, Arc::clone(name))));
            touched.insert(Arc::clone(name), true);
        }
        lost.sort();
        for (order, name) in lost {
            if let Some(entry) = self.jobs.get_mut(&name) {
                entry.drive.resubmit(order);
            }
        }
        for drive in std::mem::take(&mut self.polling.unbegun) {
            self.begin(Box::new(drive));
        }
        if outage.tries > 0 {
            let lasted = self.services.machine.uptime().saturating_sub(outage.since);
            self.notify_outage(&StoreOutage::Ends(lasted));
        }
        true
    }

    /// Keeps a job that cannot begin during an outage, and begins it afterwards.
    pub(super) fn begin_later(&mut self, drive: JobDriver<'w>, error: &StoreError) {
        self.polling.unbegun.push(drive);
        self.begin_outage(error);
        if self.interrupts > 0 {
            self.leave_during_outage();
        }
    }

    /// Notifies the observer of one job; the other ones would only repeat it to the user.
    fn notify_outage(&mut self, outage: &StoreOutage<'_>) {
        let entry = self.names().into_iter().next().and_then(|name| self.jobs.get_mut(&name));
        let unbegun = self.polling.unbegun.first_mut();
        if let Some(drive) = entry.map(|entry| &mut *entry.drive).or(unbegun) {
            drive.observer.outage(outage);
        }
    }

    /// An interrupt during an outage gives up jobs that have not begun; the second one gives up all jobs.
    pub(super) fn leave_during_outage(&mut self) {
        let Some(outage) = &self.polling.outage else {
            return;
        };
        let error = outage.error.clone();
        if self.interrupts > 1 {
            self.give_up(&error);
        } else {
            self.leave_unbegun(&error);
        }
    }

    /// Gives up all jobs, because the store cannot be used.
    fn give_up(&mut self, error: &StoreError) {
        for name in self.names() {
            self.leave(&name, Err(DriveError::from(error.clone())));
        }
        self.leave_unbegun(error);
    }

    fn leave_unbegun(&mut self, error: &StoreError) {
        for drive in std::mem::take(&mut self.polling.unbegun) {
            let name: Arc<str> = drive.job.shared_id();
            self.programs.remove(&name);
            self.breakers.borrow_mut().forget(&drive.job);
            drop(drive.leave());
            self.left.push((name, Err(error.clone().into())));
        }
    }
}
