//! The job pool bounds the retries of all items of a job, also over kills.

use serde_json::{Value, json};

use crate::history::{all, assert_fields, count, one, text};
use crate::sandbox::{FinishedProcess, Sandbox};

/// Ten items that always fail, four at a time. Each attempt logs its run and waits until that many runs are
/// allowed to end.
const TEN: &str = "
mode: mapreduce
retry_budget: 7
map:
  input: {shell: seq 1 10}
  max_parallel: 4
  agent_template:
    - shell: |
        echo ${item} >> log
        n=$(wc -l < log)
        until [ $(cat allowed) -ge $n ]; do sleep 0.01; done
        exit 1
      retry_config: {attempts: 9, backoff: fixed, initial_delay: 3ms}
";

/// Allows this many runs to end. The rename is atomic, so commands never read half a number.
fn allow(sandbox: &Sandbox, many: usize) {
    sandbox.write("allowed.next", &format!("{many}\n"));
    std::fs::rename(sandbox.path("allowed.next"), sandbox.path("allowed")).unwrap();
}

fn budget(sandbox: &Sandbox) -> Value {
    let budget_text = sandbox.call(&["budget", "show", "@last", "--json"]);
    budget_text.exits(0).json()
}

/// Asserts ten first attempts and seven retries.
fn assert_pool_used_exactly(sandbox: &Sandbox, ended: &FinishedProcess) {
    assert_eq!(sandbox.lines("log").len(), 17);
    let report = ended.json();
    assert_eq!(
        (&report["attempts"], &report["retries"], &report["items"]["dead"]),
        (&json!(17), &json!(7), &json!(10))
    );
    let events = sandbox.lawful_events();
    assert_eq!(count(&events, "retry_scheduled"), 7);
    let budget = budget(sandbox);
    assert_fields!(budget, {"consumed": 7, "total_budget": 7});
    let taken = budget["per_workflow_consumed"].as_object().unwrap();
    let taken = taken.values().map(|units| units.as_u64().unwrap());
    assert_eq!(taken.sum::<u64>(), 7);
}

#[test]
fn ten_items_that_always_fail_with_a_pool_of_seven_run_seventeen_commands() {
    let sandbox = Sandbox::of(TEN);
    allow(&sandbox, 99);
    let ended = sandbox.run().exits(4);
    assert_pool_used_exactly(&sandbox, &ended);
}

#[test]
fn five_kills_do_not_change_how_many_commands_a_pool_allows() {
    let sandbox = Sandbox::of(TEN);
    allow(&sandbox, 0);
    let mut engine = sandbox.start_run();
    for kills in 0..5 {
        // More runs have begun than may end, so the job is not done yet.
        sandbox.wait_for_lines("log", 3 * kills + 1);
        sandbox.wait_for_events("the next run", |events| count(events, "job_resumed") == kills);
        engine.kill();
        allow(&sandbox, 3 * (kills + 1));
        engine = sandbox.start_resume();
    }
    sandbox.wait_for_lines("log", 16);
    allow(&sandbox, 99);
    let ended = engine.wait().exits(4);
    assert_pool_used_exactly(&sandbox, &ended);
    assert_eq!(count(&sandbox.events(), "job_resumed"), 5);
}

/// Items that always fail, with limits.
fn failing(items: u32, limits: &str) -> Sandbox {
    Sandbox::of(&format!(
        "
mode: mapreduce
{limits}
map:
  input: {{shell: seq 1 {items}}}
  max_parallel: 2
  agent_template:
    - shell: echo ${{item}} >> log; exit 1
      retry_config: {{attempts: 9, backoff: fixed, initial_delay: 3ms}}
"
    ))
}

#[test]
fn no_item_takes_more_than_its_share() {
    let sandbox = failing(2, "retry_budget: 20\nretry_budget_per_workflow: 3");
    let ended = sandbox.call(&["run", "w.yaml"]).exits(4);
    assert_eq!(sandbox.runs("log"), [("1".to_owned(), 4), ("2".to_owned(), 4)].into());
    let variable = "workflow_budget_exhausted (3/3)";
    assert!(ended.out.contains(variable), "{ended:?}");
    let letters = sandbox.dead_letters();
    assert_eq!(letters.len(), 2);
    for letter in &letters {
        assert_eq!(letter["reason"], "workflow_budget_exhausted");
        assert!(text(&letter["error"]).contains(variable), "{letter}");
    }
    let explained = sandbox.stdout(&["explain", "@last"]);
    assert!(explained.contains("6 of 20 retries used, at most 3 per item"), "{explained}");
}

