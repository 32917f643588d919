//! What is allowed and probably not meant.
//!
//! Looks at the checked workflow only: every warning is about what would happen, not about how it is
//! written.

use std::num::NonZeroU32;
use std::time::Duration;

use undaunted_policy::{Attempts, Class, ClassName, Jitter, Policy, PoolLimits, Rule, Seed, Terms};

use super::diagnostic::{Code, Diagnostic, Problems};
use super::model::{Action, Command, Map, MaxParallel, Place, Resolved, Step, Work, Workflow};
use super::operator::Operator;
use super::source::Span;

/// From this many items at a time on, retries without jitter come in waves.
const MANY: u32 = 10;
/// How far a schedule is followed before it counts as endless.
const FAR: u32 = 10_000;

pub(crate) fn warnings(workflow: &Workflow, operator: &Operator, problems: &mut Problems) {
    let mut lint = Lint {
        workflow,
        operator,
        problems,
    };
    for step in &workflow.steps {
        if let Work::Call(call) = &step.work {
            lint.policy(&call.retry, Span::default(), None);
        }
        for command in &step.commands {
            lint.command(command, step);
        }
    }
    lint.pool();
}

struct Lint<'w, 'p> {
    workflow: &'w Workflow,
    operator: &'w Operator,
    problems: &'p mut Problems,
}

impl Lint<'_, '_> {
    fn warn(&mut self, code: Code, span: Span, message: impl Into<String>, help: &str) {
        // A block shared by many commands is warned about once.
        self.problems
            .push_once(Diagnostic::new(code, span, message).help(help));
    }

    fn command(&mut self, command: &Command, step: &Step) {
        self.policy(&command.retry, command.span, Some(&command.action));
        if let Work::Map(map) = &step.work {
            self.waves(command, map);
        }
        let handlers = command
            .on_failure
            .iter()
            .flat_map(|handler| &handler.commands);
        for inner in handlers.chain(&command.on_success) {
            self.policy(&inner.retry, inner.span, Some(&inner.action));
        }
    }

    fn policy(&mut self, retry: &Resolved, span: Span, action: Option<&Action>) {
        let at = |setting: &str| retry.origin(setting).map_or(span, |origin| origin.span);
        let terms = retry.policy.terms();
        self.budget(terms, at("retry_budget"));
        self.deadline(terms, at("attempts"));
        self.endless(&retry.policy, at("attempts"));
        self.without_effect(retry, &at, action);
        self.rules(&retry.policy, at("rules"), action);
    }

    fn budget(&mut self, terms: &Terms, span: Span) {
        let draws = Seed(0).draws(0, 0, 1);
        let first = terms.pace().delay(NonZeroU32::MIN, None, draws);
        let Some(budget) = terms.limits().retry_budget() else {
            return;
        };
        if terms.limits().attempts().allow(0) && first.capped > budget {
            let message = format!(
                "the first delay is {:?}, and the retry budget only {budget:?}: nothing is retried",
                first.capped
            );
            let help = "make `retry_budget` larger or `initial_delay` smaller";
            self.warn(Code::BudgetBelowFirstDelay, span, message, help);
        }
    }

    /// Counted without jitter, so that it holds for every seed.
    fn deadline(&mut self, terms: &Terms, span: Span) {
        let limits = terms.limits();
        let (Attempts::AtMost(retries), Some(deadline)) = (limits.attempts(), limits.deadline())
        else {
            return;
        };
        let mut spent = Duration::ZERO;
        for n in 1..=retries.min(FAR) {
            let retry = NonZeroU32::MIN.saturating_add(n.saturating_sub(1));
            let delay = terms.pace().delay(retry, None, Seed(0).draws(0, 0, 1));
            spent = spent.saturating_add(delay.capped);
            if !limits.budget_allows(spent, Duration::ZERO) {
                return;
            }
            if spent > deadline {
                let made = n.saturating_sub(1);
                let message = format!("of {retries} retries only {made} fit before the deadline");
                let help = "fewer attempts, shorter delays, or a later deadline";
                return self.warn(Code::AttemptsPastDeadline, span, message, help);
            }
        }
    }

    fn endless(&mut self, policy: &Policy, span: Span) {
        let own = policy
            .rules()
            .table()
            .iter()
            .filter_map(|rule| rule.terms());
        let pool = self.workflow.pool.is_some() || self.operator.pool_for_all;
        let endless = |terms: &Terms| {
            let limits = terms.limits();
            let bounded = limits.retry_budget().is_some() || limits.deadline().is_some() || pool;
            limits.attempts() == Attempts::Unlimited && !bounded
        };
        if own.chain([policy.terms()]).any(endless) {
            let message = "nothing ever ends these retries";
            let help = "bound their number, give them a budget, or give the job a deadline";
            self.warn(Code::UnlimitedRetries, span, message, help);
        }
    }

