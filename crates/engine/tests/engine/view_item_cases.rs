//! The cases of `views` about items: held, late, dead, handled, redriven.

use std::time::Duration;

use serde_json::json;
use undaunted_engine::breaker::BreakerFact;
use undaunted_engine::id::StepId;
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::workflow::Operator;
use undaunted_policy::FailureCause;

use crate::fixture::{
    BREAKER, EXIT_1, ONCE, TERM, TestedJob, breaker_map, completion_map, flow, item_at, opened,
};
use crate::imports::resumed;
use crate::view_cases::{LIST, MAP, ViewCase, left, owned};

/// A map with a completion rule whose items have all started.
fn begun(rule: &str, items: u32, operator: &Operator) -> TestedJob {
    let mut test = TestedJob::with(&completion_map(rule), 7, operator);
    test.items(items).start();
    test
}

pub(crate) fn rules() -> Vec<ViewCase> {
    let usual = Operator::default();
    let counting = Operator { late_results_count: true, ..Operator::default() };
    let open = begun("best_effort_min_dcs: 2\n  max_parallel: 2", 3, &usual);
    let short = "best_effort_min_dcs: 2\n  best_effort_deadline_seconds: 60\n  max_parallel: 2";
    let mut missed = begun(short, 3, &usual);
    missed.succeed(0).at(60).start().wake();
    end_all(&mut missed);
    let mut met = begun("best_effort_min_dcs: 1\n  max_parallel: 2", 4, &usual);
    met.at(2).fail_with(0, EXIT_1, "no answer").start().succeed(1);
    end_all(&mut met);
    let leave = "best_effort_min_dcs: 1\n  on_complete: leave";
    let mut leaving = begun(leave, 3, &usual);
    leaving.succeed(0).start().at(2);
    let mut logged = leaving.clone();
    finish_late(&mut logged);
    let mut counted = begun(leave, 3, &counting);
    counted.succeed(0).start().at(2);
    finish_late(&mut counted);
    vec![
        owned("rule_open", "Two of three items are enough, none has reported.", open),
        left("rule_missed", "One of two was there when 60 s were over.", missed),
        left("rule_met", "One was enough: a0 had failed, a1 succeeded.", met),
        owned("rule_leaves", "a1 and a2 run on beside reduce.", leaving),
        left("late_logged", "a1 succeeded late and a2 failed late.", logged),
        left("late_counted", "The same, and both count.", counted),
    ]
}

fn end_all(test: &mut TestedJob) {
    while let Some(start) = test.job.starts.running.keys().next().copied() {
        let step = test.job.starts.running[&start].step;
        let ended = AttemptEnd {
            start,
            failure: (step == StepId(0)).then_some(TERM),
            took: Duration::from_millis(1500),
            ..AttemptEnd::default()
        };
        test.end(ended).start();
    }
}

/// `a1` and `reduce` succeed, `a2` fails.
fn finish_late(test: &mut TestedJob) {
    test.succeed(1).fail_with(2, EXIT_1, "no answer");
    end_all(test);
}

pub(crate) fn held() -> Vec<ViewCase> {
    let mut open = opened(&breaker_map(3, ", max_hold: 2m", ""), 4);
    open.start().at(1).start();
    let mut half = open.clone();
    half.at(61);
    let generation = half.breaker(BREAKER).breaker.generation();
    let probed = BreakerFact::Probed { at: half.now, generation };
    half.append_facts(BREAKER, Some("9q2m"), vec![probed]).at(62);
    let mut probing = open.clone();
    probing.at(61).start();
    let rule = breaker_map(3, "", ", rules: [{exit_code: 3, then: hold}]");
    let mut by_rule = TestedJob::started_over(&rule, 2);
    by_rule.fail_with(0, FailureCause::Exit(3), "down for maintenance").succeed(1).at(5);
    let mut cancelled = open.clone();
    cancelled.cancel();
    vec![
        owned("held", "The breaker opened at 0 s for a minute.", open),
        owned("held_while_another_job_probes", "Job 9q2m probes.", half),
        owned("probing", "a3 probes: it has the most attempts left.", probing),
        owned("held_by_a_rule", "Exit status 3 holds; a1 has succeeded.", by_rule),
        left("held_and_cancelled", "Cancelled while all were held.", cancelled),
    ]
}

