//! The job pool: one unit for every retry that is scheduled, and none given back.

use proptest::collection::vec;
use proptest::prelude::*;
use undaunted_engine::event::{Event, ItemEvent, Record};
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::workflow::Operator;
use undaunted_policy::{Ceilings, FailureCause, Reason};

use crate::scene::{Scene, secs};
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
    let first = super::retries::scheduled(&scene.fail(0, FailureCause::Exit(1))).unwrap();
    assert_eq!((first.sum.pool, first.sum.share), (Some((0, 2)), Some((0, 2))));
    let second = super::retries::scheduled(&scene.fail(1, FailureCause::Interrupted)).unwrap();
    assert_eq!(second.sum.pool, Some((1, 2)), "an interruption is charged too");
    let _ = scene.fail(2, FailureCause::Exit(1));
    let pool = scene.job.pool.unwrap();
    assert_eq!((pool.consumed, pool.limits.total), (2, 2));
    scene.at(1);
    let _ = scene.start();
    let _ = scene.succeed(0);
    let _ = scene.succeed(1);
    assert_eq!(scene.came_to(), ("partial", Some(Reason::JobBudgetExhausted), [2, 1, 0]));
    let error = scene.report().error.unwrap();
    assert!(error.contains("job_budget_exhausted (2/2)"), "{error}");
}

#[test]
fn an_item_has_its_share_and_no_more() {
    let mut scene = Scene::over(&map("retry_budget: 9\nretry_budget_per_workflow: 1"), 1);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    scene.at(1);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    assert_eq!(scene.came_to(), ("partial", Some(Reason::WorkflowBudgetExhausted), [0, 1, 0]));
    let error = scene.report().error.unwrap();
    assert!(error.contains("workflow_budget_exhausted (1/1)"), "{error}");
}

#[test]
fn a_workflow_that_asks_for_no_pool_has_none_unless_the_operator_says_so() {
    assert_eq!(Scene::over(&map(""), 1).job.pool, None);
    let operator = Operator { pool_for_all: true, ceilings: Ceilings::DEFAULT, ..Operator::default() };
    let scene = Scene::with(&map(""), 7, &operator);
    assert_eq!(scene.job.pool.unwrap().limits.total, 20);
    assert_eq!(scene.refolded().pool.unwrap().limits.total, 20);
}

#[test]
fn one_attempt_more_after_a_handler_is_charged_and_refused_when_nothing_is_left() {
    let handled = "[{shell: a, retry_config: {attempts: 0}, on_failure: {shell: mend, max_attempts: 5}}]";
    let text = map("retry_budget: 9\nretry_budget_per_workflow: 1").replace("[{shell: a}]", handled);
    let mut scene = Scene::over(&text, 1);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.start();
    assert_eq!(said(&scene.succeed(0))[1], "command_repeated 0/0 0.1");
    assert_eq!(scene.job.pool.unwrap().consumed, 1);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.start();
    assert_eq!(said(&scene.succeed(0))[1], "item_dead_lettered 0/0 0.2: attempts");
    assert_eq!(scene.job.pool.unwrap().consumed, 1);
}

#[test]
fn what_was_charged_is_restored_exactly() {
    let mut scene = Scene::over(&map("retry_budget: 9"), 2);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.fail(1, FailureCause::Exit(1));
    let _ = scene.crash_and_resume();
    assert_eq!(scene.job.pool.unwrap().consumed, 2);
    assert_eq!(scene.active(1).charged, 1);
}

/// Everything fails until the job has ended.
fn fail_all(scene: &mut Scene) {
    while !scene.job.stage.has_ended() {
        let _ = scene.start();
        let Some(&start) = scene.job.starts.running.keys().next() else {
            scene.now = scene.next_wake().unwrap();
            continue;
        };
        let _ =
            scene.end(AttemptEnd { start, failure: Some(FailureCause::Exit(1)), ..AttemptEnd::default() });
    }
}

/// Attempts in the journal, and units that were charged; counted without the engine's help.
fn counted(scene: &Scene) -> (usize, usize) {
    let records = scene.journal.iter();
    let records: Vec<Record> = records.map(|it| Record::decode(it).unwrap()).collect();
    let count = |is: fn(&Event) -> bool| records.iter().filter(|it| is(&it.event)).count();
    (
        count(|event| matches!(event, Event::Item(ItemEvent::AttemptStarted(_)))),
        count(|event| matches!(event, Event::Item(ItemEvent::RetryScheduled(_)))),
    )
}

