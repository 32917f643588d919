//! A case in one shape for lists, maps and flows: steps of items of commands.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::simulate::case::{
    CaseBreaker, CaseCommand, CaseCompletion, CaseFlow, CaseFlowStep, CaseFormat, CaseMap, CaseRetry,
    CaseShape, CaseStepKind, CaseTolerance, JobCase, is_gated,
};

use super::terms::ModelTerms;

#[derive(Clone, Debug)]
pub(super) struct ModelPlan {
    pub(super) steps: Vec<ModelStepPlan>,
    /// The breakers that commands ask, by name.
    pub(super) breakers: BTreeMap<String, CaseBreaker>,
}

#[derive(Clone, Debug)]
pub(super) struct ModelStepPlan {
    pub(super) commands: Vec<ModelCommand>,
    /// The names of the items in the prediction and in the script.
    pub(super) items: Vec<(String, String)>,
    pub(super) width: usize,
    pub(super) kind: ModelStepKind,
}

#[derive(Clone, Debug)]
pub(super) enum ModelStepKind {
    /// A step of a chain: one item, one command, and its failure ends the chain.
    Link,
    Map(Box<ModelMap>),
    Flow(CaseFlowStep),
}

#[derive(Clone, Debug)]
pub(super) struct ModelMap {
    pub(super) limit: Option<Duration>,
    pub(super) tolerance: CaseTolerance,
    pub(super) completion: Option<CaseCompletion>,
}

#[derive(Clone, Debug)]
pub(super) struct ModelCommand {
    pub(super) name: String,
    pub(super) terms: ModelTerms,
    pub(super) timeout: Option<Duration>,
    pub(super) capture: Option<CaseFormat>,
    pub(super) breaker: Option<String>,
    pub(super) is_call: bool,
    /// How long an async result is waited for.
    pub(super) within: Duration,
    pub(super) handler: Option<ModelHandler>,
    pub(super) after: Vec<ModelCommand>,
}

#[derive(Clone, Debug)]
pub(super) struct ModelHandler {
    pub(super) commands: Vec<ModelCommand>,
    pub(super) rounds: u32,
    pub(super) fails: bool,
}

/// The default timeout of a request.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

impl ModelPlan {
    pub(super) fn of(case: &JobCase) -> Self {
        let mut plan = Self { steps: Vec::new(), breakers: BTreeMap::new() };
        match &case.shape {
            CaseShape::List(commands) => plan.add_chain(case, commands),
            CaseShape::Map(map) => {
                plan.add_chain(case, &map.setup);
                plan.add_map(case, map);
                plan.add_chain(case, &map.reduce);
            }
            CaseShape::Flow(flow) => plan.add_flow(case, flow),
        }
        plan
    }

    fn add_chain(&mut self, case: &JobCase, commands: &[CaseCommand]) {
        for command in commands {
            let places = [command.retry.as_ref(), case.retry.as_ref()];
            let work = self.work(case, command, ModelTerms::merged(&places, false));
            self.steps.push(ModelStepPlan {
                items: vec![(work.name.clone(), String::new())],
                commands: vec![work],
                width: 1,
                kind: ModelStepKind::Link,
            });
        }
    }

    fn add_map(&mut self, case: &JobCase, map: &CaseMap) {
        let asked_for = map.tolerance.on_item_failure == Some("retry");
        let mut commands = Vec::new();
        for command in &map.commands {
            let places: [Option<&CaseRetry>; 4] = [
                command.retry.as_ref(),
                map.timeout_retry.as_ref(),
                map.policy_retry.as_ref(),
                case.retry.as_ref(),
            ];
            commands.push(self.work(case, command, ModelTerms::merged(&places, asked_for)));
        }
        let items = map.items.iter().map(|name| (name.clone(), name.clone()));
        self.steps.push(ModelStepPlan {
            commands,
            items: items.collect(),
            width: usize::try_from(map.width).unwrap_or(1),
            kind: ModelStepKind::Map(Box::new(ModelMap {
                limit: map.item_deadline,
                tolerance: map.tolerance.clone(),
                completion: map.completion.clone(),
            })),
        });
    }

    fn work(&mut self, case: &JobCase, command: &CaseCommand, terms: ModelTerms) -> ModelCommand {
        let below = |plan: &mut Self, commands: &[CaseCommand]| -> Vec<ModelCommand> {
            let below = commands.iter().map(|command| {
                // It inherits nothing.
                let terms = ModelTerms::merged(&[command.retry.as_ref()], false);
                plan.work(case, command, terms)
            });
            below.collect()
        };
        let handler = command.on_failure.as_ref().map(|handler| ModelHandler {
            commands: below(self, &handler.commands),
            rounds: handler.rounds,
            fails: handler.fails,
        });
        let after = below(self, &command.on_success);
        let breaker = match &command.call {
            Some(call) => self.breaker_before(case, call.place),
            None => command.breaker.and_then(|it| self.named_breaker(case, it)),
        };
        let defaults = command.call.is_some().then_some(CALL_TIMEOUT);
        ModelCommand {
            name: command.name(),
            terms,
            timeout: command.timeout.or(defaults),
            capture: command.capture,
            breaker,
            is_call: command.call.is_some(),
            within: Duration::ZERO,
            handler,
            after,
        }
    }

    fn named_breaker(&mut self, case: &JobCase, number: usize) -> Option<String> {
        let breaker = case.breakers.get(number)?;
        let name = format!("b{number}");
        let _ = self.breakers.insert(name.clone(), breaker.clone());
        Some(name)
    }

    fn breaker_before(&mut self, case: &JobCase, place: usize) -> Option<String> {
        let defaults = CaseBreaker {
            place: Some(place),
            threshold: 5,
            recovery: Duration::from_mins(1),
            half_open_calls: 3,
            fails: false,
            max_hold: None,
        };
        let name = format!("http://place-{place}.test");
        let defaults = is_gated(place).then_some(defaults);
        let breaker = case.breaker_before(place).cloned().or(defaults)?;
        let _ = self.breakers.insert(name.clone(), breaker);
        Some(name)
    }

    fn add_flow(&mut self, case: &JobCase, flow: &CaseFlow) {
        for step in &flow.steps {
            let breaker = self.breaker_before(case, step.place);
            let within = match step.kind {
                CaseStepKind::Sync => Duration::ZERO,
                CaseStepKind::Async(within) => within,
            };
            let work = ModelCommand {
                name: step.name(),
                terms: ModelTerms::of_work(step.work.as_ref()),
                timeout: Some(step.timeout.unwrap_or(CALL_TIMEOUT)),
                capture: None,
                breaker,
                is_call: true,
                within,
                handler: None,
                after: Vec::new(),
            };
            // An attribute with `for_each` has all its elements from the beginning.
            let each = step.takes.iter().filter(|taken| taken.each);
            let counts = each.filter_map(|taken| {
                let mut init = flow.init.iter();
                init.find(|(name, _)| *name == taken.name).map(|(_, all)| all.len())
            });
            let count: usize = counts.product();
            let items = (0..count).map(|it| (format!("{}#{it}", step.name()), it.to_string()));
            let width = step.work.as_ref().and_then(|it| it.parallelism);
            self.steps.push(ModelStepPlan {
                commands: vec![work],
                items: items.collect(),
                width: usize::try_from(width.unwrap_or(1)).unwrap_or(1),
                kind: ModelStepKind::Flow(step.clone()),
            });
        }
    }
}
