//! Whether attempts may start: the breakers of a store as all jobs of a process see them.
//!
//! Pure: the time is set by [`Admission::tick`], records are read and written by the caller. A breaker is
//! seen as the fold of what is on the disk with the facts of this process on top that are still being
//! written, so a process never starts what it knows to be held.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use undaunted_policy::mutant::{self, Mutant};
use undaunted_policy::{BreakerSettings, Timestamp};

use super::journal::BreakerJournal;
use super::known::{Known, Prober, Sealed};
use super::record::{BreakerRecord, Fact};
use super::report::BreakerReport;
use super::state::{BreakerChange, BreakerState};

/// Answers for all jobs of a process whether an attempt may start; holds, releases and probes.
#[derive(Clone, Debug, Default)]
pub struct AdmissionControl {
    pub(super) now: Timestamp,
    pub(super) known: BTreeMap<Arc<str>, Known>,
    /// Those whose state has to be put together again.
    stale: BTreeSet<Arc<str>>,
    /// Those that something waits for.
    pub(super) awaited: BTreeSet<Arc<str>>,
    /// The breakers that each job uses.
    pub(super) jobs: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Breakers that may let something start that they did not before.
    pub(super) changed: BTreeSet<Arc<str>>,
    /// Openings and closings that have reached the disk.
    pub(super) turned: Vec<(Arc<str>, BreakerChange)>,
}

impl AdmissionControl {
    /// Breakers with these settings and without facts.
    pub fn of(settings: impl IntoIterator<Item = (String, BreakerSettings)>) -> Self {
        let mut admission = Self::default();
        for (name, settings) in settings {
            let state = BreakerState::with(settings);
            admission.meet(&Arc::from(name), state.into());
        }
        admission
    }

    pub fn tick(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// The time that was set last.
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Takes over what the journal of a breaker comes to.
    pub fn meet(&mut self, name: &Arc<str>, mut journal: BreakerJournal) {
        let known = self.known.entry(Arc::clone(name)).or_default();
        journal.changes.retain(|(_, it)| it.change.is_transition());
        let is_read = |it: &Sealed| it.reached.is_some_and(|at| at <= journal.version);
        known.sealed.retain(|it| !is_read(it));
        known.journal = journal;
        known.is_stale = true;
        if known.refresh(self.now) {
            self.changed.insert(Arc::clone(name));
        }
    }

    /// Takes over further records of a breaker's journal. False if some between are missing, because
    /// the journal was trimmed: then it has to be met anew.
    pub fn learn(
        &mut self,
        name: &str,
        records: impl IntoIterator<Item = (u64, BreakerRecord)>,
    ) -> bool {
        let Some((name, known)) = entry(&mut self.known, name) else {
            return false;
        };
        for (version, record) in records {
            if version != known.journal.version.saturating_add(1) {
                return false;
            }
            if let Some(own) = known.position(record.job.as_deref(), record.seq) {
                known.sealed.remove(own);
            }
            let turned = known.stored(version, &record).into_iter();
            self.turned
                .extend(turned.map(|change| (Arc::clone(&name), change)));
        }
        if known.refresh(self.now) || known.state.is_shut() {
            self.changed.insert(name);
        }
        true
    }

    /// The facts of a commit are on the disk, and the journal has reached a version with them, if that
    /// was answered. False if the journal has to be read: it may hold facts that are not known yet.
    pub fn written(&mut self, name: &str, job: &str, seq: u64, reached: Option<u64>) -> bool {
        let Some((name, known)) = entry(&mut self.known, name) else {
            return true;
        };
        let is_answered = reached.is_some();
        let reached = reached.filter(|reached| *reached > known.journal.version);
        let Some(reached) = reached else {
            // The fold has them, or will when the journal is read. Kept here they would count twice.
            if let Some(own) = known.position(Some(job), Some(seq)) {
                known.sealed.remove(own);
                known.is_stale = true;
                self.stale.insert(name);
            }
            return is_answered;
        };
        let Some(own) = known.position(Some(job), Some(seq)) else {
            return false;
        };
        if reached != known.journal.version.saturating_add(1) {
            // If the journal was trimmed meanwhile they are not read one by one.
            if let Some(sealed) = known.sealed.get_mut(own) {
                sealed.reached = Some(reached);
            }
            return false;
        }
        if let Some(Sealed { record, .. }) = known.sealed.remove(own) {
            let turned = known.stored(reached, &record).into_iter();
            self.turned
                .extend(turned.map(|change| (Arc::clone(&name), change)));
            if known.state.is_shut() {
                self.changed.insert(Arc::clone(&name));
            }
            self.stale.insert(name);
        }
        true
    }

    /// Puts together what has become known since the last time it was asked.
    pub fn refresh(&mut self) {
        for name in std::mem::take(&mut self.stale) {
            let known = self.known.get_mut(&name);
            if known.is_some_and(|known| known.refresh(self.now)) {
                self.changed.insert(name);
            }
        }
    }

    /// The breakers that are known.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.known.keys()
    }

    pub fn get(&self, name: &str) -> Option<&BreakerState> {
        self.known.get(name).map(|known| &known.state)
    }

    /// How many records of a breaker's journal are known, and how many of them are not folded.
    pub fn version(&self, name: &str) -> Option<(u64, u64)> {
        let known = self.known.get(name)?;
        Some((known.journal.version, known.journal.unfolded))
    }

    /// The fact that makes the journal of a breaker as far as it is known dispensable.
    pub fn folded(&self, name: &str) -> Option<Fact> {
        Some(self.known.get(name)?.journal.folded())
    }

