//! The breakers of a store, cached by one event loop.
//!
//! [`AdmissionControl`] decides; this module reads the journals for it, keeps its clock, claims probes, and
//! keeps the journals short. Nothing here can make an append of a job fail.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use undaunted_engine::breaker::{
    AdmissionControl, BreakerAnswer, BreakerChange, BreakerFact, BreakerJournal, BreakerRecord,
    BreakerReport, BreakerState, Probe, ProbeOwner,
};
use undaunted_engine::effect;
use undaunted_engine::id::ItemId;
use undaunted_engine::job::Job;
use undaunted_engine::mutant::{self, Mutant};
use undaunted_policy::{BreakerSettings, Timestamp};
use undaunted_store::{AggregateId, Append, Claim, ClaimError, Findings, Question, Version};

use super::{DriveError, Services};
use crate::journal::aggregate;
use crate::{Clock, JournalError, breakers};

/// The greatest age of a cached breaker when an attempt asks it, since other processes may have opened it.
const FRESH: Duration = Duration::from_millis(20);

pub(super) struct BreakerCache<'w> {
    services: &'w Services,
    pub(super) admission: AdmissionControl,
    /// One clock for all jobs, whose own clocks may have been set at different times.
    clock: Clock,
    claims: BTreeMap<Arc<str>, Claim>,
    /// When each breaker was last read, as an uptime.
    read_at: BTreeMap<Arc<str>, Duration>,
    /// Breakers to read from the store at once, with settings for those that have no journal.
    wanted: BTreeMap<Arc<str>, Option<BreakerSettings>>,
    /// Jobs with a start that waits for `wanted`.
    waiting: BTreeSet<Arc<str>>,
    /// Breakers whose journal was trimmed past the version known here.
    stale: BTreeSet<Arc<str>>,
    unreadable: BTreeSet<Arc<str>>,
    /// During an outage nothing is submitted, and nothing starts.
    pub(super) is_cut_off: bool,
    batches: u64,
    /// The version up to which this process has folded each journal.
    folded: BTreeMap<Arc<str>, u64>,
    trimmed: BTreeMap<Arc<str>, u64>,
    transitions: Vec<BreakerTransition>,
}

/// An opening, half opening or closing of a breaker.
pub(super) struct BreakerTransition {
    pub(super) breaker: Arc<str>,
    pub(super) change: BreakerChange,
    /// The job whose own records caused the change; its observer has been notified already.
    pub(super) notified: Option<Arc<str>>,
}

impl<'w> BreakerCache<'w> {
    pub(super) fn new(services: &'w Services) -> Self {
        Self {
            services,
            admission: AdmissionControl::default(),
            clock: Clock::set_by(&*services.machine),
            claims: BTreeMap::new(),
            read_at: BTreeMap::new(),
            wanted: BTreeMap::new(),
            waiting: BTreeSet::new(),
            stale: BTreeSet::new(),
            unreadable: BTreeSet::new(),
            is_cut_off: false,
            batches: 0,
            folded: BTreeMap::new(),
            trimmed: BTreeMap::new(),
            transitions: Vec::new(),
        }
    }

    /// Changes that have reached the disk since the last call. `job` is notified of them by the caller, and
    /// not again.
    pub(super) fn take_transitions(&mut self, job: Option<&Arc<str>>) -> Vec<BreakerTransition> {
        let turned = self.admission.take_transitions().into_iter();
        let turned = turned.map(|(breaker, change)| BreakerTransition { breaker, change, notified: None });
        let mut taken = std::mem::take(&mut self.transitions);
        taken.extend(turned);
        if let Some(job) = job {
            self.transitions.extend(taken.iter().map(|turned| BreakerTransition {
                breaker: Arc::clone(&turned.breaker),
                change: turned.change.clone(),
                notified: Some(Arc::clone(job)),
            }));
        }
        taken
    }

    pub(super) fn has_changes(&self) -> bool {
        self.admission.has_changes() || !self.transitions.is_empty()
    }

    pub(super) fn tick(&mut self) {
        self.admission.tick(self.clock.at(self.services.machine.uptime()));
        self.admission.refresh();
    }

    pub(super) fn wait(&self, until: Timestamp) -> Duration {
        until.since(self.clock.at(self.services.machine.uptime()))
    }

