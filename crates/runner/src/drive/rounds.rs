//! The questions of the event loop to its store: one a round, answered outside the loop.
//!
//! While the store cannot be reached nothing is handed over and nothing starts. The loop repeats its
//! question, less and less often; once it is answered, every batch whose fate is not known is submitted
//! again, in the order of the first time, and the version it continues tells whether it stood before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use undaunted_store::{AggregateId, Findings, Question, StoreError, Version};

use super::error::DriveError;
use super::event_loop::EventLoop;
use super::handle::Message;
use super::observe::StoreOutage;
use super::running::JobDriver;
use crate::journal;

/// How often to look for requests and records of other processes.
const LOOK: Duration = Duration::from_millis(200);

/// The longest wait between two questions during an outage.
const LONGEST: Duration = Duration::from_secs(5);

pub(super) struct Rounds<'w> {
    /// When the last round began, as an uptime.
    began: Duration,
    under_way: Option<OpenQuestion>,
    /// The pulse of the last findings, and the journals they were about.
    last: Option<(u64, BTreeSet<AggregateId>)>,
    /// The last question failed, but not for an outage.
    failed: bool,
    outage: Option<Outage>,
    /// Jobs that could not begin during an outage.
    unbegun: Vec<JobDriver<'w>>,
}

struct OpenQuestion {
    question: Question,
    /// It begins a round, rather than being asked between two because a start waits for it.
    is_round: bool,
    /// A job was added since; requests to it may be older than the question.
    is_outdated: bool,
}

struct Outage {
    since: Duration,
    tries: u32,
    next: Duration,
    error: StoreError,
}

impl Rounds<'_> {
    pub(super) const fn new(now: Duration) -> Self {
        Self { began: now, under_way: None, last: None, failed: false, outage: None, unbegun: Vec::new() }
    }

    /// Whether the store can be asked between two rounds.
    pub(super) const fn may_ask(&self) -> bool {
        self.under_way.is_none() && self.outage.is_none()
    }

    pub(super) fn idle_time(&self, now: Duration) -> Duration {
        match (&self.outage, &self.under_way) {
            // The answer wakes the loop.
            (_, Some(_)) => LOOK,
            (Some(outage), None) => outage.next.saturating_sub(now),
            (None, None) => LOOK.saturating_sub(now.saturating_sub(self.began)),
        }
    }

    /// When to ask again during an outage, as an uptime.
    pub(super) fn next_try(&self) -> Option<Duration> {
        let outage = self.outage.as_ref()?;
        self.under_way.is_none().then_some(outage.next)
    }

    /// A job was added: the last findings say nothing of it.
    pub(super) fn forget_last(&mut self) {
        self.last = None;
        if let Some(asked) = &mut self.under_way {
            asked.is_outdated = true;
        }
    }
}

impl<'w> EventLoop<'w> {
    /// Asks the store if a round is due or a start waits for it, unless a question is open.
    pub(super) fn ask_store(&mut self) {
        let now = self.services.machine.uptime();
        let is_due = match &self.rounds.outage {
            Some(outage) => now >= outage.next,
            None => now.saturating_sub(self.rounds.began) >= LOOK,
        };
        let is_wanted = self.rounds.may_ask() && self.breakers.borrow().has_questions();
        if self.rounds.under_way.is_some() || !(is_due || is_wanted) {
            return;
        }
        let mut awaits = BTreeSet::new();
        if is_due {
            self.rounds.began = now;
            self.note_alive();
            awaits = self.sub_flows_elsewhere();
        }
        awaits.extend(self.breakers.borrow_mut().overdue_probes(self.services));
        let follows = self.breakers.borrow().follows();
        let last = self.rounds.last.as_ref();
        let last = last.filter(|(_, of)| follows.keys().all(|name| of.contains(name)));
        let since = last.map(|(pulse, _)| *pulse);
        let since = since.filter(|_| !follows.values().any(|known| *known == Version::EMPTY));
        let question = Question { follows, awaits, since };
        self.rounds.under_way =
            Some(OpenQuestion { question: question.clone(), is_round: is_due, is_outdated: false });
        let sender = self.sender.clone();
        self.services.store.ask(
            question,
            // A loop that has left needs no answer.
            Box::new(move |found| drop(sender.send(Message::Found(Box::new(found))))),
        );
    }

