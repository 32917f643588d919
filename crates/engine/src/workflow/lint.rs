//! Warnings: settings that are allowed but probably not intended.
//!
//! They depend only on the checked workflow: on what would happen, not on how it is written.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use undaunted_policy::{Attempts, ClassName, Conditions, FailureClass, Jitter, Pattern, Policy, Seed, Terms};

use super::check::Operator;
use super::diagnostic::{Diagnostic, DiagnosticCode, Problems};
use super::model::{
    Action, Command, Map, MaxParallel, PoolRequest, ResolvedRetry, SettingPlace, StepWork, Workflow,
};
use super::source::Span;

/// From this many items at a time on, retries without jitter come in waves.
const MIN_PARALLEL_FOR_JITTER: u32 = 10;
/// Comparing rules with each other takes quadratic time.
const MOST_RULES: usize = 200;
/// The most retries of a schedule that are counted.
const MAX_COUNTED_RETRIES: u32 = 1000;

pub(crate) fn warnings(workflow: &Workflow, operator: &Operator, problems: &mut Problems) {
    let mut lint = Lint { workflow, operator, problems, last: None };
    for step in &workflow.steps {
        if let StepWork::Call(call) = &step.work {
            lint.policy(&call.retry, call.span, None);
        }
        for command in &step.commands {
            lint.command(command);
            if let StepWork::Map(map) = &step.work {
                lint.no_jitter(command, map);
                lint.map_without_breaker(command);
            }
        }
    }
    lint.pool();
}

struct Lint<'w, 'p> {
    workflow: &'w Workflow,
    operator: &'w Operator,
    problems: &'p mut Problems,
    /// The block that was checked last: many commands share one.
    last: Option<*const ResolvedRetry>,
}

impl Lint<'_, '_> {
    fn warn(&mut self, code: DiagnosticCode, span: Span, message: impl Into<String>, help: &str) {
        // A block shared by many commands is warned about once.
        self.problems.push_once(Diagnostic::new(code, span, message).help(help));
    }

    fn command(&mut self, command: &Command) {
        let block = Arc::as_ptr(&command.retry);
        if self.last != Some(block) {
            self.policy(&command.retry, command.span, Some(&command.action));
            self.last = Some(block);
        }
        let handlers = command.on_failure.iter().flat_map(|handler| &handler.commands);
        for inner in handlers.chain(&command.on_success) {
            self.command(inner);
        }
    }

    fn policy(&mut self, retry: &ResolvedRetry, span: Span, action: Option<&Action>) {
        let at = |setting: &str| retry.origin(setting).map_or(span, |origin| origin.span);
        let terms = retry.policy.terms();
        self.budget(terms, at("retry_budget"));
        self.deadline(terms, at("attempts"));
        self.unlimited_retries(&retry.policy, at("attempts"));
        self.without_effect(retry, &at, action);
        self.rules(retry, at("rules"), action);
    }

    fn budget(&mut self, terms: &Terms, span: Span) {
        let draws = Seed(0).draws(0, 0, 1);
        let first = terms.pace().delay(NonZeroU32::MIN, None, draws);
        // The shortest first delay that jitter allows.
        let shortest = match terms.pace().jitter() {
            Jitter::PlusMinus { factor } => first.capped.mul_f64((1.0 - factor).clamp(0.0, 1.0)),
            Jitter::Full => Duration::ZERO,
            Jitter::Equal => first.capped.mul_f64(0.5),
            Jitter::Decorrelated => terms.pace().initial_delay().min(terms.pace().max_delay()),
            _ => first.capped,
        };
        let Some(budget) = terms.limits().retry_budget() else {
            return;
        };
        if terms.limits().attempts().allow(0) && shortest > budget {
            let message = format!(
                "the retry budget of {budget:?} is less than the first delay of {shortest:?}, so nothing is retried"
            );
            let help = "raise `retry_budget` or lower `initial_delay`";
            self.warn(DiagnosticCode::BudgetBelowFirstDelay, span, message, help);
        }
    }