#[test]
fn a_pool_that_is_used_up_says_so_to_people() {
    let sandbox = Sandbox::of(TEN);
    allow(&sandbox, 99);
    let ended = sandbox.call(&["run", "w.yaml"]).exits(4);
    assert!(ended.out.contains("job_budget_exhausted (7/7)"), "{ended:?}");
    let listed = sandbox.stdout(&["dlq", "ls", "@last"]);
    assert_eq!(listed.matches("job_budget_exhausted (7/7)").count(), 10, "{listed}");
    let events = sandbox.events();
    for event in all(&events, "item_dead_lettered") {
        assert_eq!(event["reason"], "job_budget_exhausted");
    }
    let budget_text = sandbox.stdout(&["budget", "show", "@last"]);
    assert!(budget_text.contains("7 of 7 retries used, 0 left; at most 3 per item"), "{budget_text}");
    assert!(budget_text.contains("undaunted budget top-up"), "{budget_text}");
}

#[test]
fn a_budget_is_shown_with_exactly_these_keys() {
    let sandbox = failing(1, "retry_budget: 5\nretry_budget_per_workflow: 2");
    sandbox.run().exits(4);
    assert_eq!(
        budget(&sandbox),
        json!({
            "job_id": sandbox.job(), "total_budget": 5, "per_workflow_max": 2, "consumed": 2,
            "per_workflow_consumed": {"1": 2},
        })
    );
    sandbox.call(&["budget", "show", "nothing"]).exits(6);
}

#[test]
fn a_file_without_a_budget_has_no_pool_unless_the_operator_sets_one() {
    let sandbox = failing(1, "");
    sandbox.run().exits(4);
    assert_eq!(sandbox.lines("log").len(), 10);
    let none = budget(&sandbox);
    assert_fields!(none, {"total_budget": null, "consumed": 0, "per_workflow_consumed": {}});
    sandbox.call(&["budget", "top-up", "@last", "1"]).exits(2).err_contains("has no retry pool");
    let operator = [("RETRY_BUDGET_DEFAULT", "2")];
    sandbox.run_with(&operator).exits(4);
    assert_eq!(sandbox.lines("log").len(), 13);
    assert_eq!(budget(&sandbox)["total_budget"], 2);
}

type OperatorVariable = Option<(&'static str, &'static str)>;

#[test]
fn requested_budgets_are_clamped_to_the_ceilings_of_the_operator() {
    let both = "retry_budget: 500\nretry_budget_per_workflow: 9";
    let small = "retry_budget: 2\nretry_budget_per_workflow: 4";
    let share = "retry_budget_per_workflow: 4";
    let cases: [(&str, OperatorVariable, u64, u64); 8] = [
        ("retry_budget: 0", None, 20, 3),
        ("retry_budget_per_workflow: 0", None, 20, 3),
        (both, None, 50, 5),
        (small, None, 2, 2),
        ("retry_budget: 9", Some(("RETRY_BUDGET_MAX", "4")), 4, 3),
        ("retry_budget: 0", Some(("RETRY_BUDGET_DEFAULT", "6")), 6, 3),
        ("retry_budget: 9", Some(("RETRY_BUDGET_PER_WORKFLOW_DEFAULT", "2")), 9, 2),
        (share, Some(("RETRY_BUDGET_PER_WORKFLOW_MAX", "1")), 20, 1),
    ];
    for (limits, variable, total, share) in cases {
        let sandbox = failing(1, limits);
        let ended = sandbox.run_with(variable.as_slice());
        let budget = budget(&sandbox);
        let effective = (&budget["total_budget"], &budget["per_workflow_max"]);
        assert_eq!(effective, (&json!(total), &json!(share)), "{limits} {variable:?}");
        let report = ended.json();
        assert_eq!(report["attempts"], share + 1);
        let clamped = limits == both || variable.is_some_and(|(name, _)| name.contains("MAX"));
        let warned = ended.err.contains("pool-above-ceiling");
        assert_eq!(warned, clamped, "{limits} {ended:?}");
    }
}

