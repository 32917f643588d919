//! [`AdmissionControl`]: the breakers of a store as all jobs of one process see them.
//!
//! Pure: the caller sets the time with [`AdmissionControl::tick`], and reads and writes the records. The
//! state of a breaker is the fold of what is on disk plus the facts of this process that are still being
//! written, so a process never starts an attempt that it knows to be held.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use undaunted_policy::{BreakerSettings, Timestamp};

use super::journal::BreakerJournal;
use super::record::{BreakerFact, BreakerRecord};
use super::report::BreakerReport;
use super::state::{BreakerChange, BreakerState};
use super::tracked::{ProbeOwner, SealedFacts, TrackedBreaker};
use crate::mutant::{self, Mutant};

/// Decides for all jobs of a process whether an attempt may start, and keeps track of releases and probes.
#[derive(Clone, Debug, Default)]
pub struct AdmissionControl {
    pub(super) now: Timestamp,
    pub(super) breakers: BTreeMap<Arc<str>, TrackedBreaker>,
    stale: BTreeSet<Arc<str>>,
    pub(super) awaited: BTreeSet<Arc<str>>,
    /// The breakers that each job uses.
    pub(super) jobs: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Breakers that may admit starts they refused before, so waiting jobs must be woken.
    pub(super) changed: BTreeSet<Arc<str>>,
    pub(super) transitions: Vec<(Arc<str>, BreakerChange)>,
}

impl AdmissionControl {
    pub fn with_breakers(settings: impl IntoIterator<Item = (String, BreakerSettings)>) -> Self {
        let mut admission = Self::default();
        for (name, settings) in settings {
            admission.load(&Arc::from(name), BreakerState::with_settings(settings).into());
        }
        admission
    }

    pub fn tick(&mut self, now: Timestamp) {
        self.now = now;
    }

    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Replaces what is known of a breaker with its folded journal.
    pub fn load(&mut self, name: &Arc<str>, mut journal: BreakerJournal) {
        let known = self.breakers.entry(Arc::clone(name)).or_default();
        journal.changes.retain(|(_, it)| it.change.is_transition());
        let is_read = |it: &SealedFacts| it.reached.is_some_and(|at| at <= journal.version);
        known.sealed.retain(|it| !is_read(it));
        known.journal = journal;
        known.is_stale = true;
        if known.refresh(self.now) {
            self.changed.insert(Arc::clone(name));
        }
    }

    /// Adds newer journal records. Returns false if some are missing because the journal was trimmed: then
    /// the whole journal must be read and passed to [`Self::load`].
    pub fn extend(&mut self, name: &str, records: impl IntoIterator<Item = (u64, BreakerRecord)>) -> bool {
        let Some((name, known)) = entry(&mut self.breakers, name) else { return false };
        for (version, record) in records {
            if version != known.journal.version.saturating_add(1) {
                return false;
            }
            if let Some(own) = known.position(record.job.as_deref(), record.seq) {
                known.sealed.remove(own);
            }
            let transitions = known.add_record(version, &record).into_iter();
            self.transitions.extend(transitions.map(|change| (Arc::clone(&name), change)));
        }
        if known.refresh(self.now) || known.state.is_open_or_half_open() {
            self.changed.insert(name);
        }
        true
    }

    /// The facts of a commit are on disk, at journal version `reached` if the store returned it. Returns
    /// false if the journal must be read because it may hold unknown facts.
    pub fn acknowledge(&mut self, name: &str, job: &str, seq: u64, reached: Option<u64>) -> bool {
        let Some((name, known)) = entry(&mut self.breakers, name) else { return true };
        let is_answered = reached.is_some();
        let Some(reached) = reached.filter(|reached| *reached > known.journal.version) else {
            // The fold has these facts, or will have when the journal is read. Kept here, they would count
            // twice.
            if let Some(own) = known.position(Some(job), Some(seq)) {
                known.sealed.remove(own);
                known.is_stale = true;
                self.stale.insert(name);
            }
            return is_answered;
        };
        let Some(own) = known.position(Some(job), Some(seq)) else { return false };
        if reached != known.journal.version.saturating_add(1) {
            // A trimmed journal is not read record by record, so the version tells whether it covers them.
            if let Some(sealed) = known.sealed.get_mut(own) {
                sealed.reached = Some(reached);
            }
            return false;
        }
        if let Some(SealedFacts { record, .. }) = known.sealed.remove(own) {
            let transitions = known.add_record(reached, &record).into_iter();
            self.transitions.extend(transitions.map(|change| (Arc::clone(&name), change)));
            if known.state.is_open_or_half_open() {
                self.changed.insert(Arc::clone(&name));
            }
            self.stale.insert(name);
        }
        true
    }

