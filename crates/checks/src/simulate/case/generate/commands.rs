//! Generated commands, handlers and breakers.

use std::time::Duration;

use super::super::command::{CaseBreaker, CaseCall, CaseCommand, CaseFormat, CaseHandler};
use super::super::job_case::{AttemptScript, ScriptedAttempt, ScriptedEnd};
use super::CaseGenerator;

impl CaseGenerator<'_> {
    /// One or two breakers with a name, and perhaps one of an origin.
    pub(super) fn draw_breakers(&mut self) {
        if self.chance(45) {
            return;
        }
        let named = self.count(1, 2);
        for _ in 0..named {
            let breaker = self.breaker(None);
            self.breakers.push(breaker);
        }
        if self.chance(40) {
            let breaker = self.breaker(Some(0));
            self.breakers.push(breaker);
        }
    }

    pub(super) fn breaker(&mut self, place: Option<usize>) -> CaseBreaker {
        CaseBreaker {
            place,
            threshold: self.count(1, 4),
            recovery: self.time(900, 9000),
            half_open_calls: self.count(1, 3),
            fails: self.chance(25),
            max_hold: self.time_in(25, 800, 15_000),
        }
    }

    pub(super) fn commands(&mut self, least: u32, most: u32) -> Vec<CaseCommand> {
        let count = self.count(least, most);
        (0..count).map(|_| self.command(0)).collect()
    }

    /// Depth 0 is a command of its own, deeper ones belong to another command.
    fn command(&mut self, depth: u32) -> CaseCommand {
        let label = self.label();
        let call = self.chance(25).then(|| CaseCall {
            // A handler configures no breaker, so its origin is its own.
            place: if depth == 0 { self.random.below(2) } else { 2 },
            posts: self.chance(50),
        });
        let is_call = call.is_some();
        let named = self.breakers.iter().filter(|it| it.place.is_none()).count();
        let gated = !is_call && depth == 0 && named > 0 && self.chance(60);
        let breaker = gated.then(|| self.random.below(named));
        let of_key = |place| self.breakers.iter().any(|it| it.place == Some(place));
        let may_hold = breaker.is_some() || call.as_ref().is_some_and(|it| of_key(it.place));
        let retry_in = if depth == 0 { 60 } else { 25 };
        let retry = self.chance(retry_in).then(|| self.retry(is_call, may_hold));
        let timeout = self.time_in(35, 400, 6000);
        let capture = self.chance(20).then(|| {
            self.one_of(&[CaseFormat::Text, CaseFormat::Number, CaseFormat::Json], CaseFormat::Text)
        });
        // The deadline of an item does not end its handlers.
        let may_hang = timeout.is_some() || (self.is_bounded && depth == 0 && !is_call);
        self.write_scripts(ScriptSettings { label, is_call, may_hang, capture });
        let handled = depth == 0 && self.chance(30);
        let on_failure = handled.then(|| self.handler());
        let on_success = if depth == 0 && self.chance(12) { vec![self.command(1)] } else { Vec::new() };
        CaseCommand {
            label,
            call,
            retry,
            timeout,
            capture,
            breaker,
            stays_interrupted: depth == 0 && self.chance(10),
            on_failure,
            on_success,
        }
    }

    fn handler(&mut self) -> CaseHandler {
        let count = self.count(1, 2);
        CaseHandler {
            commands: (0..count).map(|_| self.command(1)).collect(),
            rounds: if self.chance(35) { self.count(1, 3) } else { 0 },
            fails: self.chance(20),
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct ScriptSettings {
    pub(super) label: u32,
    pub(super) is_call: bool,
    /// Whether something ends a hanging attempt.
    pub(super) may_hang: bool,
    pub(super) capture: Option<CaseFormat>,
}

impl CaseGenerator<'_> {
    /// The scripts of a command, one for each item.
    pub(super) fn write_scripts(&mut self, of: ScriptSettings) {
        for item in self.items.clone() {
            let script = self.script(of);
            let _ = self.scripts.insert((of.label, item), script);
        }
    }

    fn script(&mut self, of: ScriptSettings) -> AttemptScript {
        let failures = match self.random.below(20) {
            0..=9 => 0,
            10..=15 => self.count(1, 2),
            16 | 17 => self.count(3, 5),
            // The last attempt repeats.
            _ => return self.for_ever(of),
        };
        let usual = self.failure(of);
        let mut acts = Vec::new();
        for _ in 0..failures {
            let end = if self.chance(75) { usual.clone() } else { self.failure(of) };
            acts.push(self.act(end));
        }
        let output = self.output(of.capture);
        acts.push(self.act(ScriptedEnd::Success(output)));
        // A success after a handler repeats the last attempt.
        AttemptScript { acts }
    }

    fn for_ever(&mut self, of: ScriptSettings) -> AttemptScript {
        let end = self.failure(of);
        let count = self.count(2, 6);
        let acts = (0..count).map(|_| self.act(end.clone()));
        AttemptScript { acts: acts.collect() }
    }

    pub(super) fn act(&mut self, end: ScriptedEnd) -> ScriptedAttempt {
        let takes =
            if self.chance(85) { self.random.between(1, 2500) } else { self.random.between(2500, 20_000) };
        let takes = Duration::from_millis(takes);
        ScriptedAttempt { takes, end }
    }

    fn output(&mut self, capture: Option<CaseFormat>) -> String {
        match capture {
            Some(CaseFormat::Number | CaseFormat::Json) if self.chance(85) => "42\n".to_owned(),
            Some(_) => "so {be it\n".to_owned(),
            None => String::new(),
        }
    }

    fn failure(&mut self, of: ScriptSettings) -> ScriptedEnd {
        if of.may_hang && self.chance(20) {
            return ScriptedEnd::Hang;
        }
        if of.is_call {
            return match self.random.below(10) {
                0..=3 => ScriptedEnd::Status(self.one_of(&[503, 500, 502], 503), None),
                4 | 5 => ScriptedEnd::Status(429, Some(self.random.between(1, 8))),
                6 => ScriptedEnd::Status(503, Some(self.random.between(1, 8))),
                7 => ScriptedEnd::Status(self.one_of(&[404, 400, 302], 404), None),
                _ => ScriptedEnd::Refused,
            };
        }
        match self.random.below(12) {
            0..=5 => ScriptedEnd::Exit(1),
            6 | 7 => ScriptedEnd::Exit(self.one_of(&[2, 3], 3)),
            8 => ScriptedEnd::Exit(self.one_of(&[126, 127], 127)),
            9 => ScriptedEnd::Signal(self.one_of(&[9, 11], 9)),
            _ => ScriptedEnd::Exit(3),
        }
    }
}
