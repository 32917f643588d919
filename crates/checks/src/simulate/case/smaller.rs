//! Smaller cases for shrinking.
//!
//! Each has one thing less: a command, an item, a setting, a handler, a failure.

use super::command::CaseCommand;
use super::flow::CaseFlow;
use super::job_case::{CaseMap, CaseShape, CaseTolerance, JobCase};
use super::retry::CaseRetry;

type Reduction<'a> = Box<dyn Fn(&mut JobCase) + 'a>;

const MAP_REDUCTIONS: [fn(&mut CaseMap); 7] = [
    |it| it.completion = None,
    |it| it.tolerance = CaseTolerance::default(),
    |it| it.item_deadline = None,
    |it| it.timeout_retry = None,
    |it| it.policy_retry = None,
    |it| it.items_by_shell = false,
    |it| it.width = 1,
];

const LIMIT_REDUCTIONS: [fn(&mut JobCase); 4] =
    [|it| it.deadline = None, |it| it.pool = None, |it| it.share = None, |it| it.retry = None];

const COMMAND_REDUCTIONS: [fn(&mut CaseCommand); 8] = [
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
    |it| {
        it.breaker = None;
        // Nothing is left that could hold it.
        if let (None, Some(retry)) = (&it.call, &mut it.retry) {
            retry.rules.clear();
        }
    },
];

const RETRY_REDUCTIONS: [fn(&mut CaseRetry); 6] = [
    |it| it.rules.clear(),
    |it| it.jitter = None,
    |it| it.retry_on.clear(),
    |it| it.budget = None,
    |it| it.max_delay = None,
    |it| it.backoff = None,
];

impl JobCase {
    /// Every case with one thing less; large reductions come first.
    pub fn smaller(&self) -> Vec<Self> {
        let mut reductions = self.part_reductions();
        reductions.extend(LIMIT_REDUCTIONS.map(|change| Box::new(change) as Reduction<'_>));
        for index in 0..self.breakers.len() {
            reductions.push(Box::new(move |it| it.breakers[index].max_hold = None));
        }
        reductions.extend(self.command_reductions());
        for (key, script) in &self.scripts {
            if script.acts.len() > 1 {
                reductions.push(Box::new(move |it| {
                    it.scripts.get_mut(key).map(|script| script.acts.remove(0));
                }));
            }
        }
        let cases = reductions.iter().map(|reduce| {
            let mut other = self.clone();
            reduce(&mut other);
            other.forget_unused();
            other
        });
        cases.filter(|it| it != self && it.is_whole() && it.can_end()).collect()
    }

    fn is_whole(&self) -> bool {
        !matches!(&self.shape, CaseShape::Flow(flow) if !flow.is_whole())
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

    /// The lists of commands, and how many commands must stay in each.
    fn lists(&mut self) -> Vec<(&mut Vec<CaseCommand>, usize)> {
        match &mut self.shape {
            CaseShape::List(commands) => vec![(commands, 1)],
            CaseShape::Map(map) => {
                vec![(&mut map.setup, 0), (&mut map.commands, 1), (&mut map.reduce, 0)]
            }
            CaseShape::Flow(_) => Vec::new(),
        }
    }

    fn part_reductions(&self) -> Vec<Reduction<'_>> {
        let mut reductions: Vec<Reduction<'_>> = Vec::new();
        if let CaseShape::Map(map) = &self.shape {
            for index in removable(map.items.len(), 1) {
                reductions.push(in_map(move |map| drop(map.items.remove(index))));
            }
        }
        for (number, (list, least)) in self.clone().lists().into_iter().enumerate() {
            for index in removable(list.len(), least) {
                reductions.push(Box::new(move |it| drop(it.lists()[number].0.remove(index))));
            }
        }
        match &self.shape {
            CaseShape::List(_) => {}
            CaseShape::Map(_) => reductions.extend(MAP_REDUCTIONS.map(in_map)),
            CaseShape::Flow(flow) => {
                for index in removable(flow.goals.len(), 1) {
                    reductions.push(in_flow(move |flow| {
                        flow.goals.remove(index);
                    }));
                }
                for index in removable(flow.steps.len(), 1) {
                    reductions.push(in_flow(move |flow| drop(flow.steps.remove(index))));
                }
                for index in 0..flow.steps.len() {
                    reductions.push(in_flow(move |flow| {
                        flow.steps[index].timeout = None;
                        flow.steps[index].work = None;
                    }));
                }
            }
        }
        reductions
    }

    fn command_reductions(&self) -> Vec<Reduction<'_>> {
        let labels: Vec<u32> = self.commands().iter().map(|it| it.label).collect();
        let mut reductions: Vec<Reduction<'_>> = Vec::new();
        for label in labels {
            for change in COMMAND_REDUCTIONS {
                reductions.push(Box::new(move |it| it.change(label, &change)));
            }
            for change in RETRY_REDUCTIONS {
                let in_retry = move |command: &mut CaseCommand| command.retry.iter_mut().for_each(change);
                reductions.push(Box::new(move |it| it.change(label, &in_retry)));
            }
        }
        reductions
    }

    fn change(&mut self, label: u32, change: &dyn Fn(&mut CaseCommand)) {
        for (list, _) in self.lists() {
            change_in(list, label, change);
        }
    }
}

fn in_map(change: impl Fn(&mut CaseMap) + 'static) -> Reduction<'static> {
    Box::new(move |it| {
        if let CaseShape::Map(map) = &mut it.shape {
            change(map);
        }
    })
}

fn in_flow(change: impl Fn(&mut CaseFlow) + 'static) -> Reduction<'static> {
    Box::new(move |it| {
        if let CaseShape::Flow(flow) = &mut it.shape {
            change(flow);
        }
    })
}

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

/// The indexes of a list from which one element may be removed.
fn removable(length: usize, least: usize) -> std::ops::Range<usize> {
    if length > least { 0..length } else { 0..0 }
}
