//! One command of a living keeper: its state, and the next step.
//!
//! It takes no lock and does nothing itself: a worker thread asks for steps and carries them out.

use std::time::{Duration, Instant, SystemTime};

use rustix::process::Signal;

use super::{CommandSpec, OutputRedaction};
use crate::{CommandEnd, EndedBy, OutputSlot, SystemProcess};

/// How often the output of a command with a limit is checked.
const LOOK: Duration = Duration::from_millis(50);
/// How often a KILL is repeated, for processes that were forked in the meantime.
const AGAIN: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct KeeperRun {
    pub(crate) phase: RunState,
    pub(crate) limits: RunLimits,
    pub(crate) began: SystemTime,
    /// Its process, once created; also its group.
    pub(crate) pid: Option<i32>,
    pub(crate) slot: Option<OutputSlot>,
    /// Only if it was given secrets.
    pub(crate) redaction: Option<OutputRedaction>,
    pub(crate) end: Option<CommandEnd>,
    /// Check whether all its processes are gone.
    pub(crate) settle: bool,
    /// The keeper had children that are not commands when its process ended.
    pub(crate) reparented: bool,
    /// Processes seen to belong to it, to recognize them when their parents are gone.
    pub(crate) known: Vec<SystemProcess>,
    pub(crate) alarm: Option<Instant>,
    /// The alarm that is in `KeeperState::alarms`.
    pub(crate) entered: Option<Instant>,
    /// A worker thread handles it, or will.
    pub(crate) busy: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RunLimits {
    pub(crate) timeout: Option<Duration>,
    pub(crate) output: Option<u64>,
    pub(crate) capture: u64,
    pub(crate) grace: Duration,
    /// The end of the timeout, once it runs.
    pub(crate) deadline: Option<Instant>,
}

#[derive(Debug)]
pub(crate) enum RunState {
    Queued(Box<CommandSpec>),
    Running,
    Ending(RunEnding),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RunEnding {
    pub(crate) why: EndedBy,
    kill_at: Option<Instant>,
    due: Option<Signal>,
    pub(crate) killed: bool,
}

#[derive(Debug)]
pub(crate) enum RunStep {
    Spawn(Box<CommandSpec>),
    Signal(Signal),
    Settle,
}

impl KeeperRun {
    pub(crate) fn queued(spec: CommandSpec) -> Self {
        Self {
            limits: RunLimits {
                timeout: spec.timeout,
                output: spec.output_limit,
                capture: spec.capture,
                grace: spec.grace,
                deadline: None,
            },
            phase: RunState::Queued(Box::new(spec)),
            began: SystemTime::now(),
            pid: None,
            slot: None,
            redaction: None,
            end: None,
            settle: false,
            reparented: false,
            known: vec![],
            alarm: None,
            entered: None,
            busy: false,
        }
    }

    pub(crate) fn next_step(&mut self) -> Option<RunStep> {
        match std::mem::replace(&mut self.phase, RunState::Running) {
            RunState::Queued(spec) => return Some(RunStep::Spawn(spec)),
            phase => self.phase = phase,
        }
        // A signal for a process that is being created waits until it exists.
        self.pid?;
        if let RunState::Ending(ending) = &mut self.phase
            && let Some(signal) = ending.due.take()
        {
            ending.killed = ending.killed || signal == Signal::KILL;
            return Some(RunStep::Signal(signal));
        }
        std::mem::take(&mut self.settle).then_some(RunStep::Settle)
    }

    /// Begins to end its processes. False if it had begun already.
    pub(crate) fn end(&mut self, why: EndedBy, now: Instant) -> bool {
        self.end_with(Signal::TERM, why, now)
    }

    pub(crate) fn end_with(&mut self, signal: Signal, why: EndedBy, now: Instant) -> bool {
        if matches!(self.phase, RunState::Ending(_)) {
            return false;
        }
        let grace = if signal == Signal::KILL { Duration::ZERO } else { self.limits.grace };
        let kill_at = now.checked_add(grace);
        self.phase = RunState::Ending(RunEnding { why, kill_at, due: Some(signal), killed: false });
        self.alarm = self.look_by(kill_at, now);
        true
    }

    /// Ends the grace of a command that is being ended, if the signal is KILL.
    pub(crate) fn hurry(&mut self, signal: Signal, now: Instant) -> bool {
        let RunState::Ending(ending) = &mut self.phase else { return false };
        if signal == Signal::KILL {
            ending.kill_at = Some(now);
            self.alarm = Some(now);
        }
        signal == Signal::KILL
    }

    /// Handles its alarm: finds what is due, and sets the next alarm. Returns whether there is a step
    /// to take.
    pub(crate) fn wake(&mut self, now: Instant) -> bool {
        self.alarm = None;
        let written = self.written_too_much();
        match &mut self.phase {
            RunState::Queued(_) => false,
            RunState::Running if self.end.is_some() => {
                self.settle = true;
                true
            }
            RunState::Running => {
                let late = self.limits.deadline.is_some_and(|deadline| deadline <= now);
                let late = late.then_some(EndedBy::Timeout);
                if let Some(why) = late.or(written.map(|_| EndedBy::OutputLimit)) {
                    return self.end(why, now);
                }
                self.alarm = self.next_look(now);
                false
            }
            RunState::Ending(ending) => {
                // A command that has written twice its limit gets no further grace.
                let wild = written.is_some_and(|times| times >= 2);
                if ending.kill_at.is_some_and(|kill_at| kill_at <= now) || wild {
                    ending.due = Some(Signal::KILL);
                    self.settle = self.end.is_some();
                    self.alarm = now.checked_add(AGAIN);
                    return true;
                }
                let kill_at = ending.kill_at;
                self.alarm = self.look_by(kill_at, now);
                false
            }
        }
    }

    pub(crate) fn next_look(&self, now: Instant) -> Option<Instant> {
        self.look_by(self.limits.deadline, now)
    }

    /// The next check: at `at`, or earlier if it has an output limit.
    fn look_by(&self, at: Option<Instant>, now: Instant) -> Option<Instant> {
        let look = self.limits.output.and_then(|_| now.checked_add(LOOK));
        [at, look].into_iter().flatten().min()
    }

    pub(crate) fn look_again(&mut self, now: Instant) {
        self.alarm = now.checked_add(AGAIN);
    }

    /// How many times over it has written its limit; none if it is within the limit.
    pub(crate) fn written_too_much(&self) -> Option<u64> {
        let (limit, slot) = (self.limits.output?, self.slot.as_ref()?);
        let written = slot.written().ok()?;
        (written > limit).then(|| written.checked_div(limit).unwrap_or(u64::MAX))
    }

    pub(crate) fn why(&self) -> EndedBy {
        match self.phase {
            RunState::Ending(RunEnding { why, .. }) if why != EndedBy::Itself => why,
            _ if self.written_too_much().is_some() => EndedBy::OutputLimit,
            _ => EndedBy::Itself,
        }
    }
}