    /// Reads a breaker from the store. A breaker without a journal gets these settings.
    pub(super) fn load(&mut self, name: &Arc<str>, settings: BreakerSettings) -> Result<(), DriveError> {
        if self.admission.get(name).is_some() {
            return self.read_new_records(name);
        }
        let journal = breakers::read(&*self.services.store, name)?;
        let journal = journal.unwrap_or_else(|| BreakerState::with_settings(settings).into());
        self.admission.load(name, journal);
        self.after_read(name);
        Ok(())
    }

    /// Reads the records that were appended to the journal of a breaker.
    fn read_new_records(&mut self, name: &Arc<str>) -> Result<(), DriveError> {
        let Some((version, _)) = self.admission.version(name) else {
            return Ok(());
        };
        let records = breakers::records(&*self.services.store, name, Version(version))?;
        if !self.admission.extend(name, records)
            && let Some(journal) = breakers::read(&*self.services.store, name)?
        {
            self.admission.load(name, journal);
        }
        self.after_read(name);
        Ok(())
    }

    /// The journal of a breaker was read. If it has an overdue probe, its state counts as unknown until the
    /// store has reported whether the job of the probe has an owner.
    fn after_read(&mut self, name: &Arc<str>) {
        self.tick();
        self.mark_fresh(name);
        if self.overdue_probe(name).is_some() {
            self.read_at.remove(name);
        }
    }

    fn mark_fresh(&mut self, name: &Arc<str>) {
        self.read_at.insert(Arc::clone(name), self.services.machine.uptime());
        self.wanted.remove(name);
        self.stale.remove(name);
        self.unreadable.remove(name);
    }

    pub(super) fn has_questions(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// The journals to follow, each after the last version known here.
    pub(super) fn follows(&self) -> BTreeMap<AggregateId, Version> {
        let names = self.admission.awaited().iter().chain(self.wanted.keys());
        let names = names.filter(|name| !self.unreadable.contains(*name));
        let follows = names.filter_map(|name| {
            let known = self.admission.version(name).filter(|_| !self.stale.contains(name));
            let version = known.map_or(Version::EMPTY, |(version, _)| Version(version));
            Some((breakers::aggregate(name).ok()?, version))
        });
        follows.collect()
    }

    /// Applies new records of the followed journals, and gives up probes whose job has no owner.
    pub(super) fn apply_findings(&mut self, asked: &Question, findings: &mut Findings) {
        for (followed, after) in &asked.follows {
            let name: Arc<str> = followed.id().into();
            let records = findings.records.remove(followed);
            let records = records.unwrap_or(Ok(Vec::new())).map_err(JournalError::from);
            match records.and_then(|records| breakers::decoded(&name, records)) {
                Ok(records) if *after == Version::EMPTY => self.apply_all(&name, &records),
                Ok(records) => self.apply_new(&name, records),
                Err(_) => {
                    self.wanted.remove(&name);
                    self.unreadable.insert(Arc::clone(&name));
                }
            }
            if self.stale.contains(&name) || self.unreadable.contains(&name) {
                continue;
            }
            self.tick();
            let probing = self.overdue_probe(&name);
            match probing.map(|probe| aggregate(&probe.job)) {
                None => self.mark_fresh(&name),
                Some(Ok(job)) if !asked.awaits.contains(&job) => {
                    self.wanted.entry(name).or_default();
                }
                Some(job) => {
                    self.mark_fresh(&name);
                    if job.map_or(true, |job| findings.unowned.contains(&job)) {
                        // If the loss cannot be recorded now, the next poll tries again.
                        drop(self.give_up_probe(&name));
                    }
                }
            }
        }
    }

    fn apply_all(&mut self, name: &Arc<str>, records: &[(u64, BreakerRecord)]) {
        let known = self.admission.version(name);
        let journal = BreakerJournal::fold(records);
        let settings = self.wanted.get(name).copied().flatten();
        match (known, settings) {
            // Older than what this process has written since.
            (Some((known, _)), _) if known > journal.version => {}
            (_, Some(settings)) if records.is_empty() => {
                self.admission.load(name, BreakerState::with_settings(settings).into());
            }
            _ if records.is_empty() => {}
            _ => self.admission.load(name, journal),
        }
        self.stale.remove(name);
    }

    fn apply_new(&mut self, name: &Arc<str>, records: Vec<(u64, BreakerRecord)>) {
        let known = self.admission.version(name);
        let known = known.map_or(u64::MAX, |(known, _)| known);
        let records = records.into_iter().filter(|(version, _)| *version > known);
        if !self.admission.extend(name, records) && self.admission.get(name).is_some() {
            self.stale.insert(Arc::clone(name));
            self.wanted.entry(Arc::clone(name)).or_default();
        }
    }

    pub(super) fn take_waiting(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.waiting)
    }

