//! One command of a living keeper: where it stands, and what is to be done about it.
//!
//! Holds no lock and does nothing; whoever attends to it asks for the next step.

use std::time::{Duration, Instant, SystemTime};

use rustix::process::Signal;

use super::Spec;
use crate::process::Process;
use crate::spool::{End, EndedBy, Slot};

/// How often the output of a command with a limit is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How often a KILL is repeated for what forked away from it.
const AGAIN: Duration = Duration::from_millis(500);

/// A command from its start to the record of its end.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) phase: Phase,
    pub(crate) limits: Limits,
    pub(crate) began: SystemTime,
    /// Its process, once made; also its group.
    pub(crate) pid: Option<i32>,
    pub(crate) slot: Option<Slot>,
    /// How its own process ended.
    pub(crate) end: Option<End>,
    /// Whether to look if its whole tree is gone.
    pub(crate) settle: bool,
    /// Whether the keeper had children that are not commands when its process ended.
    pub(crate) adopted: bool,
    /// Processes seen to belong to it, for when their parents are gone.
    pub(crate) known: Vec<Process>,
    /// When to look at it again.
    pub(crate) alarm: Option<Instant>,
    /// The alarm the clock knows of.
    pub(crate) entered: Option<Instant>,
    /// Somebody attends to it, or will.
    pub(crate) busy: bool,
}

/// What a command may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) timeout: Option<Duration>,
    pub(crate) output: Option<u64>,
    pub(crate) capture: u64,
    pub(crate) grace: Duration,
    /// The end of the timeout, once it runs.
    pub(crate) deadline: Option<Instant>,
}

/// How far a command has come.
#[derive(Debug)]
pub(crate) enum Phase {
    Queued(Box<Spec>),
    Running,
    Ending(Ending),
}

/// A command whose tree is being ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    pub(crate) why: EndedBy,
    kill_at: Option<Instant>,
    /// The signal to send next.
    due: Option<Signal>,
    pub(crate) killed: bool,
}

/// What to do about a command.
#[derive(Debug)]
pub(crate) enum Step {
    Spawn(Box<Spec>),
    Signal(Signal),
    Settle,
}

impl Run {
    pub(crate) fn queued(spec: Spec) -> Self {
        Self {
            limits: Limits {
                timeout: spec.timeout,
                output: spec.output_limit,
                capture: spec.capture,
                grace: spec.grace,
                deadline: None,
            },
            phase: Phase::Queued(Box::new(spec)),
            began: SystemTime::now(),
            pid: None,
            slot: None,
            end: None,
            settle: false,
            adopted: false,
            known: vec![],
            alarm: None,
            entered: None,
            busy: false,
        }
    }

    /// The next step, taken: asking again gives the one after it.
    pub(crate) fn next_step(&mut self) -> Option<Step> {
        match std::mem::replace(&mut self.phase, Phase::Running) {
            Phase::Queued(spec) => return Some(Step::Spawn(spec)),
            phase => self.phase = phase,
        }
        // A signal for a process that is being made waits until it is there.
        self.pid?;
        if let Phase::Ending(ending) = &mut self.phase
            && let Some(signal) = ending.due.take()
        {
            ending.killed = ending.killed || signal == Signal::KILL;
            return Some(Step::Signal(signal));
        }
        std::mem::take(&mut self.settle).then_some(Step::Settle)
    }

    /// Begins to end its tree, unless that has begun.
    pub(crate) fn end(&mut self, why: EndedBy, now: Instant) -> bool {
        if matches!(self.phase, Phase::Ending(_)) {
            return false;
        }
        let kill_at = now.checked_add(self.limits.grace);
        self.phase = Phase::Ending(Ending {
            why,
            kill_at,
            due: Some(Signal::TERM),
            killed: false,
        });
        self.alarm = self.ending_look(kill_at, now);
        true
    }

    /// Its alarm has gone off: sees what is due, and sets the next one. Whether there is something
    /// to do.
    pub(crate) fn wake(&mut self, now: Instant) -> bool {
        self.alarm = None;
        let written = self.written_too_much();
        match &mut self.phase {
            Phase::Queued(_) => false,
            Phase::Running if self.end.is_some() => {
                self.settle = true;
                true
            }
            Phase::Running => {
                let late = self.limits.deadline.is_some_and(|deadline| deadline <= now);
                if late || written.is_some() {
                    let why = if late {
                        EndedBy::Timeout
                    } else {
                        EndedBy::OutputLimit
                    };
                    return self.end(why, now);
                }
                self.alarm = self.next_look(now);
                false
            }
            Phase::Ending(ending) => {
                // Who goes on writing at full speed has had its grace.
                let wild = written.is_some_and(|times| times >= 2);
                if ending.kill_at.is_some_and(|kill_at| kill_at <= now) || wild {
                    ending.due = Some(Signal::KILL);
                    self.settle = self.end.is_some();
                    self.alarm = now.checked_add(AGAIN);
                    return true;
                }
                let kill_at = ending.kill_at;
                self.alarm = self.ending_look(kill_at, now);
                false
            }
        }
    }

    /// When to look at it while it runs.
    pub(crate) fn next_look(&self, now: Instant) -> Option<Instant> {
        let look = self.limits.output.and_then(|_| now.checked_add(LOOK));
        [self.limits.deadline, look].into_iter().flatten().min()
    }

    /// When to look at it while it is being ended.
    fn ending_look(&self, kill_at: Option<Instant>, now: Instant) -> Option<Instant> {
        let look = self.limits.output.and_then(|_| now.checked_add(LOOK));
        [kill_at, look].into_iter().flatten().min()
    }

    /// Asks to be looked at again soon.
    pub(crate) fn look_again(&mut self, now: Instant) {
        self.alarm = now.checked_add(AGAIN);
    }

    /// How many times over it has written its limit; none if it has not passed it.
    pub(crate) fn written_too_much(&self) -> Option<u64> {
        let (limit, slot) = (self.limits.output?, self.slot.as_ref()?);
        let written = slot.written().ok()?;
        (written > limit).then(|| written.checked_div(limit).unwrap_or(u64::MAX))
    }

    pub(crate) fn why(&self) -> EndedBy {
        match self.phase {
            Phase::Ending(Ending { why, .. }) if why != EndedBy::Itself => why,
            _ if self.written_too_much().is_some() => EndedBy::OutputLimit,
            _ => EndedBy::Itself,
        }
    }
}
