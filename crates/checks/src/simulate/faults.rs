//! Faults, and the end of all faults.

use std::time::Duration;

use undaunted_engine::breaker::{BreakerFact, BreakerRecord};
use undaunted_runner::request::{self, JobRequest};
use undaunted_runner::{breakers, journal};
use undaunted_store::Store;

use super::plan::{FaultPlan, SimFault};
use super::run::{Simulation, millis};
use super::world::{SimEvent, lock};

impl Simulation<'_> {
    /// Injects a fault and schedules the next one.
    pub(super) fn inject_fault(&mut self) {
        let (fault, spent) = {
            let spent = self.has_many_deaths();
            let mut world = lock(&self.shared);
            if world.faults_are_over {
                return;
            }
            let most = millis(world.fault_plan.mean_interval);
            let wait = Duration::from_millis(world.random.between(0, most.saturating_mul(2)));
            world.after(wait, SimEvent::InjectFault);
            let kinds = world.fault_plan.kinds.clone();
            (world.random.one_of(&kinds).copied(), spent)
        };
        if let Some(fault) = fault
            && !spent
        {
            self.inject(fault);
        }
    }

    fn inject(&mut self, fault: SimFault) {
        let living: Vec<usize> = {
            let world = lock(&self.shared);
            (0..world.processes.len()).filter(|it| world.is_alive(*it)).collect()
        };
        let (engine, job) = {
            let mut world = lock(&self.shared);
            let jobs: Vec<String> = world.cases.keys().cloned().collect();
            let engine = world.random.one_of(&living).copied();
            (engine, world.random.one_of(&jobs).cloned().unwrap_or_default())
        };
        match fault {
            SimFault::KillEngine => self.kill(engine),
            SimFault::KillKeeper => lock(&self.shared).kill_keeper(&job),
            SimFault::KillCommand => lock(&self.shared).kill_command(&job),
            SimFault::KillEngineAndKeepers => {
                self.kill(engine);
                self.kill_keepers(false);
            }
            SimFault::PowerFailure => {
                lock(&self.shared).log(|| "the power fails".to_owned());
                for engine in living {
                    self.kill(Some(engine));
                }
                self.kill_keepers(true);
            }
            SimFault::SetClock => {
                let mut world = lock(&self.shared);
                let by = i64::try_from(world.random.between(0, 120_000)).unwrap_or_default();
                let by = by.saturating_sub(60_000);
                world.clock_offset += by;
                world.log(|| format!("the clock is set by {by} ms"));
            }
            SimFault::Interrupt | SimFault::InterruptTwice => self.ask_to_leave(engine, fault),
            SimFault::Pause => self.ask(&job, [JobRequest::Pause, JobRequest::Unpause]),
            SimFault::Cancel => {
                // Rarely: a cancelled job has no more faults to survive.
                if lock(&self.shared).random.chance(1, 8) {
                    self.ask(&job, [JobRequest::Cancel, JobRequest::Cancel]);
                }
            }
            SimFault::TopUp => self.ask(&job, [JobRequest::TopUp(1), JobRequest::TopUp(3)]),
            SimFault::StartProcess => self.begin(),
            SimFault::Freeze => self.freeze(engine),
            SimFault::OperateBreaker => self.set_breaker(),
        }
    }

    fn kill(&mut self, engine: Option<usize>) {
        let Some(engine) = engine else { return };
        {
            let mut world = lock(&self.shared);
            if !world.is_alive(engine) {
                return;
            }
            world.crashes += 1;
            world.log(|| format!("engine {engine} is killed"));
            world.processes[engine].is_dead = true;
        }
        self.remove_process(engine);
    }

    /// Kills all keepers and commands.
    fn kill_keepers(&self, power: bool) {
        let mut world = lock(&self.shared);
        let jobs: Vec<String> = world.keepers.keys().cloned().collect();
        for job in jobs {
            world.kill_everything(&job, power);
        }
    }

    fn ask_to_leave(&mut self, engine: Option<usize>, how: SimFault) {
        let Some(engine) = engine else { return };
        if let Some(Some(process)) = self.processes.get_mut(engine) {
            process.is_leaving = true;
            process.event_loop.handle().interrupt();
            if how == SimFault::InterruptTwice {
                process.event_loop.handle().interrupt();
            }
            let mut world = lock(&self.shared);
            world.log(|| format!("engine {engine} is interrupted ({how:?})"));
            world.wake(engine);
        }
    }

    /// Sends a request to the owner of a job.
    fn ask(&self, job: &str, one_of: [JobRequest; 2]) {
        let drawn = {
            let mut world = lock(&self.shared);
            let drawn = world.random.one_of(&one_of).copied();
            world.log(|| format!("a user requests {drawn:?} of {job}"));
            drawn
        };
        if let Some(request) = drawn {
            // The job may not exist yet.
            drop(request::ask(&self.disk, job, request));
            self.poll_all_soon();
        }
    }

    fn poll_all_soon(&self) {
        let mut world = lock(&self.shared);
        for process in 0..world.processes.len() {
            let Some(state) = world.processes.get_mut(process).filter(|it| !it.is_dead) else {
                continue;
            };
            state.poll_interval = Duration::from_millis(200);
            state.turn += 1;
            let (wait, turn) = (state.poll_interval, state.turn);
            world.after(wait, SimEvent::Poll { process, turn });
        }
    }

    fn freeze(&mut self, engine: Option<usize>) {
        let Some(number) = engine else { return };
        let Some(Some(process)) = self.processes.get_mut(number) else {
            return;
        };
        let mut world = lock(&self.shared);
        // It is unfrozen by the event; until then it handles nothing.
        process.frozen_since = Some(world.now);
        let wait = Duration::from_millis(world.random.between(1, 30_000));
        world.log(|| format!("engine {number} is frozen for {wait:?}"));
        world.after(wait, SimEvent::Unfreeze { process: number });
    }

    /// A suspended process continues.
    pub(super) fn unfreeze(&mut self, number: usize) {
        if let Some(Some(process)) = self.processes.get_mut(number) {
            process.frozen_since = None;
            lock(&self.shared).wake(number);
        }
    }

    /// A user opens or closes a breaker by hand.
    fn set_breaker(&self) {
        let names = breakers::names(&self.disk).unwrap_or_default();
        let (name, trips, now) = {
            let mut world = lock(&self.shared);
            let name = world.random.one_of(&names).cloned();
            (name, world.random.chance(1, 2), world.wall())
        };
        let Some(name) = name else { return };
        let fact = if trips { BreakerFact::Tripped { at: now } } else { BreakerFact::Reset { at: now } };
        let changed = breakers::change(&self.disk, &name, |_| Some(fact.clone()));
        let mut world = lock(&self.shared);
        if let Ok(state) = changed {
            world.log(|| format!("breaker {name} by hand: {}", state.word()));
            let (record, now) = (BreakerRecord::by_hand(vec![fact]), world.now);
            let violation = world.oracle.breakers.fold(&name, &record, now);
            world.oracle.violations.extend(violation);
        }
        drop(world);
        self.poll_all_soon();
    }

    /// Ends all faults.
    pub(super) fn end_faults(&mut self) {
        {
            let mut world = lock(&self.shared);
            world.faults_are_over = true;
            world.fault_plan = FaultPlan {
                max_write_time: world.fault_plan.max_write_time,
                message_delay: world.fault_plan.message_delay,
                ..FaultPlan::none()
            };
            world.log(|| "the faults have ended".to_owned());
            world.after(Duration::from_secs(1), SimEvent::StartProcess);
        }
        let jobs: Vec<String> = lock(&self.shared).cases.keys().cloned().collect();
        for job in &jobs {
            let aggregate = journal::aggregate(job);
            let there = aggregate.is_ok_and(|it| matches!(self.disk.head(&it), Ok(Some(_))));
            if there {
                drop(request::ask(&self.disk, job, JobRequest::Unpause));
            }
        }
        self.poll_all_soon();
    }
}
