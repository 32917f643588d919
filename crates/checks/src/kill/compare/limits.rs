//! Delays, budgets and the pool: the sums that a journal has to keep.

use std::collections::{BTreeMap, BTreeSet};

use super::KillEvidence;
use crate::kill::findings::KillFindings;
use crate::kill::journal::{CommandKey, JournalEvent};

#[derive(Default)]
struct BudgetCheck {
    /// The sum of a command's delays in milliseconds, and their number.
    spent: BTreeMap<CommandKey, (u64, u64)>,
    /// Commands whose last attempt was interrupted.
    cut: BTreeSet<CommandKey>,
    charged: u64,
    of_item: BTreeMap<String, u64>,
}

pub(super) fn check(case: &KillEvidence<'_>, findings: &mut KillFindings) {
    let mut sums = BudgetCheck::default();
    for event in case.events {
        match event.kind.as_str() {
            "retry_scheduled" => {
                sums.delayed(case, event, findings);
                sums.charge(case, event, findings);
            }
            "attempt_started" => {
                sums.cut.remove(&event.key());
            }
            "attempt_failed" if event.text("cause") == "interrupted" => {
                sums.cut.insert(event.key());
            }
            "command_repeated" => sums.charge(case, event, findings),
            "command_stopped" => {
                stopped(case, event, findings);
                let of = event.text("correlation_id");
                let commands = &case.plan.commands;
                sums.spent.retain(|(item, command), _| {
                    let is_handler = commands.get(command).is_some_and(|it| it.is_handler);
                    item != of || !is_handler
                });
            }
            _ => {}
        }
    }
}

impl BudgetCheck {
    fn delayed(&mut self, case: &KillEvidence<'_>, event: &JournalEvent, findings: &mut KillFindings) {
        let Some(planned) = case.plan.commands.get(event.text("command")) else {
            return findings.unlawful(format_args!("a command that was not planned: {event}"));
        };
        let number = |name: &str| event.number(name).unwrap_or_default();
        let (retry, delay) = (number("retry"), number("delay_ms"));
        let at_once = case.plan.is_flow && self.cut.contains(&event.key());
        let (least, most) = if at_once { (0, 0) } else { planned.policy.delay(retry) };
        findings.unlawful_unless(
            (least..=most).contains(&delay),
            format_args!("a delay from {least} to {most} ms was expected: {event}"),
        );
        let due = event.time("due_at").unwrap_or_default();
        let waits = due.saturating_sub(event.at);
        // Shown delays are rounded to milliseconds.
        let exact = waits.abs_diff(delay.saturating_mul(1000)) <= 1000;
        findings.unlawful_unless(exact, format_args!("due {waits} µs after it was decided: {event}"));
        let (spent, many) = self.spent.entry(event.key()).or_default();
        let added = spent.abs_diff(number("spent_before_ms")) <= *many;
        findings.unlawful_unless(added, format_args!("{spent} ms were spent before: {event}"));
        *spent += delay;
        *many += 1;
        let within = planned.policy.budget.is_none_or(|budget| *spent <= budget);
        findings.unlawful_unless(within, format_args!("{spent} ms are more than the budget: {event}"));
    }

    fn charge(&mut self, case: &KillEvidence<'_>, event: &JournalEvent, findings: &mut KillFindings) {
        let Some((total, share)) = case.plan.pool else {
            return;
        };
        // If the event says how much was used before, that is what was charged so far.
        let used_before = event.inner("pool", "used");
        let charged = self.charged;
        let what = format_args!("{charged} retries were charged before: {event}");
        findings.unlawful_unless(used_before.is_none_or(|it| it == charged), what);
        self.charged += 1;
        let item = event.text("correlation_id").to_owned();
        let own = self.of_item.entry(item).or_default();
        *own += 1;
        findings.unlawful_unless(
            self.charged <= total && *own <= share,
            format_args!("the pool of {total}, {share} each, is exceeded: {event}"),
        );
    }
}

/// The reason of a stop holds.
fn stopped(case: &KillEvidence<'_>, event: &JournalEvent, findings: &mut KillFindings) {
    let Some(planned) = case.plan.commands.get(event.text("command")) else {
        return;
    };
    let number = |name: &str| event.number(name).unwrap_or_default();
    if planned.rounds > 0 && event.number("retry").is_none() {
        // After a round of its handler the first reason stands.
        return;
    }
    let holds = match event.text("reason") {
        "attempts" => event.attempt() > planned.policy.retries,
        "retry_budget" => {
            let budget = planned.policy.budget.unwrap_or(u64::MAX);
            let next = number("spent_before_ms").saturating_add(number("delay_ms"));
            // Both are rounded.
            next.saturating_add(2) > budget
        }
        "retry_budget_expired" => planned.policy.budget.is_some(),
        "job_budget_exhausted" | "workflow_budget_exhausted" => case.plan.pool.is_some(),
        "permanent" => true,
        _ => false,
    };
    findings.unlawful_unless(holds, format_args!("stopped without that reason: {event}"));
}
