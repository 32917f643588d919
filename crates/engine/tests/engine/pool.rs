//! The job pool: every scheduled retry is charged one unit, and none is given back.

use proptest::collection::vec;
use proptest::prelude::*;
use undaunted_engine::event::{Event, ItemEvent, Record};
use undaunted_engine::id::StartId;
use undaunted_engine::input::Input;
use undaunted_engine::workflow::Operator;
use undaunted_policy::{FailureCause, PoolCeilings, Reason};

use crate::fixture::{EXIT_1, TestedJob, item_at, secs};

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
    let mut test = TestedJob::started_over(&map("retry_budget: 2"), 3);
    let first = test.fail(0, EXIT_1).scheduled().unwrap();
    assert_eq!((first.arithmetic.pool, first.arithmetic.share), (Some((0, 2)), Some((0, 2))));
    let second = test.fail(1, FailureCause::Interrupted).scheduled().unwrap();
    assert_eq!(second.arithmetic.pool, Some((1, 2)), "an interruption is charged too");
    test.fail(2, EXIT_1);
    let pool = test.job.pool.unwrap();
    assert_eq!((pool.consumed, pool.limits.total), (2, 2));
    test.at(1).start().succeed(0).succeed(1);
    assert_eq!(test.outcome(), ("partial", Some(Reason::JobBudgetExhausted), [2, 1, 0]));
    let error = test.report().error.unwrap();
    assert!(error.contains("job_budget_exhausted (2/2)"), "{error}");
}

#[test]
fn an_item_cannot_use_more_than_its_share() {
    let mut test = TestedJob::started_over(&map("retry_budget: 9\nretry_budget_per_workflow: 1"), 1);
    test.fail(0, EXIT_1).at(1).start().fail(0, EXIT_1);
    assert_eq!(test.outcome(), ("partial", Some(Reason::WorkflowBudgetExhausted), [0, 1, 0]));
    let error = test.report().error.unwrap();
    assert!(error.contains("workflow_budget_exhausted (1/1)"), "{error}");
}

#[test]
fn a_workflow_has_a_pool_only_if_it_or_the_operator_asks_for_one() {
    assert_eq!(TestedJob::over(&map(""), 1).job.pool, None);
    let operator = Operator { pool_for_all: true, ceilings: PoolCeilings::DEFAULT, ..Operator::default() };
    let test = TestedJob::with(&map(""), 7, &operator);
    assert_eq!(test.job.pool.unwrap().limits.total, 20);
    assert_eq!(test.replayed().pool.unwrap().limits.total, 20);
}

#[test]
fn an_extra_attempt_after_a_handler_is_charged_or_refused() {
    let handled = "[{shell: a, retry_config: {attempts: 0}, on_failure: {shell: mend, max_attempts: 5}}]";
    let text = map("retry_budget: 9\nretry_budget_per_workflow: 1").replace("[{shell: a}]", handled);
    let mut test = TestedJob::started_over(&text, 1);
    test.fail(0, EXIT_1).start();
    assert_eq!(test.succeed(0).lines()[1], "command_repeated 0/0 0.1");
    assert_eq!(test.job.pool.unwrap().consumed, 1);
    test.start().fail(0, EXIT_1).start();
    assert_eq!(test.succeed(0).lines()[1], "item_dead_lettered 0/0 0.2: attempts");
    assert_eq!(test.job.pool.unwrap().consumed, 1);
}

#[test]
fn charged_units_survive_a_crash_exactly() {
    let mut test = TestedJob::started_over(&map("retry_budget: 9"), 2);
    test.fail(0, EXIT_1).fail(1, EXIT_1).crash_and_resume();
    assert_eq!(test.job.pool.unwrap().consumed, 2);
    assert_eq!(test.active(1).charged, 1);
}

/// Every attempt fails until the job has ended.
fn fail_all(test: &mut TestedJob) {
    while !test.job.stage.has_ended() {
        test.start();
        let Some(&start) = test.job.starts.running.keys().next() else {
            test.advance();
            continue;
        };
        test.end_start(start, Some(EXIT_1));
    }
}

