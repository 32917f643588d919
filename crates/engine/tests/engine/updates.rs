//! Changed limits of a job that has begun: pools, completion rules and deadlines.

use undaunted_engine::event::{Event, JobEvent};
use undaunted_engine::input::Input;
use undaunted_engine::update::{WorkflowUpdate, compare};
use undaunted_policy::PoolLimits;

use crate::fixture::{EXIT_1, TestedJob, at, item_at};

fn map(head: &str, more: &str) -> String {
    format!(
        "
{head}
mode: mapreduce
map:
  input: a.json
{more}
  agent_template: [{{shell: a, retry_config: {{attempts: 9, backoff: fixed}}}}]
"
    )
}

/// Updates a job as `resume --update` does. Returns each change: its setting, its old and its new value.
#[track_caller]
fn updated(test: &mut TestedJob, text: &str) -> Vec<String> {
    let checked = test.job.check(text).workflow.unwrap();
    let WorkflowUpdate::Settings(changes) = compare(test.job.workflow(), &checked) else {
        panic!("it is other work");
    };
    let records = test.feed(&Input::Update { text: text.into(), changes }).records();
    let Some(Event::Job(JobEvent::PolicyChanged { changes, .. })) = records.first().map(|it| &it.event)
    else {
        panic!("{records:?}");
    };
    changes.iter().map(|change| format!("{}: {} -> {}", change.setting, change.old, change.new)).collect()
}

fn limits(test: &TestedJob) -> (u32, u32, u32) {
    let pool = test.job.pool.unwrap();
    let PoolLimits { total, per_item } = pool.limits;
    (total, per_item, pool.consumed)
}

#[test]
fn a_changed_pool_takes_effect_and_is_never_below_what_is_used() {
    let pool = |total: u32, share: u32| {
        map(&format!("retry_budget: {total}\nretry_budget_per_workflow: {share}"), "")
    };
    let mut test = TestedJob::started_over(&pool(10, 3), 2);
    test.fail(0, EXIT_1).fail(1, EXIT_1).at(1).start().fail(0, EXIT_1);
    assert_eq!(limits(&test), (10, 3, 3));
    let changes = updated(&mut test, &pool(12, 4));
    assert_eq!(changes, ["retry_budget: 10 -> 12", "retry_budget_per_workflow: 3 -> 4"]);
    assert_eq!(limits(&test), (12, 4, 3));
    test.top_up(8);
    assert_eq!(limits(&test), (20, 4, 3));
    assert_eq!(updated(&mut test, &pool(12, 5)), ["retry_budget_per_workflow: 4 -> 5"]);
    assert_eq!(limits(&test), (20, 5, 3), "a top-up stays");
    let changes = updated(&mut test, &pool(1, 1));
    assert_eq!(changes, ["retry_budget: 20 -> 3", "retry_budget_per_workflow: 5 -> 2"]);
    assert_eq!(limits(&test), (3, 2, 3), "three are used, two of them by one item");
    assert_eq!(updated(&mut test, &pool(5_000, 1)), ["retry_budget: 3 -> 50"]);
    assert_eq!(limits(&from_its_journal(&test)), (50, 2, 3));
}

fn from_its_journal(test: &TestedJob) -> TestedJob {
    let mut other = TestedJob::of(&map("", ""));
    other.job = test.replayed();
    other
}

#[test]
fn a_pool_can_be_added_and_removed() {
    let mut test = TestedJob::started_over(&map("", ""), 1);
    test.fail(0, EXIT_1);
    assert_eq!(
        updated(&mut test, &map("retry_budget: 1", "")),
        ["retry_budget: none -> 1", "retry_budget_per_workflow: none -> 1"]
    );
    assert_eq!(limits(&test), (1, 1, 0));
    test.at(1).start().fail(0, EXIT_1);
    assert_eq!(limits(&test), (1, 1, 1));
    let changes = updated(&mut test, &map("", ""));
    assert_eq!(changes, ["retry_budget: 1 -> none", "retry_budget_per_workflow: 1 -> none"]);
    assert_eq!(test.job.pool, None);
    assert!(test.at(2).start().fail(0, EXIT_1).scheduled().is_some());
}