    /// Counted without jitter, so that it holds for every seed.
    fn deadline(&mut self, terms: &Terms, span: Span) {
        let limits = terms.limits();
        let (Attempts::AtMost(retries), Some(deadline)) = (limits.attempts(), limits.deadline()) else {
            return;
        };
        let mut spent = Duration::ZERO;
        for n in 1..=retries.min(MAX_COUNTED_RETRIES) {
            let retry = NonZeroU32::MIN.saturating_add(n.saturating_sub(1));
            let delay = terms.pace().delay(retry, None, Seed(0).draws(0, 0, 1));
            spent = spent.saturating_add(delay.capped);
            if !limits.budget_allows(spent, Duration::ZERO) {
                return;
            }
            if spent > deadline {
                let made = n.saturating_sub(1);
                let noun = if retries == 1 { "retry fits" } else { "retries fit" };
                let message = format!("only {made} of {retries} {noun} before the deadline");
                let help = "use fewer attempts, shorter delays or a later deadline";
                return self.warn(DiagnosticCode::AttemptsPastDeadline, span, message, help);
            }
        }
    }

    fn unlimited_retries(&mut self, policy: &Policy, span: Span) {
        let own = policy.rules().table().iter().filter_map(|rule| rule.terms());
        let pool = self.workflow.pool.is_some() || self.operator.pool_for_all;
        let endless = |terms: &Terms| {
            let limits = terms.limits();
            let bounded = limits.retry_budget().is_some() || limits.deadline().is_some() || pool;
            limits.attempts() == Attempts::Unlimited && !bounded
        };
        if own.chain([policy.terms()]).any(endless) {
            let message = "these retries never end";
            let help = "limit their number, set a `retry_budget`, or give the job a `deadline`";
            self.warn(DiagnosticCode::UnlimitedRetries, span, message, help);
        }
    }

    fn without_effect(&mut self, retry: &ResolvedRetry, at: &dyn Fn(&str) -> Span, action: Option<&Action>) {
        let pace = retry.policy.terms().pace();
        let given = |setting| retry.origin(setting).is_some();
        if given("jitter_factor") && !matches!(pace.jitter(), Jitter::PlusMinus { .. }) {
            let message = "`jitter_factor` has no effect without `jitter: true`";
            self.warn(DiagnosticCode::NoEffect, at("jitter_factor"), message, "add `jitter: true`");
        }
        if given("initial_delay") && pace.initial_delay() > pace.max_delay() {
            let (first, cap) = (pace.initial_delay(), pace.max_delay());
            let message = format!("`initial_delay` is {first:?}, but no delay is longer than {cap:?}");
            self.warn(DiagnosticCode::NoEffect, at("initial_delay"), message, "raise `max_delay`");
        }
        let process = action.is_some_and(|action| !matches!(action, Action::Http(_)));
        let origin = retry.origin("retry_statuses");
        if process && origin.map(|origin| origin.place) == Some(SettingPlace::Command) {
            let message = "`retry_statuses` has no effect: only an HTTP request has a status";
            self.warn(DiagnosticCode::NoEffect, at("retry_statuses"), message, "remove it");
        }
    }

    fn rules(&mut self, retry: &ResolvedRetry, span: Span, action: Option<&Action>) {
        let table = retry.policy.rules().table();
        // A block above several commands may be intended for the others.
        let own = retry.origin("rules").map(|origin| origin.place) == Some(SettingPlace::Command);
        for (index, rule) in table.iter().enumerate().take(MOST_RULES) {
            let mut earlier = table.iter().take(index);
            let why = if earlier.any(|other| covers(other.when(), rule.when())) {
                Some("an earlier rule matches everything it could match")
            } else {
                impossible(rule.when(), action.filter(|_| own))
            };
            if let Some(why) = why {
                let message = format!("rule {} can never match: {why}", index.saturating_add(1));
                self.warn(DiagnosticCode::RuleNeverMatches, span, message, "remove it or move it up");
            }
        }
    }

    /// Items that fail together are retried together.
    fn no_jitter(&mut self, command: &Command, map: &Map) {
        let terms = command.retry.policy.terms();
        let many = match &map.max_parallel {
            MaxParallel::Number(number) => *number >= MIN_PARALLEL_FOR_JITTER,
            MaxParallel::Variable(_) => false,
        };
        if many && terms.limits().attempts().allow(0) && terms.pace().jitter() == Jitter::None {
            let first = command.retry.origins().next().map(|(_, origin)| origin);
            let origin = command.retry.origin("jitter").or(first);
            let span = origin.map_or(command.span, |origin| origin.span);
            let message = "without jitter, items that fail together are retried together";
            self.warn(DiagnosticCode::NoJitter, span, message, "add `jitter: true`");
        }
    }

