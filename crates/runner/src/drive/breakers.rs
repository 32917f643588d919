//! The breakers of a store as one event loop sees them: read, asked, told, probed, trimmed.
//!
//! [`Admission`] decides; this part reads the journals for it, keeps its clock, claims what is to be
//! probed, and keeps the journals short. Nothing here can make an append of a job fail.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use undaunted_engine::breaker::{
    Admission, BreakerChange, BreakerRecord, BreakerState, Fact, Gate, Prober, Report,
};
use undaunted_engine::effect;
use undaunted_engine::job::Job;
use undaunted_policy::mutant::{self, Mutant};
use undaunted_policy::{BreakerSettings, Timestamp};
use undaunted_store::{Append, Claim, ClaimError, Version};

use super::error::DriveError;
use super::running::World;
use crate::breakers;
use crate::clock::Clock;
use crate::journal::{JournalError, aggregate};

/// How old what is known of a breaker may be when an attempt asks it. Others may have opened it.
const FRESH: Duration = Duration::from_millis(20);

/// What the jobs of an event loop know of breakers.
pub(super) struct BreakerCache {
    pub(super) admission: Admission,
    /// One clock for all jobs: theirs may have been set at different times.
    clock: Clock,
    /// The claims under which this process probes.
    claims: BTreeMap<Arc<str>, Claim>,
    /// When each breaker was last looked at, by the machine's uptime, and the pulse of the store then.
    looked: BTreeMap<Arc<str>, (Duration, u64)>,
    /// How far the journal of each breaker was folded by this process.
    folded: BTreeMap<Arc<str>, u64>,
    /// How far each was trimmed.
    trimmed: BTreeMap<Arc<str>, u64>,
    /// Openings and closings that jobs are to be told of.
    turned: Vec<Turned>,
}

/// A breaker has opened, half opened or closed.
pub(super) struct Turned {
    pub(super) breaker: Arc<str>,
    pub(super) change: BreakerChange,
    /// The job that was told when its own records were.
    pub(super) told: Option<Arc<str>>,
}

impl BreakerCache {
    pub(super) fn new(world: &World) -> Self {
        Self {
            admission: Admission::default(),
            clock: Clock::set_by(&*world.machine),
            claims: BTreeMap::new(),
            looked: BTreeMap::new(),
            folded: BTreeMap::new(),
            trimmed: BTreeMap::new(),
            turned: Vec::new(),
        }
    }

    /// Openings and closings that have reached the disk since this was last asked. A job that is told of
    /// them now is not told again.
    pub(super) fn take_turned(&mut self, told: Option<&Arc<str>>) -> Vec<Turned> {
        let turned = self.admission.take_turned().into_iter();
        let turned = turned.map(|(breaker, change)| Turned {
            breaker,
            change,
            told: None,
        });
        let mut taken = std::mem::take(&mut self.turned);
        taken.extend(turned);
        if let Some(job) = told {
            self.turned.extend(taken.iter().map(|turned| Turned {
                breaker: Arc::clone(&turned.breaker),
                change: turned.change.clone(),
                told: Some(Arc::clone(job)),
            }));
        }
        taken
    }

    /// Whether there is something to be done because of breakers.
    pub(super) fn has_news(&self) -> bool {
        self.admission.has_news() || !self.turned.is_empty()
    }

    /// Brings the time and what has become known up to date.
    pub(super) fn tick(&mut self, world: &World) {
        self.admission.tick(self.clock.at(world.machine.uptime()));
        self.admission.refresh();
    }

    /// How long it is until an instant of the breakers' clock.
    pub(super) fn wait(&self, world: &World, until: Timestamp) -> Duration {
        until.since(self.clock.at(world.machine.uptime()))
    }

    /// Reads a breaker as it is now. One without a journal has these settings.
    pub(super) fn meet_now(
        &mut self,
        world: &World,
        name: &Arc<str>,
        settings: BreakerSettings,
    ) -> Result<(), DriveError> {
        self.meet(world, name, settings)?;
        self.look_at(world, name, Duration::ZERO)
    }

    /// Reads a breaker, unless it is known.
    fn meet(
        &mut self,
        world: &World,
        name: &Arc<str>,
        settings: BreakerSettings,
    ) -> Result<(), DriveError> {
        if self.admission.get(name).is_none() {
            self.read_whole(world, name, settings)?;
        }
        Ok(())
    }