#[test]
fn ten_items_that_always_fail_with_a_pool_of_seven_make_seventeen_attempts() {
    let mut scene = Scene::over(&map("retry_budget: 7"), 10);
    fail_all(&mut scene);
    assert_eq!(counted(&scene), (17, 7));
    // The same if whoever runs it dies after any decision.
    for cut in scene.written.clone() {
        let mut other = scene.clone();
        other.journal.truncate(cut);
        let _ = other.crash_and_resume();
        if other.job.steps[0].items.is_empty() {
            other.items(10);
        }
        fail_all(&mut other);
        assert_eq!(counted(&other), (17, 7), "cut after {cut} records");
        assert_eq!(other.came_to(), ("partial", Some(Reason::JobBudgetExhausted), [0, 10, 0]));
    }
}

#[test]
fn ten_items_that_always_fail_and_are_killed_all_the_time_make_no_more_attempts() {
    let mut scene = Scene::over(&map("retry_budget: 7\nretry_budget_per_workflow: 5"), 10);
    let mut number = 0_u32;
    while !scene.job.stage.has_ended() {
        let _ = scene.start();
        let _ = scene.crash_and_resume();
        let Some(&start) = scene.job.starts.running.keys().next() else {
            scene.now = scene.next_wake().unwrap();
            continue;
        };
        number += 1;
        // What died with its process is charged like any other.
        let cause = if number.is_multiple_of(2) { FailureCause::Interrupted } else { FailureCause::Exit(1) };
        let _ = scene.end(AttemptEnd { start, failure: Some(cause), ..AttemptEnd::default() });
    }
    assert_eq!(counted(&scene), (17, 7));
}

#[test]
fn a_top_up_is_an_event_that_lets_more_retries_be_made() {
    let mut scene = Scene::over(&map("retry_budget: 2\nretry_budget_per_workflow: 5"), 2);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    assert_eq!(scene.hear(&Input::TopUp { retries: 2 }), ["pool_topped_up by 2 to 4"]);
    let _ = scene.crash_and_resume();
    let pool = scene.job.pool.unwrap();
    assert_eq!((pool.consumed, pool.limits.total), (1, 4));
    fail_all(&mut scene);
    assert_eq!(counted(&scene), (6, 4));
}

#[test]
fn a_top_up_raises_the_share_of_an_item_to_what_was_asked_for() {
    let mut scene = Scene::over(&map("retry_budget: 1\nretry_budget_per_workflow: 3"), 1);
    assert_eq!(scene.job.pool.unwrap().limits.per_item, 1);
    let _ = scene.tell(&Input::TopUp { retries: 1 });
    assert_eq!(scene.job.pool.unwrap().limits.per_item, 2);
    let _ = scene.tell(&Input::TopUp { retries: 9 });
    let limits = scene.refolded().pool.unwrap().limits;
    assert_eq!((limits.total, limits.per_item), (11, 3));
    fail_all(&mut scene);
    assert_eq!(counted(&scene), (4, 3));
    assert_eq!(scene.came_to(), ("partial", Some(Reason::WorkflowBudgetExhausted), [0, 1, 0]));
}

#[test]
fn a_top_up_is_bounded_by_the_maximum_that_was_stored_with_the_job() {
    let operator =
        Operator { ceilings: Ceilings { max_total: 9, ..Ceilings::DEFAULT }, ..Operator::default() };
    let mut scene = Scene::with(&map("retry_budget: 7"), 7, &operator);
    assert_eq!(scene.hear(&Input::TopUp { retries: 100 }), ["pool_topped_up by 2 to 9"]);
    assert_eq!(scene.hear(&Input::TopUp { retries: 1 }), [""; 0], "nothing is added, and nothing taken away");
    assert_eq!(scene.refolded().pool.unwrap().limits.total, 9);
}

#[test]
fn a_job_without_a_pool_is_not_topped_up() {
    let mut scene = Scene::over(&map(""), 1);
    assert_eq!(scene.hear(&Input::TopUp { retries: 1 }), [""; 0]);
    assert_eq!(scene.job.pool, None);
}