    /// In an outage every item of a map uses up its own retries, unless a breaker holds it.
    fn map_without_breaker(&mut self, command: &Command) {
        let is_http = matches!(command.action, Action::Http(_));
        if is_http && command.breaker.is_none() && !command.declines_breaker {
            let message =
                "the requests of this map have no breaker, so in an outage every item uses up its retries";
            let help = "add `breaker: true`, or `breaker: false` to silence this warning";
            self.warn(DiagnosticCode::MapWithoutBreaker, command.span, message, help);
        }
        for inner in &command.on_success {
            self.map_without_breaker(inner);
        }
    }

    fn pool(&mut self) {
        let requested = self.workflow.pool;
        let Some(pool) = requested.or(self.operator.pool_for_all.then(PoolRequest::default)) else {
            return;
        };
        let ceilings = &self.operator.ceilings;
        let [total, per_item] = pool.spans;
        let requested = [
            ("retry_budget", pool.total, u64::from(ceilings.max_total), total),
            ("retry_budget_per_workflow", pool.per_item, u64::from(ceilings.max_per_item), per_item),
        ];
        for (key, number, most, span) in requested {
            if number > most {
                let message =
                    format!("`{key}: {number}` exceeds the operator's limit; {most} is used instead");
                let help = "lower it, or raise RETRY_BUDGET_MAX or RETRY_BUDGET_PER_WORKFLOW_MAX";
                self.warn(DiagnosticCode::PoolAboveCeiling, span, message, help);
            }
        }
        let limits = pool.limits(ceilings);
        let mut steps = self.workflow.steps.iter();
        let items = steps.find_map(|step| match &step.work {
            StepWork::Map(map) => map.selection.max_items,
            StepWork::One | StepWork::Call(_) => None,
        });
        if let Some(items) = items
            && u64::try_from(items).unwrap_or(u64::MAX) > u64::from(limits.total)
        {
            let noun = if limits.total == 1 { "retry" } else { "retries" };
            let message = format!("{items} items share a pool of {} {noun}", limits.total);
            let help = "raise it to at least the number of items if each may fail once";
            self.warn(DiagnosticCode::PoolBelowItems, total, message, help);
        }
    }
}

/// Whether every failure that meets `later` meets `earlier` too.
fn covers(earlier: &Conditions, later: &Conditions) -> bool {
    fn all<T: PartialEq>(earlier: &[T], later: &[T]) -> bool {
        earlier.is_empty() || (!later.is_empty() && later.iter().all(|one| earlier.contains(one)))
    }
    let within = |range: &RangeInclusive<u16>| {
        earlier.statuses.iter().any(|other| other.start() <= range.start() && range.end() <= other.end())
    };
    let statuses =
        earlier.statuses.is_empty() || (!later.statuses.is_empty() && later.statuses.iter().all(within));
    let same = |one: &Option<Pattern>, other: &Option<Pattern>| one.is_none() || one == other;
    statuses
        && all(&earlier.exit_codes, &later.exit_codes)
        && all(&earlier.signals, &later.signals)
        && all(&earlier.classes, &later.classes)
        && same(&earlier.stderr, &later.stderr)
        && same(&earlier.output, &later.output)
}

/// Why no failure can meet the conditions; of this command, if one is given.
fn impossible(when: &Conditions, action: Option<&Action>) -> Option<&'static str> {
    let (exits, signals) = (!when.exit_codes.is_empty(), !when.signals.is_empty());
    let statuses = !when.statuses.is_empty();
    let throttled = |class: &ClassName| *class == ClassName::Class(FailureClass::Throttled);
    let is_throttled = !when.classes.is_empty() && when.classes.iter().all(throttled);
    let is_http = action.is_some_and(|action| matches!(action, Action::Http(_)));
    let is_process = action.is_some() && !is_http;
    let reasons = [
        (exits && when.exit_codes.iter().all(|code| *code == 0), "exit code 0 is a success"),
        (exits && signals, "a process ended by a signal has no exit code"),
        ((exits || signals) && statuses, "a process has no HTTP status and a request has no exit code"),
        (is_http && (exits || signals), "an HTTP request has no exit code and no signal"),
        (is_process && statuses, "only an HTTP request has a status"),
        (is_process && is_throttled, "only an HTTP request is throttled"),
    ];
    reasons.into_iter().find_map(|(applies, why)| applies.then_some(why))
}