    fn read_whole(
        &mut self,
        world: &World,
        name: &Arc<str>,
        settings: BreakerSettings,
    ) -> Result<(), DriveError> {
        let pulse = world.store.pulse()?;
        let journal = breakers::read(&*world.store, name)?;
        let journal = journal.unwrap_or_else(|| BreakerState::with(settings).into());
        self.admission.meet(name, journal);
        let looked = (world.machine.uptime(), pulse);
        self.looked.insert(Arc::clone(name), looked);
        Ok(())
    }

    /// Learns what others have told a breaker, if what is known is older than `age`.
    fn look_at(&mut self, world: &World, name: &Arc<str>, age: Duration) -> Result<(), DriveError> {
        let now = world.machine.uptime();
        let looked = self.looked.get(name).copied();
        if looked.is_some_and(|(at, _)| now.saturating_sub(at) < age) {
            return Ok(());
        }
        let pulse = world.store.pulse()?;
        if looked.is_some_and(|(_, seen)| seen == pulse) {
            self.looked.insert(Arc::clone(name), (now, pulse));
            return Ok(());
        }
        self.read_on(world, name)?;
        self.looked.insert(Arc::clone(name), (now, pulse));
        Ok(())
    }

    /// Reads what was added to the journal of a breaker.
    fn read_on(&mut self, world: &World, name: &Arc<str>) -> Result<(), DriveError> {
        let Some((version, _)) = self.admission.version(name) else {
            return Ok(());
        };
        let records = breakers::records(&*world.store, name, Version(version))?;
        if !self.admission.learn(name, records) {
            let settings = self.admission.get(name).map(|state| state.settings);
            self.read_whole(world, name, settings.unwrap_or_default())?;
        }
        Ok(())
    }

    /// Whether the next attempt of an item may start.
    pub(super) fn ask(
        &mut self,
        world: &World,
        job: &Job,
        place: (u32, u32),
        (name, settings): (&Arc<str>, BreakerSettings),
    ) -> Result<Gate, DriveError> {
        self.meet(world, name, settings)?;
        self.look_at(world, name, FRESH)?;
        self.tick(world);
        self.give_up_probe(world, name)?;
        if self.admission.may_probe(name) && self.admission.prober(name) == Prober::Unclaimed {
            self.claim(world, name)?;
        }
        Ok(effect::ask(job, &mut self.admission, place, name))
    }

    /// Tries to become the process that probes for a breaker.
    fn claim(&mut self, world: &World, name: &Arc<str>) -> Result<(), DriveError> {
        if mutant::is(Mutant::TwoProbers) {
            self.admission.probed_by(name, Prober::Ours);
            return Ok(());
        }
        match world.store.claim(&breakers::probe_claim(name)?) {
            Ok(claim) => {
                self.claims.insert(Arc::clone(name), claim);
                self.admission.probed_by(name, Prober::Ours);
                // The process that had it before may have probed since the journal was last read.
                self.read_on(world, name)?;
                self.tick(world);
            }
            Err(ClaimError::OwnedBy { .. }) => self.admission.probed_by(name, Prober::Others),
            Err(error) => return Err(JournalError::from(error).into()),
        }
        Ok(())
    }

    /// A job tells its breakers something.
    pub(super) fn report(&mut self, world: &World, job: &Job, reports: &[Report]) {
        self.tick(world);
        for report in reports {
            let lost = matches!(report, Report::Ended { .. }) && mutant::is(Mutant::FactLost);
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
            // Its journal was read by this name, so the name is one of a breaker.
            let append = record.and_then(|record| breakers::append(name, &record).ok());
            sealed.extend(append.map(|append| (Arc::clone(name), append)));
        }
        sealed
    }

    /// The facts of a commit of a job are on the disk, where the journals of these breakers have
    /// reached these versions.
    pub(super) fn written<'n>(
        &mut self,
        world: &World,
        job: &Job,
        seq: Version,
        reached: impl IntoIterator<Item = (&'n Arc<str>, Version)>,
    ) -> Result<(), DriveError> {
        for (name, version) in reached {
            if !self.admission.written(name, job.id(), seq.0, version.0) {
                self.read_on(world, name)?;
            }
        }
        Ok(())
    }

