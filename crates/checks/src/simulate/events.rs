//! The events of a simulation.

use std::time::Duration;

use undaunted_engine::job::Job;
use undaunted_policy::Timestamp;

use super::process::ClaimResult;
use super::run::Simulation;
use super::world::{SimEvent, lock};

/// How often a process polls at least while something happens.
const LOOK: Duration = Duration::from_millis(200);
/// How late a due retry may start when nothing holds it, because of rare polls and a slow disk.
const LATE: Duration = Duration::from_millis(500);

impl Simulation<'_> {
    pub(super) fn handle(&mut self, what: SimEvent) {
        match what {
            SimEvent::Poll { process, turn } => {
                let is_next = lock(&self.shared).processes.get(process).map(|it| it.turn) == Some(turn);
                if is_next {
                    lock(&self.shared).wake(process);
                }
            }
            SimEvent::Written { process } => {
                if let Some(Some(it)) = self.processes.get(process) {
                    it.store().written();
                    self.poll_others_soon(process);
                }
            }
            SimEvent::Queried { process, question, done } => {
                if let Some(Some(it)) = self.processes.get(process) {
                    it.store().answer(question, done);
                }
            }
            SimEvent::BackgroundWork { process, work } => {
                if lock(&self.shared).is_alive(process) {
                    work();
                    lock(&self.shared).wake(process);
                }
            }
            SimEvent::HttpAnswered { process, number } => lock(&self.shared).answer(process, number),
            SimEvent::ResultSent(result) => self.send(*result),
            SimEvent::KeeperReceives { job, generation, message } => {
                lock(&self.shared).keeper_receives(&job, generation, message);
            }
            SimEvent::CommandEnds { job, start, generation } => {
                lock(&self.shared).command_ends(&job, start, generation);
            }
            SimEvent::KeeperGone { process, job } => {
                lock(&self.shared).keeper_is_gone(process, &job);
            }
            SimEvent::StartProcess => self.begin(),
            SimEvent::ClaimJobs { process } => self.claim_jobs(process),
            SimEvent::Unfreeze { process } => self.unfreeze(process),
            SimEvent::InjectFault => self.inject_fault(),
            SimEvent::EndFaults => self.end_faults(),
        }
    }

    /// Polls the processes that were woken, and removes those that have died.
    pub(super) fn poll_woken(&mut self) {
        for process in 0..self.processes.len() {
            let frozen_since =
                matches!(self.processes.get(process), Some(Some(it)) if it.frozen_since.is_some());
            let news = {
                let mut world = lock(&self.shared);
                let state = world.processes.get_mut(process);
                state.is_some_and(|state| {
                    !frozen_since && !state.is_dead && std::mem::take(&mut state.is_woken)
                })
            };
            if news {
                self.poll(process);
            }
            let dead = !lock(&self.shared).is_alive(process);
            if dead && matches!(self.processes.get(process), Some(Some(_))) {
                self.remove_process(process);
            }
        }
    }

    fn poll(&mut self, number: usize) {
        let Some(Some(process)) = self.processes.get_mut(number) else {
            return;
        };
        let mut acted = false;
        // Messages to itself are handled in the next round.
        for _ in 0..100 {
            let acts = process.event_loop.poll();
            acted |= acts;
            let news = {
                let mut world = lock(&self.shared);
                let state = world.processes.get_mut(number);
                state.is_some_and(|state| std::mem::take(&mut state.is_woken))
            };
            if !acts && !news {
                break;
            }
        }
        let mut ends = false;
        for (name, left) in process.event_loop.take_finished() {
            process.jobs.remove(&*name);
            if let Err(why) = left {
                let mut world = lock(&self.shared);
                world.log(|| format!("engine {number} leaves {name}: {why}"));
                ends = true;
            }
        }
        let due = process.event_loop.next_due();
        if process.is_leaving && process.jobs.is_empty() {
            ends = true;
        }
        if ends {
            lock(&self.shared).processes[number].is_dead = true;
            return;
        }
        self.check(number);
        let mut world = lock(&self.shared);
        let now = world.now;
        let state = &mut world.processes[number];
        // An idle process polls less and less often.
        state.poll_interval = if acted {
            LOOK
        } else {
            state.poll_interval.max(LOOK).saturating_mul(2).min(Duration::from_mins(1))
        };
        let poll_interval = state.poll_interval;
        state.turn += 1;
        let turn = state.turn;
        let wait = due.map_or(poll_interval, |due| due.saturating_sub(now).min(poll_interval));
        let wait = wait.max(Duration::from_micros(1));
        let process = number;
        world.after(wait, SimEvent::Poll { process, turn });
    }

    /// After a write the other processes poll soon.
    fn poll_others_soon(&self, writer: usize) {
        let mut world = lock(&self.shared);
        let others: Vec<usize> =
            (0..world.processes.len()).filter(|other| *other != writer && world.is_alive(*other)).collect();
        for process in others {
            let state = &mut world.processes[process];
            if state.poll_interval > LOOK {
                state.poll_interval = LOOK;
                state.turn += 1;
                let turn = state.turn;
                world.after(LOOK, SimEvent::Poll { process, turn });
            }
        }
    }

    /// Checks the laws of a process that is idle.
    fn check(&self, number: usize) {
        let Some(Some(process)) = self.processes.get(number) else {
            return;
        };
        let mut world = lock(&self.shared);
        if world
            .processes
            .get(number)
            .is_none_or(|state| state.writes() || state.is_dead || state.outage.is_some())
        {
            return;
        }
        // A start may wait for an answer of the store.
        let asks = world.processes[number].questions > 0;
        let mut found = Vec::new();
        for (name, ahead) in &process.jobs {
            let (Some(live), Some(trace)) = (process.event_loop.job(name), world.oracle.jobs.get(name))
            else {
                continue;
            };
            let Some(job) = &trace.job else { continue };
            if let Some(what) = difference(live, job) {
                found.push(format!("{name}: the journal gives another state: {what}"));
            }
            let now = ahead.after(world.now);
            if !process.is_leaving && !asks {
                found.extend(late(trace, job, now).map(|what| format!("{name}: {what}")));
            }
        }
        for what in found {
            world.log(|| format!("VIOLATION {what}"));
            world.oracle.violation(what);
        }
    }

    /// Removes a process. Another one starts, now or later.
    pub(super) fn remove_process(&mut self, number: usize) {
        let Some(process) = self.processes.get_mut(number).and_then(Option::take) else {
            return;
        };
        process.store().crash_while_writing();
        process.store().lose_store();
        let mut world = lock(&self.shared);
        let now = match process.frozen_since {
            Some(since) => world.wall().after(since.saturating_sub(world.now)),
            None => world.wall(),
        };
        // It noted several times a second that it was alive.
        let ago = Duration::from_millis(world.random.between(0, 200));
        let trace = Timestamp::ZERO.after(now.since(Timestamp::ZERO).saturating_sub(ago));
        for job in process.with_programs() {
            world.last_seen.insert(job, trace);
        }
        world.log(|| format!("engine {number} has ended"));
        let faults_are_over = world.faults_are_over;
        let most = if faults_are_over { 1000 } else { 20_000 };
        let away = Duration::from_millis(world.random.between(1, most));
        world.after(away, SimEvent::StartProcess);
        let others: Vec<usize> =
            (0..world.processes.len()).filter(|other| *other != number && world.is_alive(*other)).collect();
        for process in others {
            let away = Duration::from_millis(world.random.between(1, 5000));
            world.after(away, SimEvent::ClaimJobs { process });
        }
        drop(world);
        drop(process);
        if self.has_many_deaths() && !faults_are_over {
            self.end_faults();
        }
    }

    /// A process claims the jobs that no process owns.
    pub(super) fn claim_jobs(&mut self, number: usize) {
        let cases = lock(&self.shared).cases.clone();
        let Some(Some(process)) = self.processes.get_mut(number) else {
            return;
        };
        if process.is_leaving {
            return;
        }
        for (job, case) in &cases {
            let over = lock(&self.shared).oracle.jobs.get(job).is_some_and(|it| it.ledger.has_ended);
            if over {
                continue;
            }
            match process.claim_job(&self.shared, job, case) {
                ClaimResult::Runs | ClaimResult::Not => {}
                ClaimResult::Later => {
                    let wait = Duration::from_secs(1);
                    lock(&self.shared).after(wait, SimEvent::ClaimJobs { process: number });
                    break;
                }
                ClaimResult::Fails => {
                    lock(&self.shared).processes[number].is_dead = true;
                }
            }
        }
        lock(&self.shared).wake(number);
    }
}