    /// A job tells a breaker something. It counts at once, and is written when the job's facts are
    /// sealed.
    pub fn report(&mut self, job: &Arc<str>, report: &BreakerReport) {
        let name = Arc::clone(report.breaker());
        self.note_user(&name, job);
        let now = self.now;
        let Some(known) = self.known.get_mut(&name) else {
            return;
        };
        if let BreakerReport::Started { .. } = report
            && let Some(release) = known.releases.get_mut(job)
        {
            release.started();
        }
        let Some(fact) = report.fact(now) else { return };
        self.note_fact(&name, job, fact);
    }

    /// A job gives a breaker other settings.
    pub fn configure(&mut self, name: &Arc<str>, job: &Arc<str>, settings: BreakerSettings) {
        self.note_user(name, job);
        if self
            .get(name)
            .is_some_and(|state| state.settings != settings)
        {
            let at = self.now;
            self.note_fact(name, job, Fact::Configured { at, settings });
        }
    }

    fn note_fact(&mut self, name: &Arc<str>, job: &Arc<str>, fact: Fact) {
        let now = self.now;
        let Some(known) = self.known.get_mut(name) else {
            return;
        };
        let mut changed = known.refresh(now);
        let before = known.state.clone();
        if !mutant::is(Mutant::OwnFactsIgnored) {
            let _ = known.state.take(Some(job), &fact);
        }
        Fact::add(known.open.entry(Arc::clone(job)).or_default(), fact);
        changed |= known.follow(&before, now);
        if changed {
            self.changed.insert(Arc::clone(name));
        }
    }

    /// The facts of a job for a breaker, to be appended together with the job's records up to `seq`.
    /// A breaker without a journal is configured by every record until one is on the disk.
    pub fn seal(&mut self, name: &str, job: &str, seq: u64) -> Option<BreakerRecord> {
        let (name, known) = entry(&mut self.known, name)?;
        let mut facts = known.open.remove(job)?;
        // Other records that say so are on their way, and this one may overtake them or they may be lost.
        if known.journal.version == 0 {
            let (at, settings) = (self.now, known.state.settings);
            facts.insert(0, Fact::Configured { at, settings });
        }
        let record = BreakerRecord {
            job: Some(job.to_owned()),
            seq: Some(seq),
            facts,
        };
        known.sealed.push_back(Sealed {
            record: record.clone(),
            reached: None,
        });
        if known.state.is_shut() {
            // A probe that waited for the result of the last one to be handed over may start.
            self.changed.insert(Arc::clone(&name));
        }
        if known.sealed.len() > 1 || !known.open.is_empty() {
            // The facts of jobs are sealed in another order than they were told.
            known.is_stale = true;
            self.stale.insert(name);
        }
        Some(record)
    }

    /// The facts of a commit of a job that are not known to be on the disk.
    pub fn sealed(&self, name: &str, job: &str, seq: u64) -> Option<&BreakerRecord> {
        let known = self.known.get(name)?;
        let place = known.position(Some(job), Some(seq))?;
        Some(&known.sealed.get(place)?.record)
    }

    /// A job is left. What it has not had written is forgotten, and so are the breakers that no job uses
    /// any more: these.
    pub fn forget(&mut self, job: &Arc<str>) -> Vec<Arc<str>> {
        let mut unused = Vec::new();
        for name in self.jobs.remove(job).unwrap_or_default() {
            self.take_back(&name, job);
            let Some(known) = self.known.get_mut(&name) else {
                continue;
            };
            known.users.remove(job);
            let own = |it: &Sealed| it.record.job.as_deref() == Some(&**job);
            let before = known.sealed.len();
            known.sealed.retain(|it| !own(it));
            let dropped = known.open.remove(job).is_some() || known.sealed.len() < before;
            known.is_stale |= dropped;
            if known.users.is_empty() && known.prober != Prober::Ours {
                self.known.remove(&name);
                unused.push(name);
            } else if known.refresh(self.now) {
                self.changed.insert(name);
            }
        }
        unused
    }

    /// A job uses a breaker, which is kept in mind until the job is forgotten.
    pub fn note_user(&mut self, name: &Arc<str>, job: &Arc<str>) {
        if let Some(known) = self.known.get_mut(name)
            && !known.users.contains(job)
        {
            known.users.insert(Arc::clone(job));
            let names = self.jobs.entry(Arc::clone(job)).or_default();
            names.insert(Arc::clone(name));
        }
    }

    /// The jobs that use a breaker.
    pub fn users(&self, name: &str) -> impl Iterator<Item = &Arc<str>> {
        let known = self.known.get(name).into_iter();
        known.flat_map(|known| &known.users)
    }

    /// Whether jobs are to be told of changes.
    pub fn has_news(&self) -> bool {
        !self.changed.is_empty() || !self.turned.is_empty()
    }

    /// Openings and closings that have reached the disk since this was last asked.
    pub fn take_turned(&mut self) -> Vec<(Arc<str>, BreakerChange)> {
        std::mem::take(&mut self.turned)
    }
}

impl From<BreakerState> for BreakerJournal {
    fn from(state: BreakerState) -> Self {
        Self {
            state,
            ..Self::default()
        }
    }
}

fn entry<'k>(
    known: &'k mut BTreeMap<Arc<str>, Known>,
    name: &str,
) -> Option<(Arc<str>, &'k mut Known)> {
    let (name, _) = known.get_key_value(name)?;
    let name = Arc::clone(name);
    let known = known.get_mut(&name)?;
    Some((name, known))
}
