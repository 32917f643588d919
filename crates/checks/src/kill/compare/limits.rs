//! Delays, budgets and the pool: the sums a journal has to come to.

use std::collections::{BTreeMap, BTreeSet};

use super::case::Case;
use crate::kill::found::{Found, Kind};
use crate::kill::journal::{Event, Place};

#[derive(Default)]
struct Sums {
    /// Delays of a command, in milliseconds, and how many.
    spent: BTreeMap<Place, (u64, u64)>,
    /// Commands whose last attempt was cut off.
    cut: BTreeSet<Place>,
    charged: u64,
    of_item: BTreeMap<String, u64>,
}

pub(super) fn check(case: &Case<'_>, found: &mut Found) {
    let mut sums = Sums::default();
    for event in case.events {
        match event.kind.as_str() {
            "retry_scheduled" => {
                sums.delayed(case, event, found);
                sums.charge(case, event, found);
            }
            "attempt_started" => {
                sums.cut.remove(&event.place());
            }
            "attempt_failed" if event.text("cause") == "interrupted" => {
                sums.cut.insert(event.place());
            }
            "command_repeated" => sums.charge(case, event, found),
            "command_stopped" => {
                stopped(case, event, found);
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

impl Sums {
    fn delayed(&mut self, case: &Case<'_>, event: &Event, found: &mut Found) {
        let Some(drawn) = case.plan.commands.get(event.text("command")) else {
            return found.unlawful(format!("nobody knows this command: {}", event.told()));
        };
        let number = |name: &str| event.number(name).unwrap_or_default();
        let (retry, delay) = (number("retry"), number("delay_ms"));
        let at_once = case.plan.is_flow && self.cut.contains(&event.place());
        let (least, most) = if at_once { (0, 0) } else { drawn.policy.delay(retry) };
        found.claim(Kind::Unlawful, (least..=most).contains(&delay), || {
            format!("a delay from {least} to {most} ms was expected: {}", event.told())
        });
        let due = event.time("due_at").unwrap_or_default();
        let waits = due.saturating_sub(event.at);
        // What is shown is rounded to milliseconds.
        let exact = waits.abs_diff(delay.saturating_mul(1000)) <= 1000;
        found.claim(Kind::Unlawful, exact, || {
            format!("due {waits} µs after it was decided: {}", event.told())
        });
        let (spent, many) = self.spent.entry(event.place()).or_default();
        let added = spent.abs_diff(number("spent_before_ms")) <= *many;
        found.claim(Kind::Unlawful, added, || format!("{spent} ms were spent before: {}", event.told()));
        *spent = spent.saturating_add(delay);
        *many = many.saturating_add(1);
        let within = drawn.policy.budget.is_none_or(|budget| *spent <= budget);
        found.claim(Kind::Unlawful, within, || {
            format!("{spent} ms are more than the budget: {}", event.told())
        });
    }

    fn charge(&mut self, case: &Case<'_>, event: &Event, found: &mut Found) {
        let Some((total, share)) = case.plan.pool else {
            return;
        };
        // Where it says what was used before, that is what was charged so far.
        let said = event.inner("pool", "used");
        found.claim(Kind::Unlawful, said.is_none_or(|it| it == self.charged), || {
            format!("{} retries were charged before: {}", self.charged, event.told())
        });
        self.charged = self.charged.saturating_add(1);
        let item = event.text("correlation_id").to_owned();
        let own = self.of_item.entry(item).or_default();
        *own = own.saturating_add(1);
        found.claim(Kind::Unlawful, self.charged <= total && *own <= share, || {
            format!("the pool of {total}, {share} each, is exceeded: {}", event.told())
        });
    }
}

/// Whoever stops has a reason.
fn stopped(case: &Case<'_>, event: &Event, found: &mut Found) {
    let Some(drawn) = case.plan.commands.get(event.text("command")) else {
        return;
    };
    let number = |name: &str| event.number(name).unwrap_or_default();
    if drawn.rounds > 0 && event.number("retry").is_none() {
        // After a round of its handler: the first reason stands.
        return;
    }
    let holds = match event.text("reason") {
        "attempts" => event.attempt() > drawn.policy.retries,
        "retry_budget" => {
            let budget = drawn.policy.budget.unwrap_or(u64::MAX);
            let next = number("spent_before_ms").saturating_add(number("delay_ms"));
            // Both are rounded.
            next.saturating_add(2) > budget
        }
        "retry_budget_expired" => drawn.policy.budget.is_some(),
        "job_budget_exhausted" | "workflow_budget_exhausted" => case.plan.pool.is_some(),
        "permanent" => true,
        _ => false,
    };
    found.claim(Kind::Unlawful, holds, || format!("stopped without that reason: {}", event.told()));
}
