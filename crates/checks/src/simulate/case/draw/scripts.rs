//! Drawn scripts: mostly a few failures and then a success, some failures for ever.

use std::time::Duration;

use super::super::act::{Act, How, Script};
use super::super::command::Format;
use super::table::Table;

/// What a script is for.
#[derive(Clone, Copy)]
pub(super) struct Of {
    pub(super) label: u32,
    pub(super) is_call: bool,
    /// Whether something ends an attempt that hangs.
    pub(super) may_hang: bool,
    pub(super) capture: Option<Format>,
}

impl Table<'_> {
    /// What a command does, for every item there is.
    pub(super) fn write_scripts(&mut self, of: Of) {
        for item in self.items.clone() {
            let script = self.script(of);
            let _ = self.scripts.insert((of.label, item), script);
        }
    }

    fn script(&mut self, of: Of) -> Script {
        let failures = match self.die.below(20) {
            0..=9 => 0,
            10..=15 => self.count(1, 2),
            16 | 17 => self.count(3, 5),
            // The last act is that of all that follow.
            _ => return self.for_ever(of),
        };
        let usual = self.failure(of);
        let mut acts = Vec::new();
        for _ in 0..failures {
            let how = if self.falls(75) { usual.clone() } else { self.failure(of) };
            acts.push(self.act(how));
        }
        let output = self.output(of.capture);
        acts.push(self.act(How::Success(output)));
        // Successes that come a second time, after a handler, take another time.
        Script { acts }
    }

    fn for_ever(&mut self, of: Of) -> Script {
        let how = self.failure(of);
        let count = self.count(2, 6);
        let acts = (0..count).map(|_| self.act(how.clone()));
        Script { acts: acts.collect() }
    }

    pub(super) fn act(&mut self, how: How) -> Act {
        let takes = if self.falls(85) { self.die.between(1, 2500) } else { self.die.between(2500, 20_000) };
        let takes = Duration::from_millis(takes);
        Act { takes, how }
    }

    fn output(&mut self, capture: Option<Format>) -> String {
        match capture {
            Some(Format::Number | Format::Json) if self.falls(85) => "42\n".to_owned(),
            Some(_) => "so {be it\n".to_owned(),
            None => String::new(),
        }
    }

    fn failure(&mut self, of: Of) -> How {
        if of.may_hang && self.falls(20) {
            return How::Hang;
        }
        if of.is_call {
            return match self.die.below(10) {
                0..=3 => How::Status(self.one_of(&[503, 500, 502], 503), None),
                4 | 5 => How::Status(429, Some(self.die.between(1, 8))),
                6 => How::Status(503, Some(self.die.between(1, 8))),
                7 => How::Status(self.one_of(&[404, 400, 302], 404), None),
                _ => How::Refused,
            };
        }
        match self.die.below(12) {
            0..=5 => How::Exit(1),
            6 | 7 => How::Exit(self.one_of(&[2, 3], 3)),
            8 => How::Exit(self.one_of(&[126, 127], 127)),
            9 => How::Signal(self.one_of(&[9, 11], 9)),
            _ => How::Exit(3),
        }
    }
}
