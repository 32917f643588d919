//! Breakers as the oracle sees them: the fold of every fact on the disk.
//!
//! The laws: every result of an attempt that a breaker admitted is a fact of that breaker, written with the
//! job's record of it; no process starts what it knows to be held; one probe is under way at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use undaunted_engine::breaker::{BreakerFact, BreakerRecord, BreakerState};
use undaunted_engine::event::{Event, ItemEvent, JobEvent, Record, StoredText};
use undaunted_engine::id::ItemId;
use undaunted_runner::{breakers, journal};
use undaunted_store::{AggregateId, Append};

use super::world::PendingWrite;

/// Within this time a process learns what other processes have done to a breaker.
const KNOWN_AFTER: Duration = Duration::from_millis(200);

#[derive(Default)]
pub(super) struct BreakerOracle {
    known: BTreeMap<String, ObservedBreaker>,
    /// Texts that the records of a job refer to.
    texts: BTreeMap<String, Vec<String>>,
    /// The breakers that admitted the running attempts, by job and item.
    passes: BTreeMap<(String, ItemId), String>,
}

#[derive(Clone, Default)]
struct ObservedBreaker {
    state: BreakerState,
    /// The time at which its opening was on the disk, while it is not closed.
    shut: Option<Duration>,
}

/// Results and probes, by breaker.
type ResultCounts = BTreeMap<String, (u32, u32)>;

impl BreakerOracle {
    /// Appends have reached the disk. Returns lines for the history, and violations.
    pub(super) fn written(&mut self, appends: &[Append], now: Duration) -> [Vec<String>; 2] {
        let (mut history, mut violations) = (Vec::new(), Vec::new());
        let mut expected: ResultCounts = BTreeMap::new();
        let mut found: ResultCounts = BTreeMap::new();
        for append in of_family(appends, journal::FAMILY) {
            for bytes in &append.records {
                if let Ok(record) = Record::decode(bytes) {
                    self.expect(append.aggregate.id(), &record, &mut expected);
                }
            }
        }
        for append in of_family(appends, breakers::FAMILY) {
            let name = append.aggregate.id();
            if append.records.len() != 1 {
                violations.push(format!("{name} gets more than one fact in a commit"));
            }
            for bytes in &append.records {
                let Ok(record) = BreakerRecord::decode(bytes) else {
                    violations.push(format!("a record of the breaker {name} cannot be read"));
                    continue;
                };
                count(name, &record, &mut found);
                violations.extend(self.fold(name, &record, now));
                let state = &self.known.entry(name.to_owned()).or_default().state;
                history.push(format!("breaker {name} is {}: {record:?}", state.word()));
            }
        }
        if expected != found {
            violations.push(format!("breakers are counts {found:?} (results, probes) of {expected:?}"));
        }
        [history, violations]
    }

    /// Applies a record that has reached the disk. Returns a violation.
    pub(super) fn fold(&mut self, name: &str, record: &BreakerRecord, now: Duration) -> Option<String> {
        let seen = self.known.entry(name.to_owned()).or_default();
        let mut violations = None;
        for fact in &record.facts {
            if let BreakerFact::Probed { generation, .. } = fact
                && *generation == seen.state.breaker.generation()
                && seen.state.is_probing()
            {
                violations = Some(format!("two probes of {name} are under way"));
            }
            let one = BreakerRecord { facts: vec![fact.clone()], ..record.clone() };
            let _ = seen.state.apply(&one);
        }
        seen.shut = match (seen.state.is_open_or_half_open(), seen.shut) {
            (true, None) => Some(now),
            (true, since) => since,
            (false, _) => None,
        };
        violations
    }

    /// The breakers as folded from the disk.
    pub(super) fn states(&self) -> impl Iterator<Item = (&str, &BreakerState)> {
        let known = self.known.iter();
        known.map(|(name, seen)| (name.as_str(), &seen.state))
    }