#[test]
fn a_changed_completion_rule_decides_from_then_on() {
    let rule = |min: u32, seconds: u32| {
        let rule = format!("  best_effort_min_dcs: {min}\n  best_effort_deadline_seconds: {seconds}");
        map("", &format!("  best_effort: true\n{rule}"))
    };
    let mut test = TestedJob::started_over(&rule(3, 60), 4);
    test.succeed(0).succeed(1).at(30);
    let changes = updated(&mut test, &rule(4, 90));
    assert_eq!(changes, ["best_effort_min_dcs: 3 -> 4", "best_effort_deadline_seconds: 60 -> 90"]);
    assert_eq!(test.next_wake(), Some(at(90)), "it counts from the start of the step as before");
    let text = rule(2, 90);
    let lines = test.update(&text).lines();
    assert_eq!(lines[1], "completion_reached 0: min_dcs_reached (2/2), met", "{lines:?}");
}

#[test]
fn best_effort_can_be_turned_on_for_a_step_that_waits_for_all() {
    let mut test = TestedJob::started_over(&map("", ""), 3);
    test.succeed(0);
    let text = map("", "  best_effort: true\n  on_complete: leave");
    let changes = updated(&mut test, &text);
    assert_eq!(changes, ["best_effort: false -> true", "on_complete: cancel -> leave"]);
    assert_eq!(test.job.steps[0].reached.map(|reached| reached.completed), Some(1));
    assert!(!test.job.ends(item_at(1)));
}

#[test]
fn a_deadline_that_has_passed_stands() {
    let rule = |deadline: &str, seconds: u32| {
        let rule = format!("  best_effort_min_dcs: 3\n  best_effort_deadline_seconds: {seconds}");
        map(&format!("deadline: {deadline}"), &format!("  best_effort: true\n{rule}"))
    };
    let mut test = TestedJob::started_over(&rule("1h", 60), 3);
    test.succeed(0).at(61);
    let changes = updated(&mut test, &rule("2h", 600));
    assert_eq!(
        changes,
        ["deadline: 1h -> 2h", "best_effort_deadline_seconds: 60 -> 600 (the old one has passed and stands)"]
    );
    assert_eq!(test.job.deadline(), Some(at(7200)));
    let lines = test.wake().lines();
    assert_eq!(lines[0], "completion_reached 0: deadline_expired (completed: 1), missed", "{lines:?}");

    let mut test = TestedJob::started_over(&rule("1m", 600), 3);
    test.at(61);
    let changes = updated(&mut test, &rule("2h", 600));
    assert_eq!(changes, ["deadline: 1m -> 2h (the old one has passed and stands)"]);
    assert_eq!(from_its_journal(&test).job.deadline(), Some(at(60)));
    assert_eq!(test.wake().lines()[0], "job_stopping deadline");
}

#[test]
fn the_completion_rule_of_a_flow_step_is_a_setting() {
    let flow = |rule: &str| {
        format!(
            "
mode: flow
goals: [a]
init: {{n: [1, 2]}}
retry_budget: 5
steps:
  - id: a
    type: async
    http: {{endpoint: 'http://s/a'{rule}}}
    attributes: {{n: {{role: required, for_each: true}}, x: {{role: output}}}}
"
        )
    };
    let mut test = TestedJob::started(&flow(""));
    let text = flow("").replace("5\n", "6\n") + "    best_effort: true\n";
    assert_eq!(updated(&mut test, &text), ["retry_budget: 5 -> 6", "best_effort: false -> true"]);
    let text = text.replace("s/a'", "s/a', completion_timeout: 1000, timeout: 2000");
    let changes = updated(&mut test, &text);
    assert_eq!(changes, ["completion_timeout: none -> 1s", "timeout: 30s -> 2s"]);
}
