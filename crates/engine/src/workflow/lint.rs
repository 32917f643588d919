//! What is allowed and probably not meant.
//!
//! Looks at the checked workflow only: every warning is about what would happen, not about how it is
//! written.

use undaunted_policy::{
    Attempts, Ceilings, Class, ClassName, Jitter, Policy, Reason, Rule, Schedule, Seed, Terms,
};

use super::diagnostic::{Code, Diagnostic, Problems};
use super::model::{Action, Command, Map, MaxParallel, Resolved, Step, Work, Workflow};
use super::source::Span;

/// From this many items at a time on, retries without jitter come in waves.
const MANY: u32 = 10;
/// How far a schedule is followed before it counts as endless.
const FAR: usize = 10_000;

pub(crate) fn warnings(
    workflow: &Workflow,
    ceilings: &Ceilings,
    pool_span: Span,
    problems: &mut Problems,
) {
    let mut lint = Lint { workflow, problems };
    for step in &workflow.steps {
        if let Work::Call(call) = &step.work {
            lint.policy(&call.retry, Span::default(), None);
        }
        for command in &step.commands {
            lint.command(command, step);
        }
    }
    lint.pool(ceilings, pool_span);
}

struct Lint<'w, 'p> {
    workflow: &'w Workflow,
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
        self.deadline(&retry.policy, at("attempts"));
        self.endless(terms, at("attempts"));
        self.jitter_factor(retry, at("jitter_factor"));
        self.rules(&retry.policy, at("rules"), action);
    }

    fn budget(&mut self, terms: &Terms, span: Span) {
        let draws = Seed(0).draws(0, 0, 1);
        let first = terms.pace().delay(std::num::NonZeroU32::MIN, None, draws);
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

    fn deadline(&mut self, policy: &Policy, span: Span) {
        let Attempts::AtMost(retries) = policy.terms().limits().attempts() else {
            return;
        };
        let mut plan = Schedule::new(policy, Seed(0).draws(0, 0, 1));
        let made = plan.by_ref().take(FAR).count();
        let _ = plan.next();
        if plan.stopped() == Some(Reason::Deadline) {
            let message = format!("of {retries} retries only {made} fit before the deadline");
            let help = "fewer attempts, shorter delays, or a later deadline";
            self.warn(Code::AttemptsPastDeadline, span, message, help);
        }
    }

    fn endless(&mut self, terms: &Terms, span: Span) {
        let limits = terms.limits();
        let bounded = limits.retry_budget().is_some()
            || limits.deadline().is_some()
            || self.workflow.pool.is_some();
        if limits.attempts() == Attempts::Unlimited && !bounded {
            let message = "nothing ever ends these retries";
            let help = "add a `retry_budget`, or a deadline";
            self.warn(Code::UnlimitedRetries, span, message, help);
        }
    }

    fn jitter_factor(&mut self, retry: &Resolved, span: Span) {
        let spread = matches!(
            retry.policy.terms().pace().jitter(),
            Jitter::PlusMinus { .. }
        );
        if retry.origin("jitter_factor").is_some() && !spread {
            let message = "`jitter_factor` has no effect without `jitter: true`";
            self.warn(Code::NoEffect, span, message, "add `jitter: true`");
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

    fn pool(&mut self, ceilings: &Ceilings, span: Span) {
        let Some(pool) = self.workflow.pool else {
            return;
        };
        let asked = [
            ("retry_budget", pool.total, ceilings.max_total),
            (
                "retry_budget_per_workflow",
                pool.per_item,
                ceilings.max_per_item,
            ),
        ];
        for (key, asked, most) in asked {
            if asked > most {
                let message = format!(
                    "`{key}: {asked}` is more than the operator allows; {most} will be used"
                );
                let help = "RETRY_BUDGET_MAX and RETRY_BUDGET_PER_WORKFLOW_MAX set the ceilings";
                self.warn(Code::PoolAboveCeiling, span, message, help);
            }
        }
        let limits = undaunted_policy::PoolLimits::effective(pool.total, pool.per_item, ceilings);
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
            self.warn(Code::PoolBelowItems, span, message, help);
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
