//! Smaller cases for shrinking.
//!
//! Each has one thing less: a command, an item, a setting, a handler, a failure.

use super::command::CaseCommand;
use super::job_case::{CaseMap, CaseShape, CaseTolerance, JobCase};
use super::retry::CaseRetry;

impl JobCase {
    /// Every case with one thing less; large reductions come first.
    pub fn smaller(&self) -> Vec<Self> {
        let mut found = Vec::new();
        self.without_parts(&mut found);
        self.without_limits(&mut found);
        self.with_smaller_commands(&mut found);
        self.with_fewer_failures(&mut found);
        found.retain(|it| it != self && it.can_end());
        found
    }

    fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut other = self.clone();
        change(&mut other);
        other.forget_unused();
        other
    }

    /// Removes the scripts that no command uses.
    fn forget_unused(&mut self) {
        let labels: Vec<u32> = match &self.shape {
            CaseShape::Flow(flow) => flow.steps.iter().map(|it| it.label).collect(),
            _ => self.commands().iter().map(|it| it.label).collect(),
        };
        let items = match &self.shape {
            CaseShape::Map(map) => Some(map.items.clone()),
            _ => None,
        };
        self.scripts.retain(|(label, item), _| {
            let is_there = |items: &Vec<String>| item.is_empty() || items.contains(item);
            labels.contains(label) && items.as_ref().is_none_or(is_there)
        });
    }

    fn without_parts(&self, found: &mut Vec<Self>) {
        match &self.shape {
            CaseShape::List(commands) => {
                for fewer in without_one(commands, 1) {
                    found.push(self.with(|it| it.shape = CaseShape::List(fewer)));
                }
            }
            CaseShape::Map(map) => {
                let mut maps = Vec::new();
                let mut keep = |change: &dyn Fn(&mut CaseMap)| {
                    let mut other = map.clone();
                    change(&mut other);
                    maps.push(other);
                };
                for fewer in without_one(&map.items, 1) {
                    keep(&|it| it.items.clone_from(&fewer));
                }
                for fewer in without_one(&map.setup, 0) {
                    keep(&|it| it.setup.clone_from(&fewer));
                }
                for fewer in without_one(&map.commands, 1) {
                    keep(&|it| it.commands.clone_from(&fewer));
                }
                for fewer in without_one(&map.reduce, 0) {
                    keep(&|it| it.reduce.clone_from(&fewer));
                }
                keep(&|it| it.completion = None);
                keep(&|it| it.tolerance = CaseTolerance::default());
                keep(&|it| it.item_deadline = None);
                keep(&|it| it.timeout_retry = None);
                keep(&|it| it.policy_retry = None);
                keep(&|it| it.items_by_shell = false);
                keep(&|it| it.width = 1);
                for other in maps {
                    found.push(self.with(|it| it.shape = CaseShape::Map(other)));
                }
            }
            CaseShape::Flow(flow) => {
                for goals in without_one(&flow.goals, 1) {
                    let mut other = flow.clone();
                    other.goals = goals;
                    found.push(self.with(|it| it.shape = CaseShape::Flow(other)));
                }
                for steps in without_one(&flow.steps, 1) {
                    let mut other = flow.clone();
                    other.steps = steps;
                    if other.is_whole() {
                        found.push(self.with(|it| it.shape = CaseShape::Flow(other)));
                    }
                }
                for place in 0..flow.steps.len() {
                    let mut other = flow.clone();
                    if let Some(step) = other.steps.get_mut(place) {
                        step.timeout = None;
                        step.work = None;
                    }
                    found.push(self.with(|it| it.shape = CaseShape::Flow(other)));
                }
            }
        }
    }

    fn without_limits(&self, found: &mut Vec<Self>) {
        found.push(self.with(|it| it.deadline = None));
        found.push(self.with(|it| it.pool = None));
        found.push(self.with(|it| it.share = None));
        found.push(self.with(|it| it.retry = None));
        for (place, breaker) in self.breakers.iter().enumerate() {
            if breaker.max_hold.is_some() {
                found.push(self.with(|it| {
                    if let Some(breaker) = it.breakers.get_mut(place) {
                        breaker.max_hold = None;
                    }
                }));
            }
        }
    }

    /// Reductions of one command.
    fn with_smaller_commands(&self, found: &mut Vec<Self>) {
        let labels: Vec<u32> = self.commands().iter().map(|it| it.label).collect();
        let changes: [fn(&mut CaseCommand); 7] = [
            |it| it.on_failure = None,
            |it| it.on_success.clear(),
            |it| it.retry = None,
            |it| it.capture = None,
            |it| it.timeout = None,
            |it| it.stays_interrupted = false,
            |it| {
                if let Some(handler) = &mut it.on_failure {
                    handler.rounds = 0;
                    handler.fails = false;
                    handler.commands.truncate(1);
                }
            },
        ];
        for label in labels {
            for change in changes {
                found.push(self.with(|it| it.change(label, change)));
            }
            for change in SMALLER_RETRIES {
                found.push(self.with(|it| {
                    it.change(label, |command| {
                        if let Some(retry) = &mut command.retry {
                            change(retry);
                        }
                    });
                }));
            }
            found.push(self.with(|it| {
                it.change(label, |command| {
                    command.breaker = None;
                    // Nothing is left that could hold it.
                    if command.call.is_none()
                        && let Some(retry) = &mut command.retry
                    {
                        retry.rules.clear();
                    }
                });
            }));
        }
    }

    fn change(&mut self, label: u32, change: impl Fn(&mut CaseCommand)) {
        let lists: Vec<&mut Vec<CaseCommand>> = match &mut self.shape {
            CaseShape::List(commands) => vec![commands],
            CaseShape::Map(map) => vec![&mut map.setup, &mut map.commands, &mut map.reduce],
            CaseShape::Flow(_) => Vec::new(),
        };
        for list in lists {
            change_in(list, label, &change);
        }
    }

    fn with_fewer_failures(&self, found: &mut Vec<Self>) {
        for (key, script) in &self.scripts {
            if script.acts.len() > 1 {
                found.push(self.with(|it| {
                    if let Some(script) = it.scripts.get_mut(key) {
                        let _ = script.acts.remove(0);
                    }
                }));
            }
        }
    }
}

const SMALLER_RETRIES: [fn(&mut CaseRetry); 6] = [
    |it| it.rules.clear(),
    |it| it.jitter = None,
    |it| it.retry_on.clear(),
    |it| it.budget = None,
    |it| it.max_delay = None,
    |it| it.backoff = None,
];

fn change_in(list: &mut [CaseCommand], label: u32, change: &dyn Fn(&mut CaseCommand)) {
    for command in list {
        if command.label == label {
            change(command);
        }
        if let Some(handler) = &mut command.on_failure {
            change_in(&mut handler.commands, label, change);
        }
        change_in(&mut command.on_success, label, change);
    }
}

/// Every list with one element less, but not fewer than `least`.
fn without_one<T: Clone>(list: &[T], least: usize) -> Vec<Vec<T>> {
    if list.len() <= least {
        return Vec::new();
    }
    let places = 0..list.len();
    let shorter = places.map(|place| {
        let mut fewer = list.to_vec();
        let _ = fewer.remove(place);
        fewer
    });
    shorter.collect()
}
