//! What happens to processes.

use std::time::Duration;

use undaunted_policy::Timestamp;

use super::outside::{Happening, look};
use super::process::Taken;
use super::run::Simulation;

/// How often a process looks at the store at least, while something happens.
const LOOK: Duration = Duration::from_millis(200);
/// How much later than it is due a retry may start when nothing keeps it: a process that looks rarely
/// and a disk that is slow.
const LATE: Duration = Duration::from_millis(500);

impl Simulation<'_> {
    pub(super) fn happen(&mut self, what: Happening) {
        match what {
            Happening::Step { process, turn } => {
                let is_next = look(&self.shared).lives.get(process).map(|it| it.turn) == Some(turn);
                if is_next {
                    look(&self.shared).wake(process);
                }
            }
            Happening::Written { process } => {
                if let Some(Some(it)) = self.processes.get(process) {
                    it.store().written();
                    self.others_look(process);
                }
            }
            Happening::Asked { process, question, done } => {
                if let Some(Some(it)) = self.processes.get(process) {
                    it.store().answer(question, done);
                }
            }
            Happening::Aside { process, work } => {
                if look(&self.shared).lives(process) {
                    work();
                    look(&self.shared).wake(process);
                }
            }
            Happening::Answer { process, number } => look(&self.shared).answer(process, number),
            Happening::Report(report) => self.report(*report),
            Happening::Keeper { job, life, told } => {
                look(&self.shared).keeper_hears(&job, life, told);
            }
            Happening::Command { job, start, life } => {
                look(&self.shared).command_ends(&job, start, life);
            }
            Happening::Gone { process, job } => {
                look(&self.shared).keeper_is_gone(process, &job);
            }
            Happening::Begin => self.begin(),
            Happening::Adopt { process } => self.adopt(process),
            Happening::Wake { process } => self.wake_up(process),
            Happening::Harm => self.harm(),
            Happening::Heal => self.heal(),
        }
    }

    /// Whoever has news comes round; whoever has died is buried.
    pub(super) fn settle(&mut self) {
        for process in 0..self.processes.len() {
            let stands = matches!(self.processes.get(process), Some(Some(it)) if it.stands.is_some());
            let news = {
                let mut outside = look(&self.shared);
                let life = outside.lives.get_mut(process);
                life.is_some_and(|life| !stands && !life.is_dead && std::mem::take(&mut life.has_news))
            };
            if news {
                self.step(process);
            }
            let dead = !look(&self.shared).lives(process);
            if dead && matches!(self.processes.get(process), Some(Some(_))) {
                self.bury(process);
            }
        }
    }

    fn step(&mut self, number: usize) {
        let Some(Some(process)) = self.processes.get_mut(number) else {
            return;
        };
        let mut acted = false;
        // What it tells itself it hears in the next round.
        for _ in 0..100 {
            let acts = process.hub.poll();
            acted |= acts;
            let news = {
                let mut outside = look(&self.shared);
                let life = outside.lives.get_mut(number);
                life.is_some_and(|life| std::mem::take(&mut life.has_news))
            };
            if !acts && !news {
                break;
            }
        }
        let mut ends = false;
        for (name, left) in process.hub.take_left() {
            process.jobs.remove(&*name);
            if let Err(why) = left {
                let mut outside = look(&self.shared);
                outside.tell(|| format!("engine {number} leaves {name}: {why}"));
                ends = true;
            }
        }
        let due = process.hub.next_due();
        if process.leaves && process.jobs.is_empty() {
            ends = true;
        }
        if ends {
            if let Some(life) = look(&self.shared).lives.get_mut(number) {
                life.is_dead = true;
            }
            return;
        }
        self.check(number);
        let mut outside = look(&self.shared);
        let now = outside.now;
        let Some(life) = outside.lives.get_mut(number) else {
            return;
        };
        // Looking at a store in which nothing happens gets rarer and rarer.
        life.rest =
            if acted { LOOK } else { life.rest.max(LOOK).saturating_mul(2).min(Duration::from_mins(1)) };
        let rest = life.rest;
        life.turn = life.turn.saturating_add(1);
        let turn = life.turn;
        let wait = due.map_or(rest, |due| due.saturating_sub(now).min(rest));
        let wait = wait.max(Duration::from_micros(1));
        let process = number;
        outside.after(wait, Happening::Step { process, turn });
    }

    /// Something was written: the others see it when they look next.
    fn others_look(&self, writer: usize) {
        let mut outside = look(&self.shared);
        let others: Vec<usize> =
            (0..outside.lives.len()).filter(|other| *other != writer && outside.lives(*other)).collect();
        for process in others {
            let Some(life) = outside.lives.get_mut(process) else {
                continue;
            };
            if life.rest > LOOK {
                life.rest = LOOK;
                life.turn = life.turn.saturating_add(1);
                let turn = life.turn;
                outside.after(LOOK, Happening::Step { process, turn });
            }
        }
    }

    /// What holds of a process that has come to rest.
    fn check(&self, number: usize) {
        let Some(Some(process)) = self.processes.get(number) else {
            return;
        };
        let mut outside = look(&self.shared);
        if outside.lives.get(number).is_none_or(|life| life.writes() || life.is_dead || life.outage.is_some())
        {
            return;
        }
        // A start may wait for what the store answers.
        let asks = outside.lives.get(number).is_some_and(|life| life.questions > 0);
        let mut found = Vec::new();
        for (name, ahead) in &process.jobs {
            let (Some(live), Some(seen)) = (process.hub.job(name), outside.witness.jobs.get(name)) else {
                continue;
            };
            let Some(job) = &seen.job else { continue };
            if let Some(what) = super::same::difference(live, job) {
                found.push(format!("{name}: the journal gives another state: {what}"));
            }
            let now = ahead.after(outside.now);
            if !process.leaves && !asks {
                found.extend(late(seen, job, now).map(|what| format!("{name}: {what}")));
            }
        }
        for what in found {
            outside.tell(|| format!("VIOLATION {what}"));
            outside.witness.violation(what);
        }
    }

    /// A process is gone. Somebody else goes on, now or later.
    pub(super) fn bury(&mut self, number: usize) {
        let Some(process) = self.processes.get_mut(number).and_then(Option::take) else {
            return;
        };
        process.store().die_writing();
        process.store().die();
        let mut outside = look(&self.shared);
        let now = match process.stands {
            Some(since) => outside.wall().after(since.saturating_sub(outside.now)),
            None => outside.wall(),
        };
        // It noted several times a second that it was there.
        let ago = Duration::from_millis(outside.die.between(0, 200));
        let seen = Timestamp::ZERO.after(now.since(Timestamp::ZERO).saturating_sub(ago));
        for job in process.with_programs() {
            outside.seen.insert(job, seen);
        }
        outside.tell(|| format!("engine {number} is gone"));
        let healed = outside.is_healed;
        let most = if healed { 1000 } else { 20_000 };
        let away = Duration::from_millis(outside.die.between(1, most));
        outside.after(away, Happening::Begin);
        let others: Vec<usize> =
            (0..outside.lives.len()).filter(|other| *other != number && outside.lives(*other)).collect();
        for process in others {
            let away = Duration::from_millis(outside.die.between(1, 5000));
            outside.after(away, Happening::Adopt { process });
        }
        drop(outside);
        drop(process);
        if self.is_spent() && !healed {
            self.heal();
        }
    }

    /// A process runs what nobody runs.
    pub(super) fn adopt(&mut self, number: usize) {
        let cases = look(&self.shared).cases.clone();
        let Some(Some(process)) = self.processes.get_mut(number) else {
            return;
        };
        if process.leaves {
            return;
        }
        for (job, case) in &cases {
            let over = look(&self.shared).witness.jobs.get(job).is_some_and(|it| it.ledger.is_over);
            if over {
                continue;
            }
            match process.take_on(&self.shared, job, case) {
                Taken::Runs | Taken::Not => {}
                Taken::Later => {
                    let wait = Duration::from_secs(1);
                    look(&self.shared).after(wait, Happening::Adopt { process: number });
                    break;
                }
                Taken::Fails => {
                    if let Some(life) = look(&self.shared).lives.get_mut(number) {
                        life.is_dead = true;
                    }
                }
            }
        }
        look(&self.shared).wake(number);
    }
}

/// A retry that is due, that nothing keeps, and that does not start.
fn late(seen: &super::witness::Seen, job: &undaunted_engine::job::Job, now: Timestamp) -> Option<String> {
    use undaunted_engine::job::{JobStage, StepStage};
    if job.stage != JobStage::Running || job.times.paused.is_some() {
        return None;
    }
    let due = seen.ledger.due().iter();
    let mut late = due.filter(|(_, due)| now.since(**due) > LATE);
    late.find_map(|(item, due)| {
        let state = job.step(item.step)?;
        let free = state.running < job.parallel(item.step);
        let open = matches!(state.stage, StepStage::Running) && state.reached.is_none();
        (free && open).then(|| format!("{item:?} was due at {due:?} and has not started at {now:?}"))
    })
}
