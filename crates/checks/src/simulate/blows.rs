//! What goes wrong by itself, and the day when nothing does any more.

use std::time::Duration;

use undaunted_engine::breaker::{BreakerFact, BreakerRecord};
use undaunted_runner::request::{self, JobRequest};
use undaunted_runner::{breakers, journal};
use undaunted_store::Store;

use super::harm::{Blow, Harm};
use super::outside::{Happening, look};
use super::run::{Simulation, millis};

impl Simulation<'_> {
    /// Something goes wrong, and something else will later.
    pub(super) fn harm(&mut self) {
        let (blow, spent) = {
            let spent = self.is_spent();
            let mut outside = look(&self.shared);
            if outside.is_healed {
                return;
            }
            let most = millis(outside.harm.every);
            let wait = Duration::from_millis(outside.die.between(0, most.saturating_mul(2)));
            outside.after(wait, Happening::Harm);
            let kinds = outside.harm.kinds.clone();
            (outside.die.one_of(&kinds).copied(), spent)
        };
        if let Some(blow) = blow
            && !spent
        {
            self.strike(blow);
        }
    }

    fn strike(&mut self, blow: Blow) {
        let living: Vec<usize> = {
            let outside = look(&self.shared);
            (0..outside.lives.len()).filter(|it| outside.lives(*it)).collect()
        };
        let (engine, job) = {
            let mut outside = look(&self.shared);
            let jobs: Vec<String> = outside.cases.keys().cloned().collect();
            let engine = outside.die.one_of(&living).copied();
            (engine, outside.die.one_of(&jobs).cloned().unwrap_or_default())
        };
        match blow {
            Blow::Engine => self.kill(engine),
            Blow::Keeper => look(&self.shared).kill_keeper(&job),
            Blow::Command => look(&self.shared).kill_command(&job),
            Blow::All => {
                self.kill(engine);
                self.kill_around(false);
            }
            Blow::Power => {
                look(&self.shared).tell(|| "the power fails".to_owned());
                for engine in living {
                    self.kill(Some(engine));
                }
                self.kill_around(true);
            }
            Blow::Clock => {
                let mut outside = look(&self.shared);
                let by = i64::try_from(outside.die.between(0, 120_000)).unwrap_or_default();
                let by = by.saturating_sub(60_000);
                outside.skew = outside.skew.saturating_add(by);
                outside.tell(|| format!("the clock is set by {by} ms"));
            }
            Blow::Leave | Blow::LeaveAtOnce => self.ask_to_leave(engine, blow),
            Blow::Pause => self.ask(&job, [JobRequest::Pause, JobRequest::Unpause]),
            Blow::Cancel => {
                // Not too often: what is cancelled has nothing more to go wrong.
                if look(&self.shared).die.falls(1, 8) {
                    self.ask(&job, [JobRequest::Cancel, JobRequest::Cancel]);
                }
            }
            Blow::TopUp => self.ask(&job, [JobRequest::TopUp(1), JobRequest::TopUp(3)]),
            Blow::Another => self.begin(),
            Blow::Stand => self.stand(engine),
            Blow::Breaker => self.touch_breaker(),
        }
    }

    fn kill(&mut self, engine: Option<usize>) {
        let Some(engine) = engine else { return };
        {
            let mut outside = look(&self.shared);
            if !outside.lives(engine) {
                return;
            }
            outside.crashes = outside.crashes.saturating_add(1);
            outside.tell(|| format!("engine {engine} is killed"));
            if let Some(life) = outside.lives.get_mut(engine) {
                life.is_dead = true;
            }
        }
        self.bury(engine);
    }

    /// Kills all keepers and commands.
    fn kill_around(&self, power: bool) {
        let mut outside = look(&self.shared);
        let jobs: Vec<String> = outside.keepers.keys().cloned().collect();
        for job in jobs {
            outside.kill_everything(&job, power);
        }
    }

    fn ask_to_leave(&mut self, engine: Option<usize>, how: Blow) {
        let Some(engine) = engine else { return };
        if let Some(Some(process)) = self.processes.get_mut(engine) {
            process.leaves = true;
            process.hub.handle().interrupt();
            if how == Blow::LeaveAtOnce {
                process.hub.handle().interrupt();
            }
            let mut outside = look(&self.shared);
            outside.tell(|| format!("engine {engine} is asked to leave ({how:?})"));
            outside.wake(engine);
        }
    }

    /// Asks something of whoever runs a job.
    fn ask(&self, job: &str, one_of: [JobRequest; 2]) {
        let drawn = {
            let mut outside = look(&self.shared);
            let drawn = outside.die.one_of(&one_of).copied();
            outside.tell(|| format!("somebody asks {job}: {drawn:?}"));
            drawn
        };
        if let Some(request) = drawn {
            // There may be no such job yet.
            drop(request::ask(&self.disk, job, request));
            self.everybody_looks();
        }
    }

    fn everybody_looks(&self) {
        let mut outside = look(&self.shared);
        for process in 0..outside.lives.len() {
            let Some(life) = outside.lives.get_mut(process).filter(|it| !it.is_dead) else {
                continue;
            };
            life.rest = Duration::from_millis(200);
            life.turn = life.turn.saturating_add(1);
            let (wait, turn) = (life.rest, life.turn);
            outside.after(wait, Happening::Step { process, turn });
        }
    }

    fn stand(&mut self, engine: Option<usize>) {
        let Some(number) = engine else { return };
        let Some(Some(process)) = self.processes.get_mut(number) else {
            return;
        };
        let mut outside = look(&self.shared);
        // It goes on by being looked at again; until then it hears nothing.
        process.stands = Some(outside.now);
        let wait = Duration::from_millis(outside.die.between(1, 30_000));
        outside.tell(|| format!("engine {number} stands still for {wait:?}"));
        outside.after(wait, Happening::Wake { process: number });
    }

    /// A process that stood still goes on.
    pub(super) fn wake_up(&mut self, number: usize) {
        if let Some(Some(process)) = self.processes.get_mut(number) {
            process.stands = None;
            look(&self.shared).wake(number);
        }
    }

    /// Somebody opens or closes a breaker by hand.
    fn touch_breaker(&self) {
        let names = breakers::names(&self.disk).unwrap_or_default();
        let (name, trips, now) = {
            let mut outside = look(&self.shared);
            let name = outside.die.one_of(&names).cloned();
            (name, outside.die.falls(1, 2), outside.wall())
        };
        let Some(name) = name else { return };
        let fact = if trips { BreakerFact::Tripped { at: now } } else { BreakerFact::Reset { at: now } };
        let changed = breakers::change(&self.disk, &name, |_| Some(fact.clone()));
        let mut outside = look(&self.shared);
        if let Ok(state) = changed {
            outside.tell(|| format!("breaker {name} by hand: {}", state.word()));
            let (record, now) = (BreakerRecord::by_hand(vec![fact]), outside.now);
            let broken = outside.witness.gates.fold(&name, &record, now);
            outside.witness.found.extend(broken);
        }
        drop(outside);
        self.everybody_looks();
    }

    /// From now on nothing goes wrong.
    pub(super) fn heal(&mut self) {
        {
            let mut outside = look(&self.shared);
            outside.is_healed = true;
            outside.harm = Harm { sync: outside.harm.sync, word: outside.harm.word, ..Harm::none() };
            outside.tell(|| "from now on nothing goes wrong".to_owned());
            outside.after(Duration::from_secs(1), Happening::Begin);
        }
        let jobs: Vec<String> = look(&self.shared).cases.keys().cloned().collect();
        for job in &jobs {
            let aggregate = journal::aggregate(job);
            let there = aggregate.is_ok_and(|it| matches!(self.disk.head(&it), Ok(Some(_))));
            if there {
                drop(request::ask(&self.disk, job, JobRequest::Unpause));
            }
        }
        self.everybody_looks();
    }
}