/// A due retry that nothing holds and that has not started.
fn late(trace: &super::oracle::JobTrace, job: &Job, now: Timestamp) -> Option<String> {
    use undaunted_engine::job::{JobStage, StepStage};
    if job.stage != JobStage::Running || job.times.paused.is_some() {
        return None;
    }
    let due = trace.ledger.due().iter();
    let mut late = due.filter(|(_, due)| now.since(**due) > LATE);
    late.find_map(|(item, due)| {
        let state = job.step(item.step)?;
        let free = job.free_slots(item.step, state) > 0;
        let open = matches!(state.stage, StepStage::Running) && state.reached.is_none();
        (free && open).then(|| format!("{item:?} was due at {due:?} and has not started at {now:?}"))
    })
}

/// The first difference between the live state of a job and its folded journal.
fn difference(live: &Job, journal: &Job) -> Option<String> {
    let parts: [(&str, bool); 13] = [
        ("stage", live.stage == journal.stage),
        ("run", live.run == journal.run),
        ("last record", live.times.last_at == journal.times.last_at),
        // Numbers of starts that were taken back before they were written are skipped.
        ("next start", live.starts.next >= journal.starts.next),
        ("running", live.starts.running == journal.starts.running),
        ("reserved", live.starts.reserved == journal.starts.reserved),
        ("accepted", live.starts.accepted == journal.starts.accepted),
        ("pool", live.pool == journal.pool),
        ("counts", live.counts == journal.counts),
        ("paused", live.times.paused == journal.times.paused),
        ("stopped", live.failures.stopped == journal.failures.stopped),
        ("dead letters", live.dead == journal.dead),
        ("steps", same_steps(live, journal)),
    ];
    let wrong = parts.iter().find(|(_, same)| !same)?;
    Some(wrong.0.to_owned())
}

fn same_steps(live: &Job, journal: &Job) -> bool {
    live.steps.len() == journal.steps.len()
        && live.steps.iter().zip(&journal.steps).all(|(live, journal)| {
            live.stage == journal.stage
                && live.waiting == journal.waiting
                && live.held == journal.held
                && live.succeeded == journal.succeeded
                && live.dead == journal.dead
                && live.skipped == journal.skipped
                && live.missing == journal.missing
                && live.running == journal.running
                && live.items.iter().eq(journal.items.iter())
        })
}
