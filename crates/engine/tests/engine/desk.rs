//! An admission and the journals behind it, without jobs: what jobs would tell it is told by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use undaunted_engine::breaker::{
    AdmissionControl, BreakerAnswer, BreakerFact, BreakerRecord, BreakerReport, BreakerState, ProbeOffer,
    ProbeOwner, TargetSignal,
};
use undaunted_policy::{BreakerSettings, Ticket, Timestamp};

use crate::journals::Journals;
use crate::scene::T0;

pub(crate) const NAME: &str = "payments";

/// Opens after two failures for a minute, closes after one success.
pub(crate) const SETTINGS: BreakerSettings =
    BreakerSettings { failure_threshold: 2, half_open_max_calls: 1, ..BreakerSettings::DEFAULT };

/// A process, and the journals on the disk.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) admission: AdmissionControl,
    pub(crate) journals: Journals,
    /// How many records each job has.
    seqs: BTreeMap<String, u64>,
}

pub(crate) fn name() -> Arc<str> {
    Arc::from(NAME)
}

pub(crate) fn id(job: &str) -> Arc<str> {
    Arc::from(job)
}

impl Desk {
    pub(crate) fn of(settings: BreakerSettings) -> Self {
        let mut admission = AdmissionControl::with_breakers([(NAME.to_owned(), settings)]);
        admission.tick(T0);
        Self { admission, journals: Journals::default(), seqs: BTreeMap::new() }
    }

    /// A breaker that was opened by hand at the beginning, with these jobs that have an item waiting
    /// which has so many attempts left.
    pub(crate) fn open(settings: BreakerSettings, jobs: &[(&str, u64)]) -> Self {
        let mut desk = Self::of(settings);
        desk.others(
            None,
            vec![BreakerFact::Configured { at: T0, settings }, BreakerFact::Tripped { at: T0 }],
        );
        for (job, left) in jobs {
            desk.offer(job, 1, Some(*left));
        }
        let _ = (desk.awakened(), desk.admission.take_transitions());
        desk
    }

    pub(crate) fn at(&mut self, now: Timestamp) {
        self.admission.tick(now);
    }

    pub(crate) fn state(&self) -> &BreakerState {
        self.admission.get(NAME).unwrap()
    }

    pub(crate) fn end(&mut self, job: &str, ticket: Ticket, signal: TargetSignal) {
        let breaker = name();
        let report = BreakerReport::Ended { breaker, ticket, signal };
        self.admission.report(&id(job), &report);
    }

    /// An attempt of a job that started while the breaker was as it was at the beginning fails.
    pub(crate) fn fail(&mut self, job: &str) {
        self.end(job, Ticket::restored(0, false), TargetSignal::Down);
    }

    pub(crate) fn start(&mut self, job: &str, ticket: Ticket) {
        let breaker = name();
        let report = BreakerReport::Started { breaker, ticket };
        self.admission.report(&id(job), &report);
    }

    /// The facts of a job are handed over.
    pub(crate) fn seal(&mut self, job: &str) -> (u64, BreakerRecord) {
        let seq = self.seqs.entry(job.to_owned()).or_default();
        *seq += 1;
        (*seq, self.admission.seal(NAME, job, *seq).unwrap())
    }

    /// The facts of a job are handed over, written and acknowledged.
    pub(crate) fn write(&mut self, job: &str) -> bool {
        let (seq, record) = self.seal(job);
        let version = self.journals.append(&name(), &record);
        let known = self.admission.acknowledge(NAME, job, seq, Some(version));
        self.admission.refresh();
        known
    }

    /// Another process, or an operator, appends facts; this process does not know.
    pub(crate) fn unseen(&mut self, job: Option<&str>, facts: Vec<BreakerFact>) {
        let record = BreakerRecord { job: job.map(str::to_owned), seq: job.map(|_| 1), facts };
        let _ = self.journals.append(&name(), &record);
    }

    pub(crate) fn look(&mut self) -> bool {
        let (version, _) = self.admission.version(NAME).unwrap();
        let unknown = self.journals.after(NAME, version);
        self.admission.extend(NAME, unknown)
    }

    pub(crate) fn others(&mut self, job: Option<&str>, facts: Vec<BreakerFact>) {
        self.unseen(job, facts);
        assert!(self.look());
    }

    pub(crate) fn offer(&mut self, job: &str, held: u32, left: Option<u64>) {
        self.offer_drawn(job, held, left, 0);
    }

    pub(crate) fn offer_drawn(&mut self, job: &str, held: u32, left: Option<u64>, draw: u64) {
        let offer = ProbeOffer { held, left, draw };
        let offers = BTreeMap::from([(name(), offer)]);
        self.admission.set_offers(&id(job), &offers);
    }

    pub(crate) fn offer_nothing(&mut self, job: &str) {
        self.admission.set_offers(&id(job), &BTreeMap::new());
    }

    pub(crate) fn ask(&mut self, job: &str, left: u64) -> BreakerAnswer {
        self.admission.admit(&name(), &id(job), Some(left))
    }

    pub(crate) fn set_probe_owner(&mut self, prober: ProbeOwner) {
        self.admission.set_probe_owner(&name(), prober);
    }

    pub(crate) fn awakened(&mut self) -> BTreeSet<Arc<str>> {
        self.admission.take_jobs_to_wake()
    }

    /// The probe of a job starts, and that is on the disk.
    pub(crate) fn probe(&mut self, job: &str) -> Ticket {
        let BreakerAnswer::Admitted { ticket, .. } = self.ask(job, u64::MAX) else {
            panic!("no probe");
        };
        assert!(ticket.probe);
        self.start(job, ticket);
        assert!(self.write(job));
        ticket
    }
}

pub(crate) fn jobs<const N: usize>(jobs: [&str; N]) -> BTreeSet<Arc<str>> {
    jobs.into_iter().map(Arc::from).collect()
}

pub(crate) fn is_held(gate: &BreakerAnswer) -> bool {
    matches!(gate, BreakerAnswer::Held { .. })
}

pub(crate) fn is_probe(gate: &BreakerAnswer) -> bool {
    matches!(gate, BreakerAnswer::Admitted { ticket, .. } if ticket.probe)
}
