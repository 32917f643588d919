//! What a case asks for, in one shape for all kinds: steps of items of commands.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::simulate::case::{
    Breaker, Case, Command, Completion, Flow, FlowStep, Format, Kind, Map, Retry, Shape, Tolerance, is_gated,
};

use super::terms::Terms;

/// A case, made uniform.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) steps: Vec<StepPlan>,
    /// Every breaker that something asks, by its name.
    pub(super) breakers: BTreeMap<String, Breaker>,
}

/// A step.
#[derive(Clone, Debug)]
pub(super) struct StepPlan {
    pub(super) commands: Vec<Work>,
    /// The names of its items, as the prediction has them, and as the script has them.
    pub(super) items: Vec<(String, String)>,
    pub(super) width: usize,
    pub(super) kind: StepKind,
}

/// What a step is part of.
#[derive(Clone, Debug)]
pub(super) enum StepKind {
    /// A chain: one item, one command, and it goes on only if that is done.
    Link,
    Map(Box<MapPlan>),
    Flow(FlowStep),
}

/// What holds for a map.
#[derive(Clone, Debug)]
pub(super) struct MapPlan {
    pub(super) limit: Option<Duration>,
    pub(super) tolerance: Tolerance,
    pub(super) completion: Option<Completion>,
}

/// A command.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) name: String,
    pub(super) terms: Terms,
    pub(super) timeout: Option<Duration>,
    pub(super) capture: Option<Format>,
    pub(super) gate: Option<String>,
    pub(super) is_call: bool,
    /// How long the result of what was taken on is waited for.
    pub(super) within: Duration,
    pub(super) handler: Option<Handling>,
    pub(super) after: Vec<Work>,
}

/// What runs when a command has stopped.
#[derive(Clone, Debug)]
pub(super) struct Handling {
    pub(super) commands: Vec<Work>,
    pub(super) rounds: u32,
    pub(super) fails: bool,
}

/// The longest a request takes if nothing is said.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

impl Plan {
    pub(super) fn of(case: &Case) -> Self {
        let mut plan = Self { steps: Vec::new(), breakers: BTreeMap::new() };
        match &case.shape {
            Shape::List(commands) => plan.add_chain(case, commands),
            Shape::Map(map) => {
                plan.add_chain(case, &map.setup);
                plan.add_map(case, map);
                plan.add_chain(case, &map.reduce);
            }
            Shape::Flow(flow) => plan.add_flow(case, flow),
        }
        plan
    }

    fn add_chain(&mut self, case: &Case, commands: &[Command]) {
        for command in commands {
            let places = [command.retry.as_ref(), case.retry.as_ref()];
            let work = self.work(case, command, Terms::merged(&places, false));
            self.steps.push(StepPlan {
                items: vec![(work.name.clone(), String::new())],
                commands: vec![work],
                width: 1,
                kind: StepKind::Link,
            });
        }
    }

    fn add_map(&mut self, case: &Case, map: &Map) {
        let asked_for = map.tolerance.on_item_failure == Some("retry");
        let mut commands = Vec::new();
        for command in &map.commands {
            let places: [Option<&Retry>; 4] = [
                command.retry.as_ref(),
                map.timeout_retry.as_ref(),
                map.policy_retry.as_ref(),
                case.retry.as_ref(),
            ];
            commands.push(self.work(case, command, Terms::merged(&places, asked_for)));
        }
        let items = map.items.iter().map(|name| (name.clone(), name.clone()));
        self.steps.push(StepPlan {
            commands,
            items: items.collect(),
            width: usize::try_from(map.width).unwrap_or(1),
            kind: StepKind::Map(Box::new(MapPlan {
                limit: map.item_deadline,
                tolerance: map.tolerance.clone(),
                completion: map.completion.clone(),
            })),
        });
    }

    fn work(&mut self, case: &Case, command: &Command, terms: Terms) -> Work {
        let below = |plan: &mut Self, commands: &[Command]| -> Vec<Work> {
            let below = commands.iter().map(|command| {
                // It inherits nothing.
                let terms = Terms::merged(&[command.retry.as_ref()], false);
                plan.work(case, command, terms)
            });
            below.collect()
        };
        let handler = command.on_failure.as_ref().map(|handler| Handling {
            commands: below(self, &handler.commands),
            rounds: handler.rounds,
            fails: handler.fails,
        });
        let after = below(self, &command.on_success);
        let gate = match &command.call {
            Some(call) => self.gate_before(case, call.place),
            None => command.breaker.and_then(|it| self.named_gate(case, it)),
        };
        let usual = command.call.is_some().then_some(CALL_TIMEOUT);
        Work {
            name: command.name(),
            terms,
            timeout: command.timeout.or(usual),
            capture: command.capture,
            gate,
            is_call: command.call.is_some(),
            within: Duration::ZERO,
            handler,
            after,
        }
    }

    fn named_gate(&mut self, case: &Case, number: usize) -> Option<String> {
        let breaker = case.breakers.get(number)?;
        let name = format!("b{number}");
        let _ = self.breakers.insert(name.clone(), breaker.clone());
        Some(name)
    }

    fn gate_before(&mut self, case: &Case, place: usize) -> Option<String> {
        let usual = Breaker {
            place: Some(place),
            threshold: 5,
            recovery: Duration::from_mins(1),
            half_open_calls: 3,
            fails: false,
            max_hold: None,
        };
        let name = format!("http://place-{place}.test");
        let usual = is_gated(place).then_some(usual);
        let breaker = case.breaker_before(place).cloned().or(usual)?;
        let _ = self.breakers.insert(name.clone(), breaker);
        Some(name)
    }

    fn add_flow(&mut self, case: &Case, flow: &Flow) {
        for step in &flow.steps {
            let gate = self.gate_before(case, step.place);
            let within = match step.kind {
                Kind::Sync => Duration::ZERO,
                Kind::Async(within) => within,
            };
            let work = Work {
                name: step.name(),
                terms: Terms::of_work(step.work.as_ref()),
                timeout: Some(step.timeout.unwrap_or(CALL_TIMEOUT)),
                capture: None,
                gate,
                is_call: true,
                within,
                handler: None,
                after: Vec::new(),
            };
            // Each attribute that is for each has all elements from the beginning.
            let each = step.takes.iter().filter(|taken| taken.each);
            let counts = each.filter_map(|taken| {
                let mut init = flow.init.iter();
                init.find(|(name, _)| *name == taken.name).map(|(_, all)| all.len())
            });
            let count: usize = counts.product();
            let items = (0..count).map(|it| (format!("{}#{it}", step.name()), it.to_string()));
            let width = step.work.as_ref().and_then(|it| it.parallelism);
            self.steps.push(StepPlan {
                commands: vec![work],
                items: items.collect(),
                width: usize::try_from(width.unwrap_or(1)).unwrap_or(1),
                kind: StepKind::Flow(step.clone()),
            });
        }
    }
}
