//! The oracle: it sees every record reach the disk and every command begin and end, and knows the laws.
//!
//! It has its own state of every job, folded from the records alone, and a ledger that shares nothing with
//! the engine. After every record it checks the laws of the engine, of the ledger and of the world.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use undaunted_engine::event::{AttemptId, Event, ItemEvent, JobEvent, Record};
use undaunted_engine::id::{ItemId, StartId};
use undaunted_engine::job::{ItemState, Job, JobStage, Plans};
use undaunted_engine::law::{violations_by_record, violations_in_state};
use undaunted_engine::task::{as_uuid, receipt_token};
use undaunted_policy::Reason;
use undaunted_runner::{HttpOrder, journal};
use undaunted_store::Append;

use super::breaker_oracle::BreakerOracle;
use super::decisions::DecisionReplay;
use super::ledger::EventLedger;

/// Everything observed of one job.
#[derive(Default)]
pub(super) struct JobTrace {
    pub(super) job: Option<Job>,
    pub(super) records: Vec<Record>,
    pub(super) ledger: EventLedger,
    decisions: DecisionReplay,
    /// The attempts that really run, by token.
    alive: BTreeMap<String, StartId>,
    /// Starts that a keeper has begun.
    command_began: BTreeSet<StartId>,
    /// Starts whose requests were sent.
    request_sent: BTreeSet<StartId>,
    /// Starts that have really succeeded.
    good: BTreeSet<StartId>,
    /// Items for which a successful result was sent. It counts for any attempt that waits for one.
    sent: BTreeSet<ItemId>,
    /// Items whose successful result was accepted while no process owned the job.
    owed: BTreeSet<ItemId>,
}

pub(super) struct RequestOrigin {
    pub(super) job: String,
    pub(super) step: String,
    /// As the script names it.
    pub(super) item: String,
    pub(super) attempt: u32,
    pub(super) token: String,
}

#[derive(Default)]
pub(super) struct Oracle {
    pub(super) jobs: BTreeMap<String, JobTrace>,
    pub(super) breakers: BreakerOracle,
    tokens: BTreeMap<String, (String, ItemId)>,
    plans: Plans,
    pub(super) events: u64,
    pub(super) violations: Vec<String>,
}

impl Oracle {
    pub(super) fn violation(&mut self, what: String) {
        self.violations.push(what);
    }

    /// Records have reached the disk. Returns lines for the history.
    pub(super) fn written(&mut self, appends: &[Append], now: Duration) -> Vec<String> {
        let [mut lines, violations] = self.breakers.written(appends, now);
        self.violations.extend(violations);
        for append in appends.iter().filter(|it| it.aggregate.family() == journal::FAMILY) {
            for bytes in &append.records {
                let id = append.aggregate.id();
                match Record::decode(bytes) {
                    Ok(record) => {
                        lines.push(format!("{id}: {:?}", record.event));
                        self.record(id, record);
                    }
                    Err(why) => self.violation(format!("a record of {id} cannot be read: {why}")),
                }
            }
        }
        lines
    }

    fn record(&mut self, id: &str, record: Record) {
        self.events += 1;
        let trace = self.jobs.entry(id.to_owned()).or_default();
        let mut violations = Vec::new();
        if let Some(job) = &mut trace.job {
            let laws = violations_by_record(job, &record);
            violations.extend(laws.iter().map(|it| format!("{}: {}", it.law, it.what)));
            violations.extend(trace.decisions.check(job, &record));
            if let Event::Item(ItemEvent::AttemptSucceeded(done)) = &record.event {
                let of = done.of;
                if !trace.sent.contains(&of.item()) {
                    violations.extend(unfounded_success(job, &trace.good, of));
                }
            }
            job.apply(&record);
            violations.extend(incomplete_dead_letter(job, &record));
            violations.extend(active_after_end(job));
            let laws = violations_in_state(job);
            violations.extend(laws.iter().map(|it| format!("{}: {}", it.law, it.what)));
        } else {
            match Job::begin_with_plans(&record, &self.plans) {
                Ok(job) => trace.job = Some(job),
                Err(why) => violations.push(format!("the first record makes no job: {why}")),
            }
        }
        violations.extend(trace.ledger.enter(&record));
        let is_paused = matches!(record.event, Event::Job(JobEvent::Paused));
        if is_paused && trace.job.as_ref().is_some_and(|job| !job.starts.reserved.is_empty()) {
            violations.push("the job is paused with reserved starts".to_owned());
        }
        if let Event::Item(ItemEvent::ReservationWithdrawn(withdrawn)) = &record.event
            && trace.command_began.contains(&withdrawn.start)
        {
            violations.push(format!("start {} has begun and is withdrawn", withdrawn.start));
        }
        violations.extend(lost_result(&mut trace.owed, &record));
        if let (Event::Item(ItemEvent::AttemptStarted(started)), Some(job)) = (&record.event, &trace.job) {
            let of = started.of;
            let round = job.active(of.item()).map_or(1, |it| it.round);
            let token = receipt_token(job, of.item(), of.command, round);
            let place = (id.to_owned(), of.item());
            self.tokens.insert(as_uuid(&token), place.clone());
            self.tokens.insert(token, place);
        }
        trace.records.push(record);
        for violation in violations {
            self.violations.push(format!("{id}: {violation}"));
        }
    }