/// Attempts and charged units, counted from the journal.
fn counted(test: &TestedJob) -> (usize, usize) {
    let records = test.journal.iter();
    let records: Vec<Record> = records.map(|it| Record::decode(it).unwrap()).collect();
    let count = |is: fn(&Event) -> bool| records.iter().filter(|it| is(&it.event)).count();
    (
        count(|event| matches!(event, Event::Item(ItemEvent::AttemptStarted(_)))),
        count(|event| matches!(event, Event::Item(ItemEvent::RetryScheduled(_)))),
    )
}

#[test]
fn ten_items_that_always_fail_with_a_pool_of_seven_make_seventeen_attempts() {
    let mut test = TestedJob::over(&map("retry_budget: 7"), 10);
    fail_all(&mut test);
    assert_eq!(counted(&test), (17, 7));
    // The same if the process dies after any decision.
    for cut in test.commits.clone() {
        let mut other = test.clone();
        other.journal.truncate(cut);
        other.crash_and_resume();
        if other.job.steps[0].items.is_empty() {
            other.items(10);
        }
        fail_all(&mut other);
        assert_eq!(counted(&other), (17, 7), "cut after {cut} records");
        assert_eq!(other.outcome(), ("partial", Some(Reason::JobBudgetExhausted), [0, 10, 0]));
    }
}

#[test]
fn ten_items_that_always_fail_make_no_more_attempts_if_their_process_dies_repeatedly() {
    let mut test = TestedJob::over(&map("retry_budget: 7\nretry_budget_per_workflow: 5"), 10);
    let mut number = 0_u32;
    while !test.job.stage.has_ended() {
        test.start().crash_and_resume();
        let Some(&start) = test.job.starts.running.keys().next() else {
            test.advance();
            continue;
        };
        number += 1;
        // An interrupted attempt is charged like any other.
        let cause = if number.is_multiple_of(2) { FailureCause::Interrupted } else { EXIT_1 };
        test.end_start(start, Some(cause));
    }
    assert_eq!(counted(&test), (17, 7));
}

#[test]
fn a_top_up_is_an_event_that_allows_more_retries() {
    let mut test = TestedJob::started_over(&map("retry_budget: 2\nretry_budget_per_workflow: 5"), 2);
    test.fail(0, EXIT_1);
    assert_eq!(test.top_up(2).lines(), ["pool_topped_up by 2 to 4"]);
    test.crash_and_resume();
    let pool = test.job.pool.unwrap();
    assert_eq!((pool.consumed, pool.limits.total), (1, 4));
    fail_all(&mut test);
    assert_eq!(counted(&test), (6, 4));
}

#[test]
fn a_top_up_raises_the_share_of_an_item_to_the_configured_one() {
    let mut test = TestedJob::over(&map("retry_budget: 1\nretry_budget_per_workflow: 3"), 1);
    assert_eq!(test.job.pool.unwrap().limits.per_item, 1);
    test.top_up(1);
    assert_eq!(test.job.pool.unwrap().limits.per_item, 2);
    test.top_up(9);
    let limits = test.replayed().pool.unwrap().limits;
    assert_eq!((limits.total, limits.per_item), (11, 3));
    fail_all(&mut test);
    assert_eq!(counted(&test), (4, 3));
    assert_eq!(test.outcome(), ("partial", Some(Reason::WorkflowBudgetExhausted), [0, 1, 0]));
}

#[test]
fn a_top_up_is_bounded_by_the_maximum_that_was_stored_with_the_job() {
    let operator =
        Operator { ceilings: PoolCeilings { max_total: 9, ..PoolCeilings::DEFAULT }, ..Operator::default() };
    let mut test = TestedJob::with(&map("retry_budget: 7"), 7, &operator);
    assert_eq!(test.top_up(100).lines(), ["pool_topped_up by 2 to 9"]);
    assert_eq!(test.top_up(1).lines(), [""; 0], "nothing is added, and nothing taken away");
    assert_eq!(test.replayed().pool.unwrap().limits.total, 9);
}

#[test]
fn a_job_without_a_pool_is_not_topped_up() {
    let mut test = TestedJob::over(&map(""), 1);
    assert_eq!(test.top_up(1).lines(), [""; 0]);
    assert_eq!(test.job.pool, None);
}

