//! A small model of processes that share a store: each has one admission and runs some of the jobs. The
//! store takes appends in any order and refuses none; processes look late, die and lose what was not
//! stored, and hand the claims of probes around.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use undaunted_engine::breaker::{
    AdmissionControl, BreakerAnswer, BreakerFact, BreakerRecord, BreakerReport, BreakerState, ProbeOwner,
};
use undaunted_engine::decide::{Reaction, react};
use undaunted_engine::effect::{ask, next_admission, next_wake, offers, ready};
use undaunted_engine::event::{Event, ItemEvent, NewItem};
use undaunted_engine::id::{ItemId, StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::{Job, JobStage};
use undaunted_policy::{Admission as Answer, FailureCause, Timestamp};

use crate::journals::Journals;
use crate::run::{Batch, Run};
use crate::scene::{T0, digest};

/// A batch is on the disk, and its process has not heard of it.
struct Ack {
    which: usize,
    seq: u64,
    reached: Vec<(Arc<str>, u64)>,
    starts: Vec<StartId>,
}

/// A process.
#[derive(Default)]
pub(crate) struct Process {
    pub(crate) admission: AdmissionControl,
    acks: VecDeque<Ack>,
}

pub(crate) struct World {
    pub(crate) runs: Vec<Run>,
    pub(crate) processes: Vec<Process>,
    /// The journals of breakers as they are on the disk, and as they would be if none was trimmed.
    pub(crate) breakers: Journals,
    pub(crate) whole: Journals,
    /// Who holds `probe/NAME`.
    pub(crate) claims: BTreeMap<Arc<str>, usize>,
    pub(crate) now: Timestamp,
}

impl World {
    /// So many processes, the jobs of which are dealt out in turn.
    pub(crate) fn of(jobs: &[(String, u32)], processes: usize) -> Self {
        let runs = jobs.iter().enumerate();
        let runs = runs.map(|(number, (text, _))| Run::of(number, text, number % processes));
        let mut world = Self {
            runs: runs.collect(),
            processes: (0..processes).map(|_| Process::default()).collect(),
            breakers: Journals::default(),
            whole: Journals::default(),
            claims: BTreeMap::new(),
            now: T0,
        };
        for (which, (_, items)) in jobs.iter().enumerate() {
            world.decide(which, &Input::Woke);
            let items = (0..*items)
                .map(|number| NewItem { identity: format!("a{number}"), input: "null".to_owned() });
            let items = items.collect();
            world.decide(which, &Input::ItemsRead { step: StepId(0), items });
            world.flush(which);
        }
        world
    }

    /// The admission of the process that runs a job.
    pub(crate) fn admission(&self, which: usize) -> &AdmissionControl {
        &self.processes[self.runs[which].owner.unwrap()].admission
    }

    /// Tells a job something now, and the breakers what it reports.
    pub(crate) fn decide(&mut self, which: usize, input: &Input) {
        let Some(owner) = self.runs[which].owner else {
            return;
        };
        self.meet(which);
        let run = &mut self.runs[which];
        let admission = &mut self.processes[owner].admission;
        let Reaction { records, reports } = react(&mut run.job, input, self.now);
        let id = run.job.shared_id();
        for report in &reports {
            if let BreakerReport::Started { breaker, ticket } = report {
                let state = admission.get(breaker).unwrap();
                let answer = state.admission(self.now);
                assert_eq!(answer, Answer::Go(*ticket), "{report:?} of {state:?}");
                let ours = admission.probe_owner(breaker) == ProbeOwner::Ours;
                assert!(ours || !ticket.probe, "a probe without the claim");
            }
            admission.report(&id, report);
        }
        run.pending.extend(records);
        self.offer(which);
    }

    fn offer(&mut self, which: usize) {
        let run = &self.runs[which];
        let Some(owner) = run.owner else { return };
        let admission = &mut self.processes[owner].admission;
        let offers = offers(&run.job, admission);
        admission.set_offers(&run.job.shared_id(), &offers);
        self.let_go(owner);
    }

    /// Claims that a process has no use for are let go.
    fn let_go(&mut self, process: usize) {
        let admission = &mut self.processes[process].admission;
        let idle =
            self.claims.extract_if(.., |name, holder| *holder == process && !admission.needs_claim(name));
        for (name, _) in idle.collect::<Vec<_>>() {
            admission.set_probe_owner(&name, ProbeOwner::Unclaimed);
        }
    }

    /// The process of a job reads the breakers of the job that it does not know.
    fn meet(&mut self, which: usize) {
        let run = &self.runs[which];
        let admission = &mut self.processes[run.owner.unwrap()].admission;
        admission.tick(self.now);
        let settings = run.job.plan().breakers();
        for name in run.job.breakers() {
            if admission.get(&name).is_some() {
                continue;
            }
            let journal = if self.breakers.of(&name).is_empty() {
                BreakerState::with_settings(settings[&*name]).into()
            } else {
                self.breakers.fold(&name)
            };
            admission.load(&name, journal);
        }
    }

    /// Starts what is ready, and holds what is not, until nothing more changes.
    pub(crate) fn start(&mut self, which: usize) {
        for _ in 0..100 {
            let run = &self.runs[which];
            let Some(owner) = run.owner else { return };
            let before = run.pending.len();
            let admission = &mut self.processes[owner].admission;
            admission.tick(self.now);
            for item in ready(&run.job, admission, self.now) {
                let gate = self.gate(which, item);
                let input = Input::Start { item, refused: None, gate };
                self.decide(which, &input);
            }
            if self.runs[which].pending.len() == before {
                return;
            }
        }
        panic!("it never has enough: {}", digest(&self.runs[which].job));
    }

    /// Asks the breaker of the command that an item is about to start. Before a probe the claim is
    /// taken, and what others did is read.
    fn gate(&mut self, which: usize, item: ItemId) -> BreakerAnswer {
        self.meet(which);
        let job = &self.runs[which].job;
        let active = job.active(item).map(|active| active.command);
        let command = active.or_else(|| job.plan().first(item.step));
        let Some(name) = command.and_then(|command| job.breaker_of(command)) else {
            return BreakerAnswer::NoBreaker;
        };
        let (name, owner) = (Arc::from(name), self.runs[which].owner.unwrap());
        if self.processes[owner].admission.may_probe(&name) {
            self.claim(owner, &name);
        }
        let job = &self.runs[which].job;
        let admission = &mut self.processes[owner].admission;
        ask(job, admission, item, &name)
    }

    /// Whether a process holds the claim of a breaker, or gets it.
    fn claim(&mut self, process: usize, name: &Arc<str>) -> bool {
        let holder = *self.claims.entry(Arc::clone(name)).or_insert(process);
        if holder == process {
            self.look(process, name);
        }
        let prober = if holder == process { ProbeOwner::Ours } else { ProbeOwner::Others };
        let admission = &mut self.processes[process].admission;
        admission.set_probe_owner(name, prober);
        holder == process
    }

    /// A process reads what has been added to the journal of a breaker.
    pub(crate) fn look(&mut self, process: usize, name: &Arc<str>) {
        let admission = &mut self.processes[process].admission;
        admission.tick(self.now);
        let Some((version, _)) = admission.version(name) else {
            return;
        };
        let unknown = self.breakers.after(name, version);
        if !admission.extend(name, unknown) {
            admission.load(name, self.breakers.fold(name));
        }
        let free = !self.claims.contains_key(name);
        if free && admission.probe_owner(name) == ProbeOwner::Others {
            admission.set_probe_owner(name, ProbeOwner::Unclaimed);
        }
    }

    pub(crate) fn look_at_all(&mut self, process: usize) {
        let names: Vec<Arc<str>> = self.processes[process].admission.names().cloned().collect();
        for name in names {
            self.look(process, &name);
        }
        self.let_go(process);
        self.check_view(process);
    }

    /// What a job was told is under way to the store.
    pub(crate) fn hand_over(&mut self, which: usize) {
        let run = &mut self.runs[which];
        let Some(owner) = run.owner else { return };
        let records = std::mem::take(&mut run.pending);
        let seq = run.handed_over() + u64::try_from(records.len()).unwrap();
        let admission = &mut self.processes[owner].admission;
        let names: Vec<Arc<str>> = admission.names().cloned().collect();
        let facts = names.into_iter().filter_map(|name| {
            let record = admission.seal(&name, run.job.id(), seq)?;
            Some((name, record))
        });
        let facts: Vec<_> = facts.collect();
        if !records.is_empty() || !facts.is_empty() {
            run.batches.push_back(Batch { seq, records, facts });
        }
    }

    /// The store takes the oldest batch of a job.
    pub(crate) fn store(&mut self, which: usize) {
        if self.runs[which].batches.is_empty() {
            self.hand_over(which);
        }
        let run = &mut self.runs[which];
        let (Some(batch), Some(owner)) = (run.batches.pop_front(), run.owner) else {
            return;
        };
        let starts = batch.records.iter().filter_map(|record| match &record.event {
            Event::Item(ItemEvent::AttemptStarted(started)) => Some(started.start),
            _ => None,
        });
        let starts = starts.collect();
        run.take_to_disk(batch.records);
        let mut reached = Vec::new();
        for (name, record) in batch.facts {
            let version = self.append(&name, &record);
            reached.push((name, version));
        }
        self.processes[owner].acks.push_back(Ack { which, seq: batch.seq, reached, starts });
        self.check(which);
    }

    fn append(&mut self, name: &Arc<str>, record: &BreakerRecord) -> u64 {
        let version = self.whole.append(name, record);
        if self.breakers.of(name).is_empty() {
            assert_eq!(version, 1, "a journal is never trimmed to nothing");
        }
        assert_eq!(self.breakers.append(name, record), version);
        version
    }

    /// A process hears of the oldest batch that is on the disk.
    pub(crate) fn acknowledge(&mut self, process: usize) {
        let Some(ack) = self.processes[process].acks.pop_front() else {
            return;
        };
        let run = &mut self.runs[ack.which];
        run.begun.extend(ack.starts);
        let id = run.job.shared_id();
        for (name, version) in ack.reached {
            let admission = &mut self.processes[process].admission;
            if !admission.acknowledge(&name, &id, ack.seq, Some(version)) {
                self.look(process, &name);
            }
        }
        self.processes[process].admission.refresh();
        let run = &self.runs[ack.which];
        if run.job.stage.has_ended() && run.is_written() {
            self.processes[process].admission.remove_job(&id);
        }
    }

    /// All that a job was told is written and acknowledged.
    pub(crate) fn flush(&mut self, which: usize) {
        let Some(owner) = self.runs[which].owner else {
            return;
        };
        self.hand_over(which);
        while !self.runs[which].batches.is_empty() {
            self.store(which);
        }
        while !self.processes[owner].acks.is_empty() {
            self.acknowledge(owner);
        }
    }

    /// The attempt of a job ends that has begun at this place among those that have.
    pub(crate) fn end(&mut self, which: usize, attempt: usize, failure: Option<FailureCause>) {
        let run = &mut self.runs[which];
        let begun: Vec<StartId> = run.begun.iter().copied().collect();
        let Some(&start) = begun.get(attempt % begun.len().max(1)) else {
            return;
        };
        if run.owner.is_none() {
            return;
        }
        run.begun.remove(&start);
        let end = AttemptEnd { start, failure, ..AttemptEnd::default() };
        self.decide(which, &Input::Ended(Box::new(end)));
    }

    /// A process dies with all that was not stored, and its claims are free. Its jobs are run by none.
    pub(crate) fn crash(&mut self, process: usize) {
        self.processes[process] = Process::default();
        self.claims.retain(|_, holder| *holder != process);
        for run in &mut self.runs {
            if run.owner != Some(process) {
                continue;
            }
            run.owner = None;
            run.pending.clear();
            run.batches.clear();
            run.job = Job::begin(&run.journal[0]).unwrap();
            for record in &run.journal[1..] {
                run.job.apply(record);
            }
            assert_eq!(digest(&run.job), digest(&run.found));
            run.begun = run.job.starts.running.keys().copied().collect();
        }
    }

    /// A process resumes a job that none runs.
    pub(crate) fn adopt(&mut self, which: usize, process: usize) {
        if self.runs[which].owner.is_none() {
            self.runs[which].owner = Some(process);
            self.meet(which);
            self.decide(which, &Input::Resume { seen: None });
        }
    }

    /// A job is suspended in good order, if it can be.
    pub(crate) fn suspend(&mut self, which: usize) {
        let Some(owner) = self.runs[which].owner else {
            return;
        };
        self.decide(which, &Input::Suspend);
        if self.runs[which].job.stage == JobStage::Suspended {
            self.flush(which);
            let id = self.runs[which].job.shared_id();
            self.processes[owner].admission.remove_job(&id);
            self.let_go(owner);
            self.runs[which].owner = None;
        }
    }

    /// An operator opens or closes every breaker.
    pub(crate) fn by_hand(&mut self, trip: bool) {
        let at = self.now;
        for name in self.breakers.names() {
            let fact = if trip { BreakerFact::Tripped { at } } else { BreakerFact::Reset { at } };
            self.append(&name, &BreakerRecord::by_hand(vec![fact]));
        }
    }

    /// A process trims the journals of breakers as far as it knows them.
    pub(crate) fn trim(&mut self, process: usize) {
        for name in self.breakers.names() {
            let Some(fact) = self.processes[process].admission.fold(&name) else {
                continue;
            };
            let BreakerFact::Folded { upto, .. } = fact else {
                panic!("{fact:?}");
            };
            if upto > 0 {
                self.append(&name, &BreakerRecord::by_hand(vec![fact]));
                self.breakers.trim(&name, upto);
            }
        }
    }

    /// A process that holds the claim takes note that probes of jobs that none runs are not waited for
    /// any longer.
    pub(crate) fn give_up_probes(&mut self, process: usize) {
        let now = self.now;
        let names: Vec<Arc<str>> = self.processes[process].admission.names().cloned().collect();
        for name in names {
            self.look(process, &name);
            let state = self.processes[process].admission.get(&name).unwrap();
            let Some(probe) = state.overdue_probe(now) else {
                continue;
            };
            let orphan = |run: &Run| run.owner.is_none() && run.job.id() == probe.job;
            let generation = state.breaker.generation();
            if self.runs.iter().any(orphan) && self.claim(process, &name) {
                let at = now;
                let lost = BreakerFact::ProbeLost { at, generation };
                self.append(&name, &BreakerRecord::by_hand(vec![lost]));
                self.look(process, &name);
            }
        }
        self.let_go(process);
    }

    /// What holds of the disk, whatever has happened.
    fn check(&self, which: usize) {
        let run = &self.runs[which];
        let own = |record: &&BreakerRecord| record.job.as_deref() == Some(run.job.id());
        let mut facts: BTreeMap<Arc<str>, [u32; 2]> = BTreeMap::new();
        for name in self.whole.names() {
            let records = self.whole.of(&name).iter().map(|(_, record)| record);
            for fact in records.filter(own).flat_map(|record| &record.facts) {
                let counts = facts.entry(Arc::clone(&name)).or_default();
                match fact {
                    BreakerFact::Reported { many, .. } => counts[0] += many,
                    BreakerFact::Probed { .. } => counts[1] += 1,
                    _ => {}
                }
            }
            let state = self.whole.fold(&name).state;
            assert_eq!(self.breakers.fold(&name).state, state, "`{name}`");
            let probes = self.probes(&name, &state);
            assert!(probes <= 1, "{probes} probes of `{name}`: {state:?}");
        }
        facts.retain(|_, counts| *counts != [0, 0]);
        assert_eq!(facts, run.results(), "every result is one fact");
    }

    /// Probes that are on record, count and have no result there.
    fn probes(&self, name: &str, state: &BreakerState) -> usize {
        let runs = self.runs.iter();
        let running = runs.flat_map(|run| {
            let starts = run.found.starts.running.keys();
            starts.filter_map(|start| run.passes.get(start))
        });
        let probes =
            running.filter(|(of, ticket)| **of == *name && ticket.probe && state.breaker.counts(*ticket));
        probes.count()
    }

    /// A process of which everything is written, and which has looked, sees what is on the disk.
    fn check_view(&self, process: usize) {
        let own = |run: &&Run| run.owner == Some(process);
        let mut own = self.runs.iter().filter(own);
        let written = own.all(Run::is_written) && self.processes[process].acks.is_empty();
        let admission = &self.processes[process].admission;
        for name in admission.names().filter(|_| written) {
            if !self.breakers.of(name).is_empty() {
                let folded = self.breakers.fold(name).state;
                assert_eq!(admission.get(name), Some(&folded), "`{name}`");
            }
        }
    }

    /// A job has its turn: it starts what it can, and everything that runs succeeds.
    fn turn(&mut self, which: usize) {
        self.decide(which, &Input::Woke);
        self.start(which);
        self.flush(which);
        while !self.runs[which].begun.is_empty() {
            self.end(which, 0, None);
            self.start(which);
            self.flush(which);
        }
    }

    /// When something happens by itself to a job next.
    fn next(&self, which: usize) -> Option<Timestamp> {
        let job = &self.runs[which].job;
        let opening = next_admission(job, self.admission(which));
        next_wake(job, self.now).into_iter().chain(opening).min()
    }

    /// From here on everything succeeds: all jobs end, and nothing stays held. A job has its turn only
    /// if its time has come or a breaker has awakened it.
    pub(crate) fn heal(&mut self) {
        for which in 0..self.runs.len() {
            self.adopt(which, which % self.processes.len());
            self.turn(which);
        }
        for _ in 0..3000 {
            let mut due: BTreeSet<usize> = BTreeSet::new();
            for process in 0..self.processes.len() {
                self.look_at_all(process);
                let awakened = self.processes[process].admission.take_jobs_to_wake();
                let runs = (0..).zip(&self.runs);
                let runs = runs.filter(|(_, run)| awakened.contains(run.job.id()));
                due.extend(runs.map(|(which, _)| which));
            }
            let all = 0..self.runs.len();
            let passed = |which: &usize| self.next(*which).is_some_and(|at| at <= self.now);
            due.extend(all.clone().filter(passed));
            if self.runs.iter().all(|run| run.job.stage.has_ended()) {
                break;
            }
            if due.is_empty() {
                let next = all.clone().filter_map(|which| self.next(which)).min();
                let next = next.unwrap_or_else(|| panic!("nothing happens: {}", self.shown()));
                due.extend(all.filter(|which| self.next(*which) == Some(next)));
                self.now = self.now.max(next);
            }
            for which in due {
                self.turn(which);
            }
        }
        for run in &self.runs {
            assert!(run.job.stage.has_ended(), "{}", self.shown());
            assert!(run.job.steps.iter().all(|step| step.held.is_empty()));
            assert!(run.job.starts.running.is_empty());
        }
        for process in 0..self.processes.len() {
            self.let_go(process);
        }
        assert_eq!(self.claims, BTreeMap::new(), "nobody probes");
    }

    fn shown(&self) -> String {
        let unfinished = self.runs.iter().filter(|run| !run.job.stage.has_ended());
        let jobs = unfinished.map(|run| format!("{:?} {}", run.owner, digest(&run.job)));
        let jobs: Vec<String> = jobs.collect();
        let admissions = self.processes.iter().map(|it| &it.admission);
        let admissions: Vec<&AdmissionControl> = admissions.collect();
        format!("{jobs:#?} {admissions:#?}")
    }
}