/// Numbers beyond 32 and beyond 64 bits, wherever a pool is named.
#[test]
fn a_budget_that_is_too_large_to_represent_is_clamped_too() {
    for number in ["5000000000", "99999999999999999999"] {
        let limits = format!("retry_budget: {number}\nretry_budget_per_workflow: {number}");
        let sandbox = failing(1, &limits);
        sandbox.call(&["check", "w.yaml"]).exits(0).err_contains("exceeds the operator's limit");
        sandbox.run().exits(4);
        assert_fields!(budget(&sandbox), {"total_budget": 50, "per_workflow_max": 5});
        sandbox.call(&["budget", "top-up", "@last", number]).exits(2).err_contains("at most 50");

        let flags = ["exec", "--job-retries", number, "--attempts", "1", "--initial-delay", "1ms"];
        let clamped = sandbox.call(&[&flags[..], &["--", "false"]].concat()).exits(1);
        assert!(clamped.err.contains("exceeds RETRY_BUDGET_MAX; 50 is used instead"), "{clamped:?}");
        assert_eq!(budget(&sandbox)["total_budget"], 50);
    }
    let sandbox = failing(1, "retry_budget: 9\nretry_budget_per_workflow: 9");
    let variables = [("RETRY_BUDGET_MAX", "5000000000"), ("RETRY_BUDGET_PER_WORKFLOW_MAX", "5000000000")];
    sandbox.run_with(&variables).exits(4);
    sandbox.call(&["budget", "top-up", "@last", "5000000000"]).exits(0);
    assert_fields!(budget(&sandbox), {"total_budget": 4_294_967_295_u32, "per_workflow_max": 9});
}

#[test]
fn invalid_numbers_are_refused() {
    for limits in
        ["retry_budget: -1", "retry_budget_per_workflow: -2", "retry_budget: many", "retry_budget: 1.5"]
    {
        let sandbox = failing(1, limits);
        sandbox.call(&["check", "w.yaml"]).exits(3);
        sandbox.run().exits(3);
        assert!(!sandbox.path("log").exists(), "{limits}");
    }
    let sandbox = failing(1, "retry_budget: 1");
    for name in [
        "RETRY_BUDGET_DEFAULT",
        "RETRY_BUDGET_MAX",
        "RETRY_BUDGET_PER_WORKFLOW_DEFAULT",
        "RETRY_BUDGET_PER_WORKFLOW_MAX",
    ] {
        for value in ["-1", "many", ""] {
            sandbox.call_with(&["run", "w.yaml"], &[(name, value)]).exits(2).err_contains(name);
        }
    }
    assert!(!sandbox.path("log").exists());
}

/// Two items that share two retries; the second attempts wait for the file `go`.
const TWO: &str = "
mode: mapreduce
retry_budget: 2
retry_budget_per_workflow: 2
map:
  input: {shell: seq 1 2}
  agent_template:
    - shell: |
        echo ${item}-$UNDAUNTED_ATTEMPT >> log
        test $UNDAUNTED_ATTEMPT = 1 && exit 1
        until [ -e go ]; do sleep 0.01; done
        exit 1
      retry_config: {attempts: 9, backoff: fixed, initial_delay: DELAY}
";

/// Asserts that the top-up allowed exactly two more retries.
fn assert_topped_up(sandbox: &Sandbox) {
    let log = sandbox.sorted_lines("log");
    assert_eq!(log, ["1-1", "1-2", "1-3", "2-1", "2-2", "2-3"]);
    let events = sandbox.lawful_events();
    let topped = one(&events, "pool_topped_up");
    assert_fields!(topped, {"asked": 2, "added": 2, "total_budget": 4});
    let budget = budget(sandbox);
    assert_fields!(budget, {"consumed": 4, "total_budget": 4});
}