#[test]
fn a_job_that_has_ended_is_topped_up_and_its_dead_letters_redriven() {
    let mut test = TestedJob::over(&map("retry_budget: 3\nretry_budget_per_workflow: 5"), 2);
    fail_all(&mut test);
    assert_eq!(counted(&test), (5, 3));
    assert_eq!(test.top_up(3).lines(), ["pool_topped_up by 3 to 6"]);
    assert!(test.job.stage.has_ended(), "that alone starts nothing");
    test.redrive([item_at(0), item_at(1)]).crash_and_resume();
    fail_all(&mut test);
    // The first attempt of a round is free; consumed units stay consumed.
    assert_eq!(counted(&test), (5 + 2 + 3, 6));
    assert_eq!(test.job.pool.unwrap().consumed, 6);
}

#[derive(Clone, Debug)]
enum PoolAction {
    Start,
    End { which: usize, cause: Option<FailureCause> },
    Pass,
    Crash,
    TopUp(u32),
    Redrive,
}

fn pool_action() -> impl Strategy<Value = PoolAction> {
    let cause = prop_oneof![
        1 => Just(None),
        6 => Just(Some(EXIT_1)),
        2 => Just(Some(FailureCause::Interrupted)),
    ];
    prop_oneof![
        6 => Just(PoolAction::Start),
        12 => (any::<usize>(), cause).prop_map(|(which, cause)| PoolAction::End { which, cause }),
        4 => Just(PoolAction::Pass),
        3 => Just(PoolAction::Crash),
        1 => (0_u32..60).prop_map(PoolAction::TopUp),
        1 => Just(PoolAction::Redrive),
    ]
}

fn act(test: &mut TestedJob, action: &PoolAction) {
    match *action {
        PoolAction::Start => {
            test.start();
        }
        PoolAction::End { which, cause } => {
            let running: Vec<StartId> = test.job.starts.running.keys().copied().collect();
            if let Some(&start) = running.get(which % running.len().max(1)) {
                test.end_start(start, cause);
            }
        }
        PoolAction::Pass => {
            test.pass(secs(30));
        }
        PoolAction::Crash => {
            test.crash_and_resume();
        }
        PoolAction::TopUp(retries) => {
            test.feed(&Input::TopUp { retries });
        }
        PoolAction::Redrive => {
            let items: Vec<undaunted_engine::id::ItemId> = test.job.dead.keys().copied().collect();
            test.redrive(items);
        }
    }
}

proptest! {
    #[test]
    fn no_order_of_items_kills_and_resumes_exceeds_a_pool_or_a_cap(
        total in 1_u32..12,
        share in 1_u32..6,
        rule in any::<bool>(),
        actions in vec(pool_action(), 0..120),
    ) {
        let mut text = map(&format!("retry_budget: {total}\nretry_budget_per_workflow: {share}"));
        if rule {
            let hold = "attempts: 9, backoff: fixed, rules: [{exit_code: 1, then: hold}]";
            text = text
                .replace("attempts: 9, backoff: fixed", hold)
                .replace("{shell: a}", "{shell: a, breaker: {name: payments, recovery_timeout: 20s}}");
        }
        let mut test = TestedJob::over(&text, 5);
        let mut granted = total;
        for action in &actions {
            act(&mut test, action);
            if let PoolAction::TopUp(retries) = action {
                granted = (granted + retries).min(50);
            }
            let mut charged = std::collections::BTreeMap::<u32, u32>::new();
            for bytes in &test.journal {
                let of = match Record::decode(bytes).unwrap().event {
                    Event::Item(ItemEvent::RetryScheduled(retrying)) => retrying.of,
                    Event::Item(ItemEvent::Held(held)) if held.arithmetic.is_some() => held.of,
                    _ => continue,
                };
                *charged.entry(of.index).or_default() += 1;
            }
            prop_assert!(charged.values().sum::<u32>() <= granted);
            prop_assert!(charged.values().all(|it| *it <= share.min(granted)), "{charged:?}");
            let pool = test.job.pool.unwrap();
            prop_assert_eq!((pool.consumed, pool.limits.total), (charged.values().sum(), granted));
        }
    }
}