    pub fn refresh(&mut self) {
        for name in std::mem::take(&mut self.stale) {
            let known = self.breakers.get_mut(&name);
            if known.is_some_and(|known| known.refresh(self.now)) {
                self.changed.insert(name);
            }
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.breakers.keys()
    }

    pub fn get(&self, name: &str) -> Option<&BreakerState> {
        self.breakers.get(name).map(|known| &known.state)
    }

    /// The version of the known journal, and how many of its records are not folded.
    pub fn version(&self, name: &str) -> Option<(u64, u64)> {
        let known = self.breakers.get(name)?;
        Some((known.journal.version, known.journal.unfolded))
    }

    pub fn fold(&self, name: &str) -> Option<BreakerFact> {
        Some(self.breakers.get(name)?.journal.folded())
    }

    /// Counts a job's report at once; it is written when the job's facts are sealed.
    pub fn report(&mut self, job: &Arc<str>, report: &BreakerReport) {
        let name = Arc::clone(report.breaker());
        self.add_user(&name, job);
        let now = self.now;
        let Some(known) = self.breakers.get_mut(&name) else { return };
        if let BreakerReport::Started { .. } = report
            && let Some(release) = known.releases.get_mut(job)
        {
            release.started();
        }
        let Some(fact) = report.fact(now) else { return };
        self.note_fact(&name, job, fact);
    }

    pub fn configure(&mut self, name: &Arc<str>, job: &Arc<str>, settings: BreakerSettings) {
        self.add_user(name, job);
        if self.get(name).is_some_and(|state| state.settings != settings) {
            let at = self.now;
            self.note_fact(name, job, BreakerFact::Configured { at, settings });
        }
    }

    fn note_fact(&mut self, name: &Arc<str>, job: &Arc<str>, fact: BreakerFact) {
        let now = self.now;
        let Some(known) = self.breakers.get_mut(name) else { return };
        let mut changed = known.refresh(now);
        let before = known.state.clone();
        if !mutant::is(Mutant::UnwrittenFactsIgnored) {
            let _ = known.state.apply_fact(Some(job), &fact);
        }
        BreakerFact::add(known.open.entry(Arc::clone(job)).or_default(), fact);
        changed |= known.update_releases(&before, now);
        if changed {
            self.changed.insert(Arc::clone(name));
        }
    }

    /// Takes the open facts of a job, to be appended together with the job's records up to `seq`.
    pub fn seal(&mut self, name: &str, job: &str, seq: u64) -> Option<BreakerRecord> {
        let (name, known) = entry(&mut self.breakers, name)?;
        let mut facts = known.open.remove(job)?;
        // Until a journal exists every record has the settings, because this one may be written before the
        // others, or the others may be lost.
        if known.journal.version == 0 {
            let (at, settings) = (self.now, known.state.settings);
            facts.insert(0, BreakerFact::Configured { at, settings });
        }
        let record = BreakerRecord { job: Some(job.to_owned()), seq: Some(seq), facts };
        known.sealed.push_back(SealedFacts { record: record.clone(), reached: None });
        if known.state.is_open_or_half_open() {
            // A probe that waited for the previous result to be sealed may start.
            self.changed.insert(Arc::clone(&name));
        }
        if known.sealed.len() > 1 || !known.open.is_empty() {
            // Jobs may seal their facts in another order than they reported them.
            known.is_stale = true;
            self.stale.insert(name);
        }
        Some(record)
    }

    /// The sealed facts of a commit that has not been acknowledged.
    pub fn sealed(&self, name: &str, job: &str, seq: u64) -> Option<&BreakerRecord> {
        let known = self.breakers.get(name)?;
        let index = known.position(Some(job), Some(seq))?;
        Some(&known.sealed.get(index)?.record)
    }

    /// Removes a job and its unwritten facts, and the breakers that no other job uses; returns those.
    pub fn remove_job(&mut self, job: &Arc<str>) -> Vec<Arc<str>> {
        let mut unused = Vec::new();
        for name in self.jobs.remove(job).unwrap_or_default() {
            self.withdraw_offer(&name, job);
            let Some(known) = self.breakers.get_mut(&name) else { continue };
            known.users.remove(job);
            let own = |it: &SealedFacts| it.record.job.as_deref() == Some(&**job);
            let before = known.sealed.len();
            known.sealed.retain(|it| !own(it));
            let dropped = known.open.remove(job).is_some() || known.sealed.len() < before;
            known.is_stale |= dropped;
            if known.users.is_empty() && known.prober != ProbeOwner::Ours {
                self.breakers.remove(&name);
                unused.push(name);
            } else if known.refresh(self.now) {
                self.changed.insert(name);
            }
        }
        unused
    }

    /// Registers a job as a user of a breaker until the job is removed.
    pub fn add_user(&mut self, name: &Arc<str>, job: &Arc<str>) {
        if let Some(known) = self.breakers.get_mut(name)
            && !known.users.contains(job)
        {
            known.users.insert(Arc::clone(job));
            self.jobs.entry(Arc::clone(job)).or_default().insert(Arc::clone(name));
        }
    }

    pub fn users(&self, name: &str) -> impl Iterator<Item = &Arc<str>> {
        let known = self.breakers.get(name).into_iter();
        known.flat_map(|known| &known.users)
    }

    pub fn has_changes(&self) -> bool {
        !self.changed.is_empty() || !self.transitions.is_empty()
    }

    /// Transitions that have reached the disk since the last call.
    pub fn take_transitions(&mut self) -> Vec<(Arc<str>, BreakerChange)> {
        std::mem::take(&mut self.transitions)
    }
}

impl From<BreakerState> for BreakerJournal {
    fn from(state: BreakerState) -> Self {
        Self { state, ..Self::default() }
    }
}

fn entry<'k>(
    known: &'k mut BTreeMap<Arc<str>, TrackedBreaker>,
    name: &str,
) -> Option<(Arc<str>, &'k mut TrackedBreaker)> {
    let (name, _) = known.get_key_value(name)?;
    let name = Arc::clone(name);
    let known = known.get_mut(&name)?;
    Some((name, known))
}