    /// Takes the answer of the store. Returns whether it has consequences.
    pub(super) fn found(
        &mut self,
        found: Result<Findings, StoreError>,
        touched: &mut BTreeMap<Arc<str>, bool>,
    ) -> bool {
        let Some(asked) = self.rounds.under_way.take() else {
            return false;
        };
        let mut findings = match found {
            Ok(findings) => findings,
            Err(error) if error.is_outage() => {
                self.begin_outage(&error);
                return true;
            }
            // A first error may be chance; the loop asks again at once.
            Err(error) if std::mem::replace(&mut self.rounds.failed, true) => {
                self.give_up(&error);
                return true;
            }
            Err(_) => {
                self.rounds.began = Duration::ZERO;
                return true;
            }
        };
        self.rounds.failed = false;
        let of = asked.question.follows.keys().cloned().collect();
        self.rounds.last = (!asked.is_outdated).then_some((findings.pulse, of));
        let mut matters = !findings.requests.is_empty() || !findings.records.is_empty();
        let mut breakers = self.breakers.borrow_mut();
        breakers.learn(self.services, &asked.question, &mut findings);
        if asked.is_round {
            // An error about a breaker is reported to the jobs that ask it.
            drop(breakers.maintain(self.services));
        }
        for job in breakers.take_waiting() {
            matters = true;
            touched.entry(job).or_default();
        }
        drop(breakers);
        for (aggregate, requests) in findings.requests {
            let name: Arc<str> = aggregate.id().into();
            let entry = self.jobs.get_mut(&name);
            let entry = entry.filter(|_| aggregate.family() == journal::FAMILY);
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

    /// The store cannot be reached: everything waits, and the next try is later than the last.
    pub(super) fn begin_outage(&mut self, error: &StoreError) {
        let now = self.services.machine.uptime();
        self.breakers.borrow_mut().is_cut_off = true;
        let outage = self.rounds.outage.get_or_insert_with(|| Outage {
            since: now,
            tries: 0,
            next: now,
            error: error.clone(),
        });
        if self.rounds.under_way.is_some() || now < outage.next {
            return;
        }
        let is_first = outage.tries == 0;
        outage.tries = outage.tries.saturating_add(1);
        let longest = LOOK.saturating_mul(1 << outage.tries.min(8)).min(LONGEST);
        // Spread, so that processes that have lost the same store do not return at the same instant.
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

    /// The store has answered: does what waited for it. Returns whether there was an outage.
    fn end_outage(&mut self, touched: &mut BTreeMap<Arc<str>, bool>) -> bool {
        let Some(outage) = self.rounds.outage.take() else {
            return false;
        };
        self.breakers.borrow_mut().is_cut_off = false;
        let mut lost: Vec<(u64, Arc<str>)> = Vec::new();
        for (name, entry) in &self.jobs {
            let orders = entry.drive.journal.lost();
            lost.extend(orders.map(|order| (order, Arc::clone(name))));
            touched.insert(Arc::clone(name), true);
        }
        lost.sort();
        for (order, name) in lost {
            if let Some(entry) = self.jobs.get_mut(&name) {
                entry.drive.hand_over_again(order);
            }
        }
        for drive in std::mem::take(&mut self.rounds.unbegun) {
            self.begin(Box::new(drive));
        }
        if outage.tries > 0 {
            let lasted = self.services.machine.uptime().saturating_sub(outage.since);
            self.notify_outage(&StoreOutage::Ends(lasted));
        }
        true
    }

    /// Begins a job when the outage ends that has kept it from beginning.
    pub(super) fn begin_later(&mut self, drive: JobDriver<'w>, error: &StoreError) {
        self.rounds.unbegun.push(drive);
        self.begin_outage(error);
        if self.interrupts > 0 {
            self.leave_during_outage();
        }
    }

    /// Tells the observer of one job; the others would only repeat it to the user.
    fn notify_outage(&mut self, outage: &StoreOutage<'_>) {
        let first = self.names().into_iter().next();
        let entry = first.and_then(|name| self.jobs.get_mut(&name));
        let unbegun = self.rounds.unbegun.first_mut();
        if let Some(drive) = entry.map(|entry| &mut *entry.drive).or(unbegun) {
            drive.observer.outage(outage);
        }
    }

    /// An interrupt during an outage leaves jobs that have not begun; the second one leaves all.
    pub(super) fn leave_during_outage(&mut self) {
        let Some(outage) = &self.rounds.outage else {
            return;
        };
        let error = outage.error.clone();
        if self.interrupts > 1 {
            self.give_up(&error);
        } else {
            self.leave_unbegun(&error);
        }
    }

    /// Leaves all jobs, because the store cannot be used.
    fn give_up(&mut self, error: &StoreError) {
        for name in self.names() {
            self.leave(&name, Err(DriveError::from(error.clone())));
        }
        self.leave_unbegun(error);
    }

    fn leave_unbegun(&mut self, error: &StoreError) {
        for drive in std::mem::take(&mut self.rounds.unbegun) {
            let name: Arc<str> = drive.job.shared_id();
            self.programs.remove(&name);
            self.breakers.borrow_mut().forget(self.services, &drive.job);
            drop(drive.leave());
            self.left.push((name, Err(error.clone().into())));
        }
    }
}