    /// Looks at what others may have done, and puts things in order.
    pub(super) fn look(&mut self, world: &World) -> Result<(), DriveError> {
        self.tick(world);
        for name in self.admission.idle_probers() {
            self.let_go(world, &name);
        }
        for name in self.admission.awaited() {
            self.look_at(world, &name, Duration::ZERO)?;
            if self.admission.prober(&name) == Prober::Others {
                // Its claim ends with it, which changes nothing in the store.
                self.admission.probed_by(&name, Prober::Unclaimed);
            }
            self.give_up_probe(world, &name)?;
        }
        self.trim(world)?;
        if self.admission.is_calm() {
            self.clock = Clock::set_by(&*world.machine);
        }
        self.tick(world);
        Ok(())
    }

    /// A probe whose job no process runs would keep everything waiting. After the time that an outage
    /// is waited for, another may be made.
    fn give_up_probe(&mut self, world: &World, name: &Arc<str>) -> Result<(), DriveError> {
        let state = self.admission.get(name);
        let overdue = state.and_then(|state| state.overdue_probe(self.admission.now()));
        let Some(probe) = overdue.cloned() else {
            return Ok(());
        };
        let is_run = |job: &str| match aggregate(job) {
            Ok(of) => Ok(world.store.owner(&of)?.is_some()),
            Err(_) => Ok::<_, DriveError>(false),
        };
        if is_run(&probe.job)? {
            return Ok(());
        }
        if self.admission.prober(name) != Prober::Ours {
            self.claim(world, name)?;
        }
        let state = self.admission.get(name);
        let same = state.filter(|state| state.probe.as_ref() == Some(&probe));
        if let Some(state) = same.filter(|_| self.admission.prober(name) == Prober::Ours) {
            let (at, generation) = (self.admission.now(), state.breaker.generation());
            let lost = BreakerRecord::by_hand(vec![Fact::ProbeLost { at, generation }]);
            let append = breakers::append(name, &lost)?;
            world.store.append(vec![append])?;
            self.read_on(world, name)?;
        }
        Ok(())
    }

    /// Keeps journals short: what many records come to is appended, and then they go.
    fn trim(&mut self, world: &World) -> Result<(), DriveError> {
        let most = world.machine.trim_after();
        let names: Vec<Arc<str>> = self.admission.names().cloned().collect();
        for name in names {
            let Some((version, unfolded)) = self.admission.version(&name) else {
                continue;
            };
            let asked = self.folded.get(&name).copied().unwrap_or_default();
            if unfolded >= most && version.saturating_sub(asked) >= most {
                if let Some(fact) = self.admission.folded(&name) {
                    let record = BreakerRecord::by_hand(vec![fact]);
                    let append = breakers::append(&name, &record)?;
                    // If it is not written, the journal is folded a little later.
                    world.store.submit(vec![append], Box::new(drop));
                    self.folded.insert(Arc::clone(&name), version);
                }
                continue;
            }
            let upto = version.saturating_sub(unfolded);
            let before = self.trimmed.get(&name).copied().unwrap_or_default();
            if upto > before && self.folded.contains_key(&name) {
                self.trimmed.insert(Arc::clone(&name), upto);
                let (store, of) = (Arc::clone(&world.store), breakers::aggregate(&name)?);
                world.machine.save(Box::new(move || {
                    // What is not removed now is removed the next time.
                    drop(store.trim(&of, Version(upto).next()));
                }));
            }
        }
        Ok(())
    }

    /// Gives up a claim, so that another process may probe.
    fn let_go(&mut self, world: &World, name: &Arc<str>) {
        if let Some(claim) = self.claims.remove(name) {
            world.store.let_go(&claim);
        }
        self.admission.probed_by(name, Prober::Unclaimed);
        self.forget_unused();
    }

    /// A job is left. What was claimed for it alone goes to others at once.
    pub(super) fn forget(&mut self, world: &World, job: &Job) {
        self.admission.forget(&job.shared_id());
        for name in self.admission.idle_probers() {
            self.let_go(world, &name);
        }
        self.forget_unused();
    }

    fn forget_unused(&mut self) {
        let admission = &self.admission;
        let is_used = |name: &Arc<str>| admission.get(name).is_some();
        self.looked.retain(|name, _| is_used(name));
        self.folded.retain(|name, _| is_used(name));
        self.trimmed.retain(|name, _| is_used(name));
    }

    /// Gives up all claims.
    pub(super) fn leave(&mut self, world: &World) {
        for claim in std::mem::take(&mut self.claims).into_values() {
            world.store.let_go(&claim);
        }
    }
}