pub(crate) fn dead() -> Vec<ViewCase> {
    let rules = "retry_config: {attempts: 2, initial_delay: 10s, retry_budget: 15s, rules: [{exit_code: 3, then: dead_letter}, {exit_code: 4, then: skip}]}";
    let map = MAP.replace("max_parallel: 2", "max_parallel: 9");
    let map = map.replace("max_failures: 3", "max_failures: 9");
    let text = map.replace("shell: ask}", &format!("shell: ask, {rules}}}"));
    let mut ways = TestedJob::started_over(&text, 4);
    ways.fail_with(0, FailureCause::Exit(3), "no such user 17");
    ways.fail_with(1, FailureCause::Exit(4), "nothing to do");
    ways.fail_with(2, FailureCause::Exit(127), "ask: not found");
    ways.fail_with(3, EXIT_1, "no such user 18").at(10).start();
    ways.fail_with(3, EXIT_1, "no such user 18").start();
    end_all(&mut ways);
    let unlimited = MAP.replace("max_failures: 3", "continue_on_failure: true");
    let pool = unlimited.replace("retry_budget: 9\n", "retry_budget: 1\n");
    let mut pool = TestedJob::started_over(&pool, 2);
    pool.fail_with(0, FailureCause::Status(503), "").fail_with(1, FailureCause::Status(503), "");
    let share = "retry_budget: 9\nretry_budget_per_workflow: 1\n";
    let mut share = TestedJob::started_over(&unlimited.replace("retry_budget: 9\n", share), 1);
    share.fail(0, EXIT_1).at(10).start().fail(0, EXIT_1).start().succeed(0);
    let mut circuit = opened(&breaker_map(3, ", when_open: fail", ""), 4);
    circuit.start().at(1).start();
    let timeout = MAP.replace("agent_timeout_secs: 100", "agent_timeout_secs: 12");
    let mut deadline = TestedJob::started_over(&timeout, 1);
    deadline.at(5).fail(0, EXIT_1).start().succeed(0);
    vec![
        left("dead_letters", "By a rule, as permanent, by budget; a1 is skipped.", ways),
        owned("pool_exhausted", "The only retry of the pool went to a0.", pool),
        left("share_exhausted", "An item may have one retry of the pool.", share),
        left("circuit_open", "Starts fail while the breaker is open.", circuit),
        left("item_deadline", "A retry would be due after the item's 12 s.", deadline),
    ]
}

pub(crate) fn handled() -> Vec<ViewCase> {
    let text = |handler: &str| {
        format!(
            "- {{id: copy, shell: copy, retry_config: {{attempts: 1, initial_delay: 5s}}, on_failure: {{id: mend, shell: mend{handler}}}}}\n"
        )
    };
    let stopped = |handler: &str| {
        let mut test = TestedJob::started(&text(handler));
        test.fail_with(0, EXIT_1, "disk full").at(5).start();
        test.fail_with(0, EXIT_1, "disk full").start().at(7);
        test
    };
    let running = stopped("");
    let mut recovered = stopped("");
    recovered.succeed(0);
    let mut repeated = stopped(", max_attempts: 1");
    repeated.succeed(0).start();
    let mut repeating = repeated.clone();
    repeating.at(9);
    repeated.succeed(0);
    let mut failed = stopped("");
    failed.fail_with(0, FailureCause::Exit(2), "mend is broken");
    vec![
        owned("handler_running", "on_failure runs after the retries.", running),
        left("handler_recovered", "on_failure succeeded; copy did not.", recovered),
        owned("handler_repeating", "on_failure succeeded, copy is tried once more.", repeating),
        left("handler_repeated", "The same; and copy has succeeded.", repeated),
        left("handler_failed", "copy and its on_failure failed.", failed),
    ]
}

pub(crate) fn flows() -> Vec<ViewCase> {
    let steps = [
        ("a", "x: {role: output}", ONCE),
        ("b", "x: {role: required}, y: {role: output}", ONCE),
        ("c", "y: {role: required}", ONCE),
    ];
    let mut completed = flow("b", "", &steps);
    completed.start().succeed_item(item_at(0), &json!({"x": 1})).start();
    let running = completed.clone();
    completed.succeed_item(StepId(1).item(0), &json!({"y": 2}));
    let mut unreachable = flow("c", "", &steps);
    unreachable.start().fail_item(item_at(0), FailureCause::Refused);
    let when = ", work_config: {max_retries: 0}, predicate: {language: cel, script: 'x > 1'}";
    let mut skipped = flow("b", "", &[("a", "x: {role: output}", ONCE), ("b", "x: {role: required}", when)]);
    skipped.start().succeed_item(item_at(0), &json!({"x": 1}));
    vec![
        owned("flow_running", "a is done, b runs, c leads to no goal.", running),
        left("flow_completed", "a and b are done; c leads to no goal.", completed),
        left("flow_unreachable", "a failed, so b and c can not begin.", unreachable),
        left("flow_skipped", "The condition of b did not hold.", skipped),
    ]
}

pub(crate) fn again() -> Vec<ViewCase> {
    let mut partial = TestedJob::started_over(MAP, 2);
    partial.succeed(0).fail_with(1, FailureCause::Exit(127), "ask: not found").start().succeed(0);
    let redrive = |test: &mut TestedJob| {
        test.at(40).redrive_with_reduce([item_at(1)]);
    };
    let mut redriven = partial.clone();
    redrive(&mut redriven);
    let mut running = redriven.clone();
    running.start().at(45);
    let mut done = running.clone();
    done.succeed(1).start().succeed(0);
    let mut dropped = partial.clone();
    dropped.at(50).drop_items([item_at(1)]);
    let mut list = TestedJob::started(LIST);
    list.fail_with(0, EXIT_1, "no route to host").at(60).redrive([item_at(0)]).start();
    let imported = resumed(
        LIST,
        &json!({ "load": {
            "attempt_count": 1,
            "retry_history": [{ "attempt_number": 1, "success": false, "error": "x" }],
        } }),
    );
    vec![
        left("partial", "One of two items is a dead letter.", partial),
        owned("redriven", "The dead letter was redriven with reduce.", redriven),
        owned("redriven_running", "It runs again.", running),
        left("redriven_completed", "It has succeeded, and reduce again.", done),
        left("dropped", "The dead letter was dropped at 50 s.", dropped),
        owned("redriven_list", "The first command of three runs again.", list),
        owned("imported", "One attempt was made before the import.", imported),
    ]
}