    /// Checks appends that a process submits, given its other appends that are being written.
    pub(super) fn check_submitted<'w>(
        &self,
        appends: &[Append],
        own: impl Iterator<Item = &'w PendingWrite>,
        now: Duration,
    ) -> Vec<String> {
        let starts = of_family(appends, journal::FAMILY).flat_map(|append| {
            let records = append.records.iter();
            let records = records.filter_map(|bytes| Record::decode(bytes).ok());
            let job = append.aggregate.id();
            records.filter_map(move |record| Some((job, started(&record)?)))
        });
        let starts: Vec<_> = starts.collect();
        if starts.is_empty() {
            return Vec::new();
        }
        let mut with_own = self.known.clone();
        let own = own.filter_map(|write| match write {
            PendingWrite::Append(appends, _) => Some(appends.as_slice()),
            PendingWrite::Release(_) => None,
        });
        for appends in own.chain([appends]) {
            for append in of_family(appends, breakers::FAMILY) {
                let name = append.aggregate.id().to_owned();
                let seen = with_own.entry(name).or_default();
                for bytes in &append.records {
                    if let Ok(record) = BreakerRecord::decode(bytes) {
                        let _ = seen.state.apply(&record);
                    }
                }
            }
        }
        let mut violations = Vec::new();
        for (job, breaker) in starts {
            let name = self.read(job, appends, &breaker);
            let on_disk = self.known.get(&name);
            let with_own = with_own.get(&name).map(|seen| &seen.state);
            if !with_own.is_some_and(BreakerState::is_open_or_half_open) {
                continue;
            }
            match on_disk.and_then(|seen| seen.shut) {
                // Other processes have opened it; this one may not know yet.
                Some(since) if since.saturating_add(KNOWN_AFTER) >= now => {}
                Some(_) => violations.push(format!("{job} starts what {name} is known to hold")),
                None => violations.push(format!("{job} starts what {name} holds by its own facts")),
            }
        }
        violations
    }

    /// A text of a record, also if the same append stores it.
    fn read(&self, job: &str, appends: &[Append], text: &StoredText) -> String {
        let number = match text {
            StoredText::Itself(text) => return text.clone(),
            StoredText::Kept(number) => usize::try_from(*number).unwrap_or(usize::MAX),
        };
        let known = self.texts.get(job).map_or(&[][..], Vec::as_slice);
        let own = of_family(appends, journal::FAMILY).filter(|it| it.aggregate.id() == job);
        let fresh = own.flat_map(|append| &append.records).filter_map(|bytes| {
            match Record::decode(bytes).ok()?.event {
                Event::Job(JobEvent::TextKept { text }) => Some(text),
                _ => None,
            }
        });
        known.iter().cloned().chain(fresh).nth(number).unwrap_or_default()
    }

    /// Counts the facts that breakers must get with a record of a job.
    fn expect(&mut self, job: &str, record: &Record, expected: &mut ResultCounts) {
        let place = |item| (job.to_owned(), item);
        let ended = match &record.event {
            Event::Job(JobEvent::TextKept { text }) => {
                let texts = self.texts.entry(job.to_owned()).or_default();
                texts.push(text.clone());
                return;
            }
            Event::Item(ItemEvent::AttemptStarted(started)) => {
                let of = started.of;
                self.passes.remove(&place(of.item()));
                if let Some(pass) = &started.pass {
                    let name = self.read(job, &[], &pass.breaker);
                    let counts = expected.entry(name.clone()).or_default();
                    counts.1 += u32::from(pass.probe);
                    expected.retain(|_, counts| *counts != (0, 0));
                    self.passes.insert(place(of.item()), name);
                }
                return;
            }
            Event::Item(ItemEvent::AttemptAccepted { of, .. }) => *of,
            Event::Item(ItemEvent::AttemptSucceeded(done)) => done.of,
            Event::Item(ItemEvent::AttemptFailed(failed)) => failed.of,
            _ => return,
        };
        if let Some(name) = self.passes.remove(&place(ended.item())) {
            let counts = expected.entry(name).or_default();
            counts.0 += 1;
        }
    }
}

/// A process probes only for breakers whose probe claim it holds.
pub(super) fn probed(appends: &[Append], claims: &BTreeSet<AggregateId>) -> Vec<String> {
    let mut violations = Vec::new();
    for append in of_family(appends, breakers::FAMILY) {
        let name = append.aggregate.id();
        let claimed = breakers::probe_claim(name).is_ok_and(|it| claims.contains(&it));
        let records = append.records.iter();
        let records = records.filter_map(|bytes| BreakerRecord::decode(bytes).ok());
        let probes =
            |it: &BreakerRecord| it.facts.iter().any(|fact| matches!(fact, BreakerFact::Probed { .. }));
        if !claimed && records.into_iter().any(|it| probes(&it)) {
            violations.push(format!("a process probes for {name}, which another has claimed"));
        }
    }
    violations
}

fn of_family<'a>(appends: &'a [Append], family: &'a str) -> impl Iterator<Item = &'a Append> {
    appends.iter().filter(move |append| append.aggregate.family() == family)
}

/// The breaker that admitted a start which is not a probe.
fn started(record: &Record) -> Option<StoredText> {
    let Event::Item(ItemEvent::AttemptStarted(started)) = &record.event else {
        return None;
    };
    let pass = started.pass.as_ref().filter(|pass| !pass.probe)?;
    Some(pass.breaker.clone())
}

fn count(name: &str, record: &BreakerRecord, found: &mut ResultCounts) {
    for fact in &record.facts {
        let (results, probes) = match fact {
            BreakerFact::Reported { many, .. } => (*many, 0),
            BreakerFact::Probed { .. } => (0, 1),
            _ => continue,
        };
        let counts = found.entry(name.to_owned()).or_default();
        counts.0 += results;
        counts.1 += probes;
    }
}
