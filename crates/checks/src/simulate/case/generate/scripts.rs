//! Generated scripts: mostly a few failures and then a success, sometimes failures for ever.

use std::time::Duration;

use super::super::command::CaptureFormat;
use super::super::job_case::{AttemptScript, ScriptedAttempt, ScriptedEnd};
use super::CaseGenerator;

#[derive(Clone, Copy)]
pub(super) struct ScriptSettings {
    pub(super) label: u32,
    pub(super) is_call: bool,
    /// Whether something ends a hanging attempt.
    pub(super) may_hang: bool,
    pub(super) capture: Option<CaptureFormat>,
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

    fn output(&mut self, capture: Option<CaptureFormat>) -> String {
        match capture {
            Some(CaptureFormat::Number | CaptureFormat::Json) if self.chance(85) => "42\n".to_owned(),
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