    /// Settings that others make meaningless.
    fn without_effect(
        &mut self,
        retry: &Resolved,
        at: &dyn Fn(&str) -> Span,
        action: Option<&Action>,
    ) {
        let pace = retry.policy.terms().pace();
        let given = |setting| retry.origin(setting).is_some();
        if given("jitter_factor") && !matches!(pace.jitter(), Jitter::PlusMinus { .. }) {
            let message = "`jitter_factor` has no effect without `jitter: true`";
            self.warn(
                Code::NoEffect,
                at("jitter_factor"),
                message,
                "add `jitter: true`",
            );
        }
        if given("initial_delay") && pace.initial_delay() > pace.max_delay() {
            let (first, cap) = (pace.initial_delay(), pace.max_delay());
            let message =
                format!("`initial_delay` is {first:?}, and every delay is cut to {cap:?}");
            self.warn(
                Code::NoEffect,
                at("initial_delay"),
                message,
                "raise `max_delay`",
            );
        }
        let process = action.is_some_and(|action| !matches!(action, Action::Http(_)));
        if given("retry_statuses")
            && process
            && retry.origin("retry_statuses").map(|origin| origin.place) == Some(Place::Command)
        {
            let message = "`retry_statuses` has no effect: only an HTTP request has a status";
            self.warn(
                Code::NoEffect,
                at("retry_statuses"),
                message,
                "leave it out",
            );
        }
    }

    fn rules(&mut self, policy: &Policy, span: Span, action: Option<&Action>) {
        let table = policy.rules().table();
        for (index, rule) in table.iter().enumerate() {
            let earlier = table.iter().take(index);
            let mut earlier =
                earlier.filter(|other| other.when().always() || other.when() == rule.when());
            let why = if earlier.next().is_some() {
                Some("an earlier rule takes everything it could match")
            } else {
                impossible(rule, action)
            };
            if let Some(why) = why {
                let message = format!("rule {} can never match: {why}", index.saturating_add(1));
                self.warn(
                    Code::RuleNeverMatches,
                    span,
                    message,
                    "take it out, or move it up",
                );
            }
        }
    }

    /// Items that fail together come back together.
    fn waves(&mut self, command: &Command, map: &Map) {
        let terms = command.retry.policy.terms();
        let many = match &map.max_parallel {
            MaxParallel::Number(number) => *number >= MANY,
            MaxParallel::Variable(_) => false,
        };
        if many && terms.limits().attempts().allow(0) && terms.pace().jitter() == Jitter::None {
            let first = command.retry.origins().next().map(|(_, origin)| origin);
            let origin = command.retry.origin("jitter").or(first);
            let span = origin.map_or(command.span, |origin| origin.span);
            let message = "items that fail together are retried together: there is no jitter";
            self.warn(Code::NoJitter, span, message, "add `jitter: true`");
        }
    }

    fn pool(&mut self) {
        let Some(pool) = self.workflow.pool else {
            return;
        };
        let ceilings = &self.operator.ceilings;
        let [total, per_item] = pool.spans;
        let asked = [
            ("retry_budget", pool.total, ceilings.max_total, total),
            (
                "retry_budget_per_workflow",
                pool.per_item,
                ceilings.max_per_item,
                per_item,
            ),
        ];
        for (key, asked, most, span) in asked {
            if asked > most {
                let message = format!(
                    "`{key}: {asked}` is more than the operator allows; {most} will be used"
                );
                let help = "RETRY_BUDGET_MAX and RETRY_BUDGET_PER_WORKFLOW_MAX set the ceilings";
                self.warn(Code::PoolAboveCeiling, span, message, help);
            }
        }
        let limits = PoolLimits::effective(pool.total, pool.per_item, ceilings);
        let items = self
            .workflow
            .steps
            .iter()
            .find_map(|step| match &step.work {
                Work::Map(map) => map.selection.max_items,
                _ => None,
            });
        if let Some(items) = items
            && u64::try_from(items).unwrap_or(u64::MAX) > u64::from(limits.total)
        {
            let message = format!("{items} items share a pool of {} retries", limits.total);
            let help = "if each may fail once, the pool has to be as large as the number of items";
            self.warn(Code::PoolBelowItems, total, message, help);
        }
    }
}

/// Why no failure of this command can meet the rule's conditions.
fn impossible(rule: &Rule<Terms>, action: Option<&Action>) -> Option<&'static str> {
    let when = rule.when();
    let process = !when.exit_codes.is_empty() || !when.signals.is_empty();
    let http = matches!(action, Some(Action::Http(_)) | None);
    if !when.exit_codes.is_empty() && when.exit_codes.iter().all(|code| *code == 0) {
        return Some("exit code 0 is a success");
    }
    if !when.exit_codes.is_empty() && !when.signals.is_empty() {
        return Some("a process that was ended by a signal has no exit code");
    }
    if process && !when.statuses.is_empty() {
        return Some("a process has no HTTP status, and a request no exit code");
    }
    if http && process {
        return Some("an HTTP request has no exit code and no signal");
    }
    if !http && !when.statuses.is_empty() {
        return Some("only an HTTP request has a status");
    }
    let throttled = when
        .classes
        .iter()
        .all(|class| *class == ClassName::Class(Class::Throttled));
    if !http && !when.classes.is_empty() && throttled {
        return Some("only an HTTP request is throttled");
    }
    None
}