    pub(super) const fn next_batch(&mut self) -> u64 {
        self.batches = self.batches.saturating_add(1);
        self.batches
    }

    /// Whether the next attempt of an item may start. None if that is not known yet; the job gets a turn when
    /// the breaker has been read.
    pub(super) fn ask(
        &mut self,
        job: &Job,
        item: ItemId,
        (name, settings): (&Arc<str>, BreakerSettings),
    ) -> Result<Option<BreakerAnswer>, DriveError> {
        if self.unreadable.contains(name) {
            self.load(name, settings)?;
        }
        let now = self.services.machine.uptime();
        let is_fresh = self.read_at.get(name).is_some_and(|at| now.saturating_sub(*at) < FRESH);
        if !is_fresh || self.admission.get(name).is_none() {
            self.wanted.insert(Arc::clone(name), Some(settings));
            self.waiting.insert(job.shared_id());
            return Ok(None);
        }
        self.tick();
        if self.admission.may_probe(name) && self.admission.probe_owner(name) == ProbeOwner::Unclaimed {
            self.claim(name)?;
        }
        Ok(Some(effect::ask_breaker(job, &mut self.admission, item, name)))
    }

    /// Tries to become the process that probes the target of a breaker.
    fn claim(&mut self, name: &Arc<str>) -> Result<(), DriveError> {
        if mutant::is(Mutant::ProbeWithoutClaim) {
            self.admission.set_probe_owner(name, ProbeOwner::Ours);
            return Ok(());
        }
        match self.services.store.claim(&breakers::probe_claim(name)?) {
            Ok(claim) => {
                self.claims.insert(Arc::clone(name), claim);
                self.admission.set_probe_owner(name, ProbeOwner::Ours);
                // Its last owner may have probed since the journal was read.
                self.read_new_records(name)?;
                self.tick();
            }
            Err(ClaimError::OwnedBy { .. }) => self.admission.set_probe_owner(name, ProbeOwner::Others),
            Err(error) => return Err(JournalError::from(error).into()),
        }
        Ok(())
    }

    pub(super) fn report(&mut self, job: &Job, reports: &[BreakerReport]) {
        self.tick();
        for report in reports {
            let lost = matches!(report, BreakerReport::Ended { .. }) && mutant::is(Mutant::BreakerReportLost);
            if !lost {
                self.admission.report(&job.shared_id(), report);
            }
        }
    }

