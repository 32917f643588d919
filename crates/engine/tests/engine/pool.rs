//! The job pool: one unit for every retry that is scheduled, and none given back.

use undaunted_engine::workflow::Operator;
use undaunted_policy::{Cause, Ceilings, Reason};

use crate::scene::Scene;
use crate::spoken::said;

fn map(pool: &str) -> String {
    format!(
        "
{pool}
mode: mapreduce
map:
  input: a.json
  error_policy: {{retry_config: {{attempts: 9, backoff: fixed}}}}
  agent_template: [{{shell: a}}]
"
    )
}

#[test]
fn each_scheduled_retry_is_charged_until_the_pool_is_used_up() {
    let mut scene = Scene::over(&map("retry_budget: 2"), 3);
    let _ = scene.start();
    let first = super::retries::scheduled(&scene.fail(0, Cause::Exit(1))).unwrap();
    assert_eq!(
        (first.sum.pool, first.sum.share),
        (Some((0, 2)), Some((0, 2)))
    );
    let second = super::retries::scheduled(&scene.fail(1, Cause::Interrupted)).unwrap();
    assert_eq!(
        second.sum.pool,
        Some((1, 2)),
        "an interruption is charged too"
    );
    let _ = scene.fail(2, Cause::Exit(1));
    let pool = scene.job.pool.unwrap();
    assert_eq!((pool.consumed, pool.limits.total), (2, 2));
    scene.at(1);
    let _ = scene.start();
    let _ = scene.succeed(0);
    let _ = scene.succeed(1);
    assert_eq!(
        scene.came_to(),
        ("partial", Some(Reason::JobBudgetExhausted), [2, 1, 0])
    );
    let error = scene.report().error.unwrap();
    assert!(error.contains("job_budget_exhausted (2/2)"), "{error}");
}

#[test]
fn an_item_has_its_share_and_no_more() {
    let mut scene = Scene::over(&map("retry_budget: 9\nretry_budget_per_workflow: 1"), 1);
    let _ = scene.start();
    let _ = scene.fail(0, Cause::Exit(1));
    scene.at(1);
    let _ = scene.start();
    let _ = scene.fail(0, Cause::Exit(1));
    assert_eq!(
        scene.came_to(),
        ("partial", Some(Reason::WorkflowBudgetExhausted), [0, 1, 0])
    );
    let error = scene.report().error.unwrap();
    assert!(error.contains("workflow_budget_exhausted (1/1)"), "{error}");
}

#[test]
fn a_workflow_that_asks_for_no_pool_has_none_unless_the_operator_says_so() {
    assert_eq!(Scene::over(&map(""), 1).job.pool, None);
    let operator = Operator {
        pool_for_all: true,
        ceilings: Ceilings::DEFAULT,
        ..Operator::default()
    };
    let scene = Scene::with(&map(""), 7, &operator);
    assert_eq!(scene.job.pool.unwrap().limits.total, 20);
    assert_eq!(scene.refolded().pool.unwrap().limits.total, 20);
}

#[test]
fn one_attempt_more_after_a_handler_is_charged_and_refused_when_nothing_is_left() {
    let handled =
        "[{shell: a, retry_config: {attempts: 0}, on_failure: {shell: mend, max_attempts: 5}}]";
    let text =
        map("retry_budget: 9\nretry_budget_per_workflow: 1").replace("[{shell: a}]", handled);
    let mut scene = Scene::over(&text, 1);
    let _ = scene.start();
    let _ = scene.fail(0, Cause::Exit(1));
    let _ = scene.start();
    assert_eq!(said(&scene.succeed(0))[1], "command_repeated 0/0 0.1");
    assert_eq!(scene.job.pool.unwrap().consumed, 1);
    let _ = scene.start();
    let _ = scene.fail(0, Cause::Exit(1));
    let _ = scene.start();
    assert_eq!(
        said(&scene.succeed(0))[1],
        "item_dead_lettered 0/0 0.2: attempts"
    );
    assert_eq!(scene.job.pool.unwrap().consumed, 1);
}

#[test]
fn what_was_charged_is_restored_exactly() {
    let mut scene = Scene::over(&map("retry_budget: 9"), 2);
    let _ = scene.start();
    let _ = scene.fail(0, Cause::Exit(1));
    let _ = scene.fail(1, Cause::Exit(1));
    let _ = scene.crash_and_resume();
    assert_eq!(scene.job.pool.unwrap().consumed, 2);
    assert_eq!(scene.active(1).charged, 1);
}
