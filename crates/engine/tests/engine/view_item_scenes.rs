//! The scenes of `views` that are about items: how they wait, how they end, and how they begin again.

use std::time::Duration;

use serde_json::json;
use undaunted_engine::breaker::BreakerFact;
use undaunted_engine::id::StepId;
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::workflow::Operator;
use undaunted_policy::FailureCause;

use crate::breakers::{NAME, map as breaker_map, opened};
use crate::completion::map as rule_map;
use crate::flows::{ONCE, done, fail, flow};
use crate::imports::resumed;
use crate::scene::Scene;
use crate::view_scenes::{LIST, MAP, Shot, left, owned};

/// A map with a completion rule whose items have all started.
fn begun(rule: &str, items: u32, operator: &Operator) -> Scene {
    let mut scene = Scene::with(&rule_map(rule), 7, operator);
    scene.items(items);
    let _ = scene.start();
    scene
}

pub(crate) fn rules() -> Vec<Shot> {
    let usual = Operator::default();
    let counting = Operator { late_results_count: true, ..Operator::default() };
    let open = begun("best_effort_min_dcs: 2\n  max_parallel: 2", 3, &usual);
    let short = "best_effort_min_dcs: 2\n  best_effort_deadline_seconds: 60\n  max_parallel: 2";
    let mut missed = begun(short, 3, &usual);
    let _ = missed.succeed(0);
    missed.at(60);
    let _ = missed.start();
    let _ = missed.tell(&Input::Woke);
    end_all(&mut missed);
    let mut met = begun("best_effort_min_dcs: 1\n  max_parallel: 2", 4, &usual);
    met.at(2);
    let _ = met.fail_saying(0, FailureCause::Exit(1), "no answer");
    let _ = met.start();
    let _ = met.succeed(1);
    end_all(&mut met);
    let leave = "best_effort_min_dcs: 1\n  on_complete: leave";
    let mut leaving = begun(leave, 3, &usual);
    let _ = leaving.succeed(0);
    let _ = leaving.start();
    leaving.at(2);
    let mut logged = leaving.clone();
    finish_late(&mut logged);
    let mut counted = begun(leave, 3, &counting);
    let _ = counted.succeed(0);
    let _ = counted.start();
    counted.at(2);
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

fn end_all(scene: &mut Scene) {
    while let Some(start) = scene.job.starts.running.keys().next().copied() {
        let step = scene.job.starts.running[&start].step;
        let ended = AttemptEnd {
            start,
            failure: (step == StepId(0)).then_some(FailureCause::Signal(15)),
            took: Duration::from_millis(1500),
            ..AttemptEnd::default()
        };
        let _ = scene.end(ended);
        let _ = scene.start();
    }
}

/// `a1` and `reduce` succeed, `a2` fails.
fn finish_late(scene: &mut Scene) {
    let _ = scene.succeed(1);
    let _ = scene.fail_saying(2, FailureCause::Exit(1), "no answer");
    end_all(scene);
}

pub(crate) fn held() -> Vec<Shot> {
    let mut open = opened(&breaker_map(3, ", max_hold: 2m", ""), 4);
    let _ = open.start();
    open.at(1);
    let _ = open.start();
    let mut half = open.clone();
    half.at(61);
    let generation = half.breaker(NAME).breaker.generation();
    let probed = BreakerFact::Probed { at: half.now, generation };
    half.others(NAME, Some("9q2m"), vec![probed]);
    half.at(62);
    let mut probing = open.clone();
    probing.at(61);
    let _ = probing.start();
    let rule = breaker_map(3, "", ", rules: [{exit_code: 3, then: hold}]");
    let mut by_rule = Scene::over(&rule, 2);
    let _ = by_rule.start();
    let _ = by_rule.fail_saying(0, FailureCause::Exit(3), "down for maintenance");
    let _ = by_rule.succeed(1);
    by_rule.at(5);
    let mut cancelled = open.clone();
    let _ = cancelled.tell(&Input::Cancel);
    vec![
        owned("held", "The breaker opened at 0 s for a minute.", open),
        owned("held_while_another_job_probes", "Job 9q2m probes.", half),
        owned("probing", "a3 probes: it has the most attempts left.", probing),
        owned("held_by_a_rule", "Exit status 3 holds; a1 has succeeded.", by_rule),
        left("held_and_cancelled", "Cancelled while all were held.", cancelled),
    ]
}

pub(crate) fn dead() -> Vec<Shot> {
    let rules = "retry_config: {attempts: 2, initial_delay: 10s, retry_budget: 15s, rules: [{exit_code: 3, then: dead_letter}, {exit_code: 4, then: skip}]}";
    let map = MAP.replace("max_parallel: 2", "max_parallel: 9");
    let map = map.replace("max_failures: 3", "max_failures: 9");
    let text = map.replace("shell: ask}", &format!("shell: ask, {rules}}}"));
    let mut ways = Scene::over(&text, 4);
    let _ = ways.start();
    let _ = ways.fail_saying(0, FailureCause::Exit(3), "no such user 17");
    let _ = ways.fail_saying(1, FailureCause::Exit(4), "nothing to do");
    let _ = ways.fail_saying(2, FailureCause::Exit(127), "ask: not found");
    let _ = ways.fail_saying(3, FailureCause::Exit(1), "no such user 18");
    ways.at(10);
    let _ = ways.start();
    let _ = ways.fail_saying(3, FailureCause::Exit(1), "no such user 18");
    let _ = ways.start();
    end_all(&mut ways);
    let unlimited = MAP.replace("max_failures: 3", "continue_on_failure: true");
    let pool = unlimited.replace("retry_budget: 9\n", "retry_budget: 1\n");
    let mut pool = Scene::over(&pool, 2);
    let _ = pool.start();
    let _ = pool.fail_saying(0, FailureCause::Status(503), "");
    let _ = pool.fail_saying(1, FailureCause::Status(503), "");
    let share = "retry_budget: 9\nretry_budget_per_workflow: 1\n";
    let mut share = Scene::over(&unlimited.replace("retry_budget: 9\n", share), 1);
    let _ = share.start();
    let _ = share.fail(0, FailureCause::Exit(1));
    share.at(10);
    let _ = share.start();
    let _ = share.fail(0, FailureCause::Exit(1));
    let _ = share.start();
    let _ = share.succeed(0);
    let mut circuit = opened(&breaker_map(3, ", when_open: fail", ""), 4);
    let _ = circuit.start();
    circuit.at(1);
    let _ = circuit.start();
    let timeout = MAP.replace("agent_timeout_secs: 100", "agent_timeout_secs: 12");
    let mut deadline = Scene::over(&timeout, 1);
    let _ = deadline.start();
    deadline.at(5);
    let _ = deadline.fail(0, FailureCause::Exit(1));
    let _ = deadline.start();
    let _ = deadline.succeed(0);
    vec![
        left("dead_letters", "By a rule, as permanent, by budget; a1 is skipped.", ways),
        owned("pool_exhausted", "The only retry of the pool went to a0.", pool),
        left("share_exhausted", "An item may have one retry of the pool.", share),
        left("circuit_open", "Starts fail while the breaker is open.", circuit),
        left("item_deadline", "A retry would be due after the item's 12 s.", deadline),
    ]
}

pub(crate) fn handled() -> Vec<Shot> {
    let text = |handler: &str| {
        format!(
            "- {{id: copy, shell: copy, retry_config: {{attempts: 1, initial_delay: 5s}}, on_failure: {{id: mend, shell: mend{handler}}}}}\n"
        )
    };
    let stopped = |handler: &str| {
        let mut scene = Scene::of(&text(handler));
        let _ = scene.start();
        let _ = scene.fail_saying(0, FailureCause::Exit(1), "disk full");
        scene.at(5);
        let _ = scene.start();
        let _ = scene.fail_saying(0, FailureCause::Exit(1), "disk full");
        let _ = scene.start();
        scene.at(7);
        scene
    };
    let running = stopped("");
    let mut recovered = stopped("");
    let _ = recovered.succeed(0);
    let mut repeated = stopped(", max_attempts: 1");
    let _ = repeated.succeed(0);
    let _ = repeated.start();
    let mut repeating = repeated.clone();
    repeating.at(9);
    let _ = repeated.succeed(0);
    let mut failed = stopped("");
    let _ = failed.fail_saying(0, FailureCause::Exit(2), "mend is broken");
    vec![
        owned("handler_running", "on_failure runs after the retries.", running),
        left("handler_recovered", "on_failure succeeded; copy did not.", recovered),
        owned("handler_repeating", "on_failure succeeded, copy is tried once more.", repeating),
        left("handler_repeated", "The same; and copy has succeeded.", repeated),
        left("handler_failed", "copy and its on_failure failed.", failed),
    ]
}

pub(crate) fn flows() -> Vec<Shot> {
    let steps = [
        ("a", "x: {role: output}", ONCE),
        ("b", "x: {role: required}, y: {role: output}", ONCE),
        ("c", "y: {role: required}", ONCE),
    ];
    let mut completed = flow("b", "", &steps);
    let _ = completed.start();
    let _ = done(&mut completed, StepId(0).item(0), &json!({"x": 1}));
    let _ = completed.start();
    let running = completed.clone();
    let _ = done(&mut completed, StepId(1).item(0), &json!({"y": 2}));
    let mut unreachable = flow("c", "", &steps);
    let _ = unreachable.start();
    let _ = fail(&mut unreachable, StepId(0).item(0), FailureCause::Refused);
    let when = ", work_config: {max_retries: 0}, predicate: {language: cel, script: 'x > 1'}";
    let mut skipped = flow("b", "", &[("a", "x: {role: output}", ONCE), ("b", "x: {role: required}", when)]);
    let _ = skipped.start();
    let _ = done(&mut skipped, StepId(0).item(0), &json!({"x": 1}));
    vec![
        owned("flow_running", "a is done, b runs, c leads to no goal.", running),
        left("flow_completed", "a and b are done; c leads to no goal.", completed),
        left("flow_unreachable", "a failed, so b and c can not begin.", unreachable),
        left("flow_skipped", "The condition of b did not hold.", skipped),
    ]
}

pub(crate) fn again() -> Vec<Shot> {
    let mut partial = Scene::over(MAP, 2);
    let _ = partial.start();
    let _ = partial.succeed(0);
    let _ = partial.fail_saying(1, FailureCause::Exit(127), "ask: not found");
    let _ = partial.start();
    let _ = partial.succeed(0);
    let redrive = |scene: &mut Scene| {
        scene.at(40);
        let _ = scene.tell(&Input::Redrive { items: vec![StepId(0).item(1)], reduce: true });
    };
    let mut redriven = partial.clone();
    redrive(&mut redriven);
    let mut running = redriven.clone();
    let _ = running.start();
    running.at(45);
    let mut done = running.clone();
    let _ = done.succeed(1);
    let _ = done.start();
    let _ = done.succeed(0);
    let mut dropped = partial.clone();
    dropped.at(50);
    let _ = dropped.tell(&Input::Drop { items: vec![StepId(0).item(1)] });
    let mut list = Scene::of(LIST);
    let _ = list.start();
    let _ = list.fail_saying(0, FailureCause::Exit(1), "no route to host");
    list.at(60);
    let _ = list.tell(&Input::Redrive { items: vec![StepId(0).item(0)], reduce: false });
    let _ = list.start();
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