    /// The facts of a job for these breakers, to be appended with its records up to `seq`.
    pub(super) fn seal<'n>(
        &mut self,
        job: &Job,
        seq: Version,
        names: impl IntoIterator<Item = &'n Arc<str>>,
    ) -> Vec<(Arc<str>, Append)> {
        let mut sealed = Vec::new();
        for name in names {
            let record = self.admission.seal(name, job.id(), seq.0);
            // The name is valid, since its journal was read.
            let append = record.and_then(|record| breakers::append(name, &record).ok());
            sealed.extend(append.map(|append| (Arc::clone(name), append)));
        }
        sealed
    }

    /// The facts of a commit are on disk. The versions are those that the journals of the breakers have
    /// reached, as far as the store has reported them.
    pub(super) fn written<'n>(
        &mut self,
        job: &Job,
        seq: Version,
        reached: impl IntoIterator<Item = (&'n Arc<str>, Option<Version>)>,
    ) {
        for (name, version) in reached {
            let version = version.map(|version| version.0);
            if version.is_none() {
                // A fact is missing here, so the journal must be read before the next attempt asks.
                self.read_at.remove(name);
            }
            let is_known = self.admission.acknowledge(name, job.id(), seq.0, version);
            if !is_known && !self.unreadable.contains(name) {
                self.wanted.entry(Arc::clone(name)).or_default();
            }
        }
    }

    /// The jobs of overdue probes. The store is asked whether they have an owner.
    pub(super) fn overdue_probes(&mut self) -> Vec<AggregateId> {
        self.tick();
        let names = self.admission.awaited().iter().chain(self.wanted.keys());
        let probes = names.filter_map(|name| self.overdue_probe(name));
        probes.filter_map(|probe| aggregate(&probe.job).ok()).collect()
    }

    fn overdue_probe(&self, name: &str) -> Option<&Probe> {
        self.admission.get(name)?.overdue_probe(self.admission.now())
    }

    /// Housekeeping, once a poll.
    pub(super) fn maintain(&mut self) -> Result<(), DriveError> {
        self.tick();
        self.release_idle_claims();
        for name in self.admission.awaited().clone() {
            if self.admission.probe_owner(&name) == ProbeOwner::Others {
                // A claim that ends leaves no trace in the store, so it is tried again.
                self.admission.set_probe_owner(&name, ProbeOwner::Unclaimed);
            }
        }
        self.trim()?;
        if self.admission.is_idle() {
            self.clock = Clock::set_by(&*self.services.machine);
        }
        self.tick();
        Ok(())
    }

    /// Records the loss of an overdue probe whose job has no owner; otherwise the breaker would wait for it.
    fn give_up_probe(&mut self, name: &Arc<str>) -> Result<(), DriveError> {
        let Some(probe) = self.overdue_probe(name).cloned() else {
            return Ok(());
        };
        if self.admission.probe_owner(name) != ProbeOwner::Ours {
            self.claim(name)?;
        }
        let state = self.admission.get(name);
        let same = state.filter(|state| state.probe.as_ref() == Some(&probe));
        if let Some(state) = same.filter(|_| self.admission.probe_owner(name) == ProbeOwner::Ours) {
            let (at, generation) = (self.admission.now(), state.breaker.generation());
            let lost = BreakerRecord::by_hand(vec![BreakerFact::ProbeLost { at, generation }]);
            let append = breakers::append(name, &lost)?;
            self.services.store.append(vec![append])?;
            self.read_new_records(name)?;
        }
        Ok(())
    }

    /// Keeps journals short: appends the fold of many records, and later removes these.
    fn trim(&mut self) -> Result<(), DriveError> {
        let most = self.services.machine.trim_after();
        let names: Vec<Arc<str>> = self.admission.names().cloned().collect();
        for name in names {
            let Some((version, unfolded)) = self.admission.version(&name) else {
                continue;
            };
            let asked = self.folded.get(&name).copied().unwrap_or_default();
            if unfolded >= most && version.saturating_sub(asked) >= most {
                if let Some(fact) = self.admission.fold(&name) {
                    let record = BreakerRecord::by_hand(vec![fact]);
                    let append = breakers::append(&name, &record)?;
                    // If this append fails, the journal is folded a little later.
                    self.services.store.submit(vec![append], Box::new(drop));
                    self.folded.insert(Arc::clone(&name), version);
                }
                continue;
            }
            let upto = version.saturating_sub(unfolded);
            let before = self.trimmed.get(&name).copied().unwrap_or_default();
            if upto > before && self.folded.contains_key(&name) {
                self.trimmed.insert(Arc::clone(&name), upto);
                let (store, of) = (Arc::clone(&self.services.store), breakers::aggregate(&name)?);
                self.services.machine.save(Box::new(move || {
                    // Records that are not removed now are removed the next time.
                    drop(store.trim(&of, Version(upto).next()));
                }));
            }
        }
        Ok(())
    }

    /// Releases claims that are not needed, so that another process may probe.
    fn release_idle_claims(&mut self) {
        let admission = &mut self.admission;
        let idle = self.claims.extract_if(.., |name, _| !admission.needs_claim(name));
        for (name, claim) in idle.collect::<Vec<_>>() {
            self.services.store.unclaim_in_background(&claim);
            self.admission.set_probe_owner(&name, ProbeOwner::Unclaimed);
            if self.admission.get(&name).is_none() {
                self.forget_name(&name);
            }
        }
    }

    /// The loop no longer runs a job: claims for it alone are released at once.
    pub(super) fn forget(&mut self, job: &Job) {
        for name in self.admission.remove_job(&job.shared_id()) {
            self.forget_name(&name);
        }
        self.release_idle_claims();
    }

    fn forget_name(&mut self, name: &Arc<str>) {
        self.read_at.remove(name);
        self.wanted.remove(name);
        self.stale.remove(name);
        self.unreadable.remove(name);
        self.folded.remove(name);
        self.trimmed.remove(name);
    }

    pub(super) fn leave(&mut self) {
        for claim in std::mem::take(&mut self.claims).into_values() {
            self.services.store.unclaim_in_background(&claim);
        }
    }
}
