//! Drawn flows.

use super::super::act::{Act, How, Script};
use super::super::flow::{Flow, FlowStep, Kind, Role, Taken, WorkBackoff, WorkConfig};
use super::table::Table;

impl Table<'_> {
    pub(super) fn flow(&mut self) -> Flow {
        // Steps have breakers by where they are.
        self.breakers.retain(|it| it.place.is_some());
        let given = self.count(1, 4);
        let init = vec![("x".to_owned(), (1..=given).collect())];
        let mut known = vec!["x".to_owned()];
        let count = self.count(1, 5);
        let mut steps = Vec::new();
        for _ in 0..count {
            let step = self.step(&known);
            known.extend(step.gives.iter().cloned());
            steps.push(step);
        }
        let labels: Vec<u32> = steps.iter().map(|it: &FlowStep| it.label).collect();
        let mut goals: Vec<u32> = labels.iter().copied().filter(|_| self.falls(20)).collect();
        let last = labels.last().copied().unwrap_or_default();
        if !goals.contains(&last) {
            goals.push(last);
        }
        Flow { goals, init, steps }
    }

    fn step(&mut self, known: &[String]) -> FlowStep {
        let label = self.label();
        let mut takes = Vec::new();
        let mut is_each = false;
        for name in known {
            if !self.falls(55) {
                continue;
            }
            // Only what is there from the beginning is an array for certain.
            let each = name == "x" && self.falls(60);
            is_each |= each;
            takes.push(Taken {
                name: name.clone(),
                role: if self.falls(75) { Role::Required } else { Role::Optional },
                each,
            });
        }
        let kind = if self.falls(30) { Kind::Async(self.time(1500, 9000)) } else { Kind::Sync };
        let gives = if self.falls(80) { vec![format!("y{label}")] } else { Vec::new() };
        let timeout = self.time_in(50, 400, 5000);
        let items = if is_each { 4 } else { 1 };
        for item in 0..items {
            let script = self.step_script(kind, timeout.is_some(), &gives);
            let _ = self.scripts.insert((label, item.to_string()), script);
        }
        FlowStep {
            label,
            place: self.die.below(2),
            kind,
            timeout,
            work: self.falls(85).then(|| self.work()),
            takes,
            gives,
        }
    }

    fn work(&mut self) -> WorkConfig {
        let backoff = self.time_in(80, 20, 1500);
        let growths = [WorkBackoff::Fixed, WorkBackoff::Linear, WorkBackoff::Exponential];
        WorkConfig {
            max_retries: self.falls(85).then(|| self.count(0, 4)),
            max_backoff: self.time_in(40, 1500, 4000),
            backoff,
            growth: self.falls(70).then(|| self.one_of(&growths, WorkBackoff::Fixed)),
            parallelism: self.falls(60).then(|| self.count(1, 3)),
        }
    }

    fn step_script(&mut self, kind: Kind, may_hang: bool, gives: &[String]) -> Script {
        let failures = match self.die.below(10) {
            0..=5 => 0,
            6..=8 => self.count(1, 3),
            _ => 9,
        };
        let mut acts = Vec::new();
        for _ in 0..failures {
            let how = match self.die.below(12) {
                0..=4 => How::Status(503, None),
                5 => How::Status(503, Some(self.die.between(1, 5))),
                6 => How::Status(404, None),
                7 => How::Denied,
                8 | 9 if may_hang => How::Hang,
                _ => How::Refused,
            };
            let act = self.act(how);
            acts.push(act);
        }
        if failures < 9 {
            let act = self.step_success(kind, gives);
            acts.push(act);
        }
        Script { acts }
    }

    fn step_success(&mut self, kind: Kind, gives: &[String]) -> Act {
        let outputs = gives.iter().filter(|_| self.falls(90));
        let outputs: Vec<String> = outputs.map(|name| format!("\"{name}\":7")).collect();
        let outputs = How::Success(format!("{{{}}}", outputs.join(",")));
        if kind == Kind::Sync {
            return self.act(outputs);
        }
        let how = match self.die.below(8) {
            0 => How::Hang,
            1 => How::Denied,
            _ => outputs,
        };
        let result = self.act(how);
        self.act(How::Later(Box::new(result)))
    }
}
