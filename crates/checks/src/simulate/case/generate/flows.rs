//! Generated flows.

use super::super::flow::{
    CaseFlow, CaseFlowStep, CaseInput, CaseInputRole, CaseStepKind, CaseWorkBackoff, CaseWorkConfig,
};
use super::super::job_case::{AttemptScript, ScriptedAttempt, ScriptedEnd};
use super::CaseGenerator;

impl CaseGenerator<'_> {
    pub(super) fn flow(&mut self) -> CaseFlow {
        // Steps have breakers by origin.
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
        let labels: Vec<u32> = steps.iter().map(|it: &CaseFlowStep| it.label).collect();
        let mut goals: Vec<u32> = labels.iter().copied().filter(|_| self.chance(20)).collect();
        let last = labels.last().copied().unwrap_or_default();
        if !goals.contains(&last) {
            goals.push(last);
        }
        CaseFlow { goals, init, steps }
    }

    fn step(&mut self, known: &[String]) -> CaseFlowStep {
        let label = self.label();
        let mut takes = Vec::new();
        let mut is_each = false;
        for name in known {
            if !self.chance(55) {
                continue;
            }
            // Only an initial attribute is certainly an array.
            let each = name == "x" && self.chance(60);
            is_each |= each;
            takes.push(CaseInput {
                name: name.clone(),
                role: if self.chance(75) { CaseInputRole::Required } else { CaseInputRole::Optional },
                each,
            });
        }
        let kind =
            if self.chance(30) { CaseStepKind::Async(self.time(1500, 9000)) } else { CaseStepKind::Sync };
        let gives = if self.chance(80) { vec![format!("y{label}")] } else { Vec::new() };
        let timeout = self.time_in(50, 400, 5000);
        let items = if is_each { 4 } else { 1 };
        for item in 0..items {
            let script = self.step_script(kind, timeout.is_some(), &gives);
            let _ = self.scripts.insert((label, item.to_string()), script);
        }
        CaseFlowStep {
            label,
            place: self.random.below(2),
            kind,
            timeout,
            work: self.chance(85).then(|| self.work()),
            takes,
            gives,
        }
    }

    fn work(&mut self) -> CaseWorkConfig {
        let backoff = self.time_in(80, 20, 1500);
        let growths = [CaseWorkBackoff::Fixed, CaseWorkBackoff::Linear, CaseWorkBackoff::Exponential];
        CaseWorkConfig {
            max_retries: self.chance(85).then(|| self.count(0, 4)),
            max_backoff: self.time_in(40, 1500, 4000),
            backoff,
            growth: self.chance(70).then(|| self.one_of(&growths, CaseWorkBackoff::Fixed)),
            parallelism: self.chance(60).then(|| self.count(1, 3)),
        }
    }

    fn step_script(&mut self, kind: CaseStepKind, may_hang: bool, gives: &[String]) -> AttemptScript {
        let failures = match self.random.below(10) {
            0..=5 => 0,
            6..=8 => self.count(1, 3),
            _ => 9,
        };
        let mut acts = Vec::new();
        for _ in 0..failures {
            let end = match self.random.below(12) {
                0..=4 => ScriptedEnd::Status(503, None),
                5 => ScriptedEnd::Status(503, Some(self.random.between(1, 5))),
                6 => ScriptedEnd::Status(404, None),
                7 => ScriptedEnd::Denied,
                8 | 9 if may_hang => ScriptedEnd::Hang,
                _ => ScriptedEnd::Refused,
            };
            let act = self.act(end);
            acts.push(act);
        }
        if failures < 9 {
            let act = self.step_success(kind, gives);
            acts.push(act);
        }
        AttemptScript { acts }
    }

    fn step_success(&mut self, kind: CaseStepKind, gives: &[String]) -> ScriptedAttempt {
        let outputs = gives.iter().filter(|_| self.chance(90));
        let outputs: Vec<String> = outputs.map(|name| format!("\"{name}\":7")).collect();
        let outputs = ScriptedEnd::Success(format!("{{{}}}", outputs.join(",")));
        if kind == CaseStepKind::Sync {
            return self.act(outputs);
        }
        let end = match self.random.below(8) {
            0 => ScriptedEnd::Hang,
            1 => ScriptedEnd::Denied,
            _ => outputs,
        };
        let result = self.act(end);
        self.act(ScriptedEnd::Later(Box::new(result)))
    }
}