#[test]
fn a_job_that_has_ended_is_topped_up_and_its_dead_letters_redriven() {
    let mut scene = Scene::over(&map("retry_budget: 3\nretry_budget_per_workflow: 5"), 2);
    fail_all(&mut scene);
    assert_eq!(counted(&scene), (5, 3));
    assert_eq!(scene.hear(&Input::TopUp { retries: 3 }), ["pool_topped_up by 3 to 6"]);
    assert!(scene.job.stage.has_ended(), "that alone starts nothing");
    let _ = scene.tell(&Input::Redrive { items: vec![StepId(0).item(0), StepId(0).item(1)], reduce: false });
    let _ = scene.crash_and_resume();
    fail_all(&mut scene);
    // A round's first attempts are free; what was consumed before stays so.
    assert_eq!(counted(&scene), (5 + 2 + 3, 6));
    assert_eq!(scene.job.pool.unwrap().consumed, 6);
}

/// Something that happens to a job with a pool.
#[derive(Clone, Debug)]
enum Happening {
    Start,
    End { which: usize, cause: Option<FailureCause> },
    Pass,
    Crash,
    TopUp(u32),
    Redrive,
}

fn happening() -> impl Strategy<Value = Happening> {
    let cause = prop_oneof![
        1 => Just(None),
        6 => Just(Some(FailureCause::Exit(1))),
        2 => Just(Some(FailureCause::Interrupted)),
    ];
    prop_oneof![
        6 => Just(Happening::Start),
        12 => (any::<usize>(), cause).prop_map(|(which, cause)| Happening::End { which, cause }),
        4 => Just(Happening::Pass),
        3 => Just(Happening::Crash),
        1 => (0_u32..60).prop_map(Happening::TopUp),
        1 => Just(Happening::Redrive),
    ]
}

fn happen(scene: &mut Scene, happening: &Happening) {
    match *happening {
        Happening::Start => {
            let _ = scene.start();
        }
        Happening::End { which, cause } => {
            let running: Vec<StartId> = scene.job.starts.running.keys().copied().collect();
            if let Some(&start) = running.get(which % running.len().max(1)) {
                let _ = scene.end(AttemptEnd { start, failure: cause, ..AttemptEnd::default() });
            }
        }
        Happening::Pass => {
            scene.pass(secs(30));
        }
        Happening::Crash => {
            let _ = scene.crash_and_resume();
        }
        Happening::TopUp(retries) => {
            let _ = scene.tell(&Input::TopUp { retries });
        }
        Happening::Redrive => {
            let items = scene.job.dead.keys().copied().collect();
            let _ = scene.tell(&Input::Redrive { items, reduce: false });
        }
    }
}

proptest! {
    #[test]
    fn no_order_of_items_kills_and_resumes_exceeds_a_pool_or_a_cap(
        total in 1_u32..12,
        share in 1_u32..6,
        rule in any::<bool>(),
        happenings in vec(happening(), 0..120),
    ) {
        let mut text = map(&format!("retry_budget: {total}\nretry_budget_per_workflow: {share}"));
        if rule {
            let hold = "attempts: 9, backoff: fixed, rules: [{exit_code: 1, then: hold}]";
            text = text
                .replace("attempts: 9, backoff: fixed", hold)
                .replace("{shell: a}", "{shell: a, breaker: {name: payments, recovery_timeout: 20s}}");
        }
        let mut scene = Scene::over(&text, 5);
        let mut granted = total;
        for happening in &happenings {
            happen(&mut scene, happening);
            if let Happening::TopUp(retries) = happening {
                granted = (granted + retries).min(50);
            }
            let mut charged = std::collections::BTreeMap::<u32, u32>::new();
            for bytes in &scene.journal {
                let of = match Record::decode(bytes).unwrap().event {
                    Event::Item(ItemEvent::RetryScheduled(retrying)) => retrying.of,
                    Event::Item(ItemEvent::Held(held)) if held.sum.is_some() => held.of,
                    _ => continue,
                };
                *charged.entry(of.index).or_default() += 1;
            }
            prop_assert!(charged.values().sum::<u32>() <= granted);
            prop_assert!(charged.values().all(|it| *it <= share.min(granted)), "{charged:?}");
            let pool = scene.job.pool.unwrap();
            prop_assert_eq!((pool.consumed, pool.limits.total), (charged.values().sum(), granted));
        }
    }
}