    pub(super) fn command_began(&mut self, job: &str, start: StartId, token: &str) {
        let trace = self.jobs.entry(job.to_owned()).or_default();
        let mut violations = Vec::new();
        if !trace.command_began.insert(start) {
            violations.push(format!("start {start} begins a second time"));
        }
        let running = trace.job.as_ref().is_some_and(|it| it.starts.running.contains_key(&start));
        let reading = trace.ledger.is_reading(start);
        let was_started = trace.ledger.was_started(start);
        let may_begin = trace.ledger.is_reserved(start) && trace.job.as_ref().is_some_and(starts_new);
        if !running && !reading && !was_started && !may_begin {
            violations.push(format!("start {start} begins and is not on record"));
        }
        if !token.is_empty()
            && let Some(other) = trace.alive.insert(token.to_owned(), start)
        {
            violations.push(format!("start {start} begins while {other} of its command lives"));
        }
        for violation in violations {
            self.violations.push(format!("{job}: {violation}"));
        }
    }

    pub(super) fn command_ended(&mut self, job: &str, start: StartId, token: &str, well: bool) {
        let trace = self.jobs.entry(job.to_owned()).or_default();
        trace.alive.remove(token);
        if well {
            trace.good.insert(start);
        }
    }

    /// The attempt that sends a request; `None` if no such attempt is recorded.
    pub(super) fn origin_of(&self, order: &HttpOrder) -> Option<RequestOrigin> {
        let mut headers = order.call.headers.iter();
        let (_, token) = headers.find(|(name, _)| name == "Idempotency-Key")?;
        let (id, item) = self.tokens.get(token)?;
        let job = self.jobs.get(id)?.job.as_ref()?;
        // A request of an attempt that is recorded as ended may still be on its way.
        let attempt = job.active(*item).map_or(1, |it| it.attempts);
        let named = order.call.url.split('/').nth(4);
        let step = job.plan().step(item.step)?;
        let item = named.map_or_else(|| item.index.to_string(), str::to_owned);
        Some(RequestOrigin { job: id.clone(), step: step.name.clone(), item, attempt, token: token.clone() })
    }

    pub(super) fn request_sent(&mut self, job: &str, start: StartId) {
        let trace = self.jobs.entry(job.to_owned()).or_default();
        let is_first = trace.request_sent.insert(start);
        let is_known = trace.ledger.was_started(start);
        if !is_first || !is_known {
            let what = format!("{job}: request {start} is sent twice, or before it is on record");
            self.violations.push(what);
        }
    }

    pub(super) fn request_succeeded(&mut self, job: &str, start: StartId) {
        self.jobs.entry(job.to_owned()).or_default().good.insert(start);
    }

    /// A successful result was accepted while no process owned the job.
    pub(super) fn result_accepted(&mut self, token: &str) {
        let Some((id, item)) = self.tokens.get(token) else {
            return;
        };
        if let Some(trace) = self.jobs.get_mut(id)
            && let Some(job) = &trace.job
            && job.active(*item).is_some()
        {
            trace.owed.insert(*item);
        }
    }

    /// A successful result was sent for this token.
    pub(super) fn success_sent(&mut self, token: &str) {
        let Some((id, item)) = self.tokens.get(token) else {
            return;
        };
        if let Some(trace) = self.jobs.get_mut(id) {
            trace.sent.insert(*item);
        }
    }
}

/// Whether the job, as it is on record, may begin what is reserved.
fn starts_new(job: &Job) -> bool {
    job.stage == JobStage::Running && job.times.paused.is_none()
}

/// A job that has ended leaves no active item.
fn active_after_end(job: &Job) -> Option<String> {
    if !job.stage.has_ended() {
        return None;
    }
    let steps = job.steps.iter().flat_map(|step| step.items.iter());
    let left = steps.filter(|(_, item)| matches!(item, ItemState::Active(_))).count();
    (left > 0).then(|| format!("the job has ended, and {left} items have not"))
}

/// A dead letter has everything that is needed to examine and redrive it.
fn incomplete_dead_letter(job: &Job, record: &Record) -> Option<String> {
    let Event::Item(ItemEvent::DeadLettered { of, error, .. }) = &record.event else {
        return None;
    };
    let kept = job.dead.get(&of.item());
    let is_whole = kept.is_some() && !job.texts.read(error).is_empty();
    (!is_whole).then(|| format!("a dead letter is not complete: {record:?}"))
}

/// An accepted result has an effect.
fn lost_result(owed: &mut BTreeSet<ItemId>, record: &Record) -> Option<String> {
    match &record.event {
        Event::Item(ItemEvent::AttemptSucceeded(done)) => {
            owed.remove(&done.of.item());
            None
        }
        Event::Item(ItemEvent::ResultArrived(arrived)) if arrived.error.is_none() => {
            owed.remove(&arrived.of.item());
            None
        }
        Event::Item(ItemEvent::DeadLettered { of, reason, .. }) => {
            let in_vain = matches!(reason, Reason::Deadline | Reason::Cancelled | Reason::Tolerance);
            let lost = owed.remove(&of.item()) && !in_vain;
            lost.then(|| format!("a result of {of:?} was taken, and is lost"))
        }
        _ => None,
    }
}

/// A recorded success has really happened.
fn unfounded_success(job: &Job, good: &BTreeSet<StartId>, of: AttemptId) -> Option<String> {
    let mut running = job.starts.running.iter();
    let (start, _) = running.find(|(_, at)| **at == of.item())?;
    // The flow of an item is a job of its own.
    let is_flow = job
        .plan()
        .command(of.command)
        .is_some_and(|it| matches!(it.action, undaunted_engine::workflow::Action::SubFlow(_)));
    let known = is_flow || good.contains(start);
    (!known).then(|| format!("start {start} is recorded as a success, and was none"))
}