#[test]
fn the_pool_of_a_job_that_another_process_runs_can_be_topped_up() {
    let (sandbox, engine) = Sandbox::start_workflow(&TWO.replace("DELAY", "3ms"));
    sandbox.wait_for_lines("log", 4);
    let answer = sandbox.json(&["budget", "top-up", "@last", "2", "--json"]);
    assert_eq!(answer["owner"], engine.pid());
    sandbox.event("pool_topped_up");
    sandbox.write("go", "");
    engine.wait().exits(4);
    assert_topped_up(&sandbox);
}

#[test]
fn the_pool_of_a_job_whose_owner_is_dead_can_be_topped_up() {
    let (sandbox, engine) = Sandbox::start_workflow(&TWO.replace("DELAY", "3ms"));
    sandbox.wait_for_lines("log", 4);
    engine.kill();
    let answer = sandbox.json(&["budget", "top-up", "@last", "2", "--json"]);
    assert_eq!(answer["owner"], Value::Null);
    sandbox.write("go", "");
    sandbox.resume().exits(4);
    assert_topped_up(&sandbox);
}

#[test]
fn the_pool_of_a_suspended_job_can_be_topped_up() {
    let sandbox = Sandbox::of(&TWO.replace("DELAY", "2s"));
    sandbox.write("go", "");
    let engine = sandbox.start_run();
    sandbox.wait_for_events("two waits", |events| count(events, "retry_scheduled") == 2);
    engine.suspend();
    let answer = sandbox.stdout(&["budget", "top-up", "@last", "2"]);
    assert!(answer.contains("added 2 retries to job") && answer.contains(", 4 in total"), "{answer}");
    sandbox.resume().exits(4);
    assert_topped_up(&sandbox);
}

#[test]
fn dead_letters_are_tried_again_with_what_an_ended_job_was_topped_up_with() {
    let sandbox = Sandbox::of(TEN);
    allow(&sandbox, 99);
    sandbox.run().exits(4);
    let answer = sandbox.stdout(&["budget", "top-up", "@last", "3"]);
    assert!(answer.contains("undaunted dlq redrive"), "{answer}");
    let ended = sandbox.redrive();
    // The first attempt of a round is free; retries of earlier rounds stay charged.
    assert_eq!(sandbox.lines("log").len(), 17 + 10 + 3);
    let report = ended.exits(4).json();
    assert_fields!(report, {"attempts": 30, "retries": 10});
    assert_eq!(budget(&sandbox)["consumed"], 10);
}

#[test]
fn no_redrive_gets_more_than_the_pool_has_left() {
    let sandbox = Sandbox::of(TEN);
    allow(&sandbox, 99);
    sandbox.run().exits(4);
    sandbox.redrive().exits(4);
    assert_eq!(sandbox.lines("log").len(), 17 + 10);
    assert_eq!(budget(&sandbox)["consumed"], 7);
}

#[test]
fn no_pool_is_topped_up_past_the_maximum_of_the_operator() {
    let sandbox = failing(2, "retry_budget: 4");
    let operator = [("RETRY_BUDGET_MAX", "6")];
    sandbox.run_with(&operator).exits(4);
    // The maximum at the submission counts, not a later one.
    let later = [("RETRY_BUDGET_MAX", "40")];
    let answer = sandbox.call_with(&["budget", "top-up", "@last", "9", "--json"], &later);
    let answer = answer.exits(0).json();
    assert_fields!(answer, {"asked": 9, "added": 2, "total_budget": 6});
    sandbox.call_with(&["budget", "top-up", "@last", "1"], &later).exits(2).err_contains("RETRY_BUDGET_MAX");
    assert_eq!(budget(&sandbox)["total_budget"], 6);
    for wrong in ["0", "-1", "many"] {
        sandbox.call(&["budget", "top-up", "@last", wrong]).exits(2);
    }
}

#[test]
fn a_share_grows_with_the_total_that_bounded_it() {
    let sandbox = failing(1, "retry_budget: 1");
    sandbox.run().exits(4);
    sandbox.call(&["budget", "top-up", "@last", "1"]).exits(0);
    sandbox.redrive().exits(4);
    assert_eq!(sandbox.lines("log").len(), 2 + 2);
}
