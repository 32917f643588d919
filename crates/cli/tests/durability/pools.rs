//! The pool of a job: so many retries for all its items, whatever happens.

use serde_json::{Value, json};

use crate::history::{all, is_lawful, one, text};
use crate::world::{Ended, World};

/// Ten items that always fail, four at a time. Each notes its run and waits until so many runs are
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

/// A number that a command which reads it sees whole.
fn allow(world: &World, many: usize) {
    world.write("allowed.next", &format!("{many}\n"));
    std::fs::rename(world.path("allowed.next"), world.path("allowed")).unwrap();
}

fn budget(world: &World) -> Value {
    let shown = world.call(&["budget", "show", "@last", "--json"]);
    shown.exits(0).json()
}

/// Ten free attempts and seven retries.
fn is_exact(world: &World, ended: &Ended) {
    assert_eq!(world.lines("log").len(), 17);
    let report = ended.json();
    assert_eq!(
        (&report["attempts"], &report["retries"], &report["items"]["dead"]),
        (&json!(17), &json!(7), &json!(10))
    );
    let events = world.events();
    is_lawful(&events);
    assert_eq!(all(&events, "retry_scheduled").len(), 7);
    let budget = budget(world);
    assert_eq!((&budget["consumed"], &budget["total_budget"]), (&json!(7), &json!(7)));
    let taken = budget["per_workflow_consumed"].as_object().unwrap();
    let taken = taken.values().map(|units| units.as_u64().unwrap());
    assert_eq!(taken.sum::<u64>(), 7);
}

#[test]
fn ten_items_that_always_fail_with_a_pool_of_seven_run_seventeen_commands() {
    let world = World::of(TEN);
    allow(&world, 99);
    let ended = world.run().exits(4);
    is_exact(&world, &ended);
}

#[test]
fn five_kills_do_not_change_how_many_commands_a_pool_allows() {
    let world = World::of(TEN);
    allow(&world, 0);
    let mut engine = world.spawn(&["run", "w.yaml", "--json"]);
    for kills in 0..5 {
        // More have begun than may end, so it is not done yet.
        world.wait_for_lines("log", 3 * kills + 1);
        world.wait_for_events("the next run", |events| all(events, "job_resumed").len() == kills);
        engine.kill();
        allow(&world, 3 * (kills + 1));
        engine = world.spawn(&["resume", "@last", "--json"]);
    }
    world.wait_for_lines("log", 16);
    allow(&world, 99);
    let ended = engine.wait().exits(4);
    is_exact(&world, &ended);
    assert_eq!(all(&world.events(), "job_resumed").len(), 5);
}

/// An item that always fails, with limits.
fn failing(items: u32, limits: &str) -> World {
    World::of(&format!(
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
    let world = failing(2, "retry_budget: 20\nretry_budget_per_workflow: 3");
    let ended = world.call(&["run", "w.yaml"]).exits(4);
    assert_eq!(world.runs("log"), [("1".to_owned(), 4), ("2".to_owned(), 4)].into());
    let said = "workflow_budget_exhausted (3/3)";
    assert!(ended.out.contains(said), "{ended:?}");
    let letters = world.dead_letters();
    assert_eq!(letters.len(), 2);
    for letter in &letters {
        assert_eq!(letter["reason"], "workflow_budget_exhausted");
        assert!(text(&letter["error"]).contains(said), "{letter}");
    }
    let explained = world.call(&["explain", "@last"]).exits(0).out;
    assert!(explained.contains("6 of 20 retries used, at most 3 per item"), "{explained}");
}

#[test]
fn a_pool_that_is_used_up_says_so_to_people() {
    let world = World::of(TEN);
    allow(&world, 99);
    let ended = world.call(&["run", "w.yaml"]).exits(4);
    assert!(ended.out.contains("job_budget_exhausted (7/7)"), "{ended:?}");
    let listed = world.call(&["dlq", "ls", "@last"]).exits(0).out;
    assert_eq!(listed.matches("job_budget_exhausted (7/7)").count(), 10, "{listed}");
    let events = world.events();
    for event in all(&events, "item_dead_lettered") {
        assert_eq!(event["reason"], "job_budget_exhausted");
    }
    let shown = world.call(&["budget", "show", "@last"]).exits(0).out;
    assert!(shown.contains("7 of 7 retries used, 0 left; at most 3 per item"), "{shown}");
    assert!(shown.contains("undaunted budget top-up"), "{shown}");
}

#[test]
fn a_budget_is_shown_with_exactly_these_keys() {
    let world = failing(1, "retry_budget: 5\nretry_budget_per_workflow: 2");
    world.run().exits(4);
    assert_eq!(
        budget(&world),
        json!({
            "job_id": world.job(), "total_budget": 5, "per_workflow_max": 2, "consumed": 2,
            "per_workflow_consumed": {"1": 2},
        })
    );
    world.call(&["budget", "show", "nothing"]).exits(6);
}

#[test]
fn a_file_that_says_nothing_has_no_pool_unless_the_operator_gives_one() {
    let world = failing(1, "");
    world.run().exits(4);
    assert_eq!(world.lines("log").len(), 10);
    let none = budget(&world);
    assert_eq!(
        (&none["total_budget"], &none["consumed"], &none["per_workflow_consumed"]),
        (&Value::Null, &json!(0), &json!({}))
    );
    let refused = world.call(&["budget", "top-up", "@last", "1"]).exits(2);
    assert!(refused.err.contains("has no retry pool"), "{refused:?}");
    let operator = [("RETRY_BUDGET_DEFAULT", "2")];
    world.call_with(&["run", "w.yaml", "--json"], &operator).exits(4);
    assert_eq!(world.lines("log").len(), 13);
    assert_eq!(budget(&world)["total_budget"], 2);
}

/// What the operator says, if anything: a variable and its value.
type Said = Option<(&'static str, &'static str)>;

#[test]
fn what_is_asked_for_is_clamped_by_the_operator() {
    let both = "retry_budget: 500\nretry_budget_per_workflow: 9";
    let small = "retry_budget: 2\nretry_budget_per_workflow: 4";
    let share = "retry_budget_per_workflow: 4";
    let cases: [(&str, Said, u64, u64); 8] = [
        ("retry_budget: 0", None, 20, 3),
        ("retry_budget_per_workflow: 0", None, 20, 3),
        (both, None, 50, 5),
        (small, None, 2, 2),
        ("retry_budget: 9", Some(("RETRY_BUDGET_MAX", "4")), 4, 3),
        ("retry_budget: 0", Some(("RETRY_BUDGET_DEFAULT", "6")), 6, 3),
        ("retry_budget: 9", Some(("RETRY_BUDGET_PER_WORKFLOW_DEFAULT", "2")), 9, 2),
        (share, Some(("RETRY_BUDGET_PER_WORKFLOW_MAX", "1")), 20, 1),
    ];
    for (asked, said, total, share) in cases {
        let world = failing(1, asked);
        let ended = world.call_with(&["run", "w.yaml", "--json"], said.as_slice());
        let budget = budget(&world);
        let effective = (&budget["total_budget"], &budget["per_workflow_max"]);
        assert_eq!(effective, (&json!(total), &json!(share)), "{asked} {said:?}");
        let report = ended.json();
        assert_eq!(report["attempts"], share + 1);
        let clamped = asked == both || said.is_some_and(|(name, _)| name.contains("MAX"));
        let warned = ended.err.contains("pool-above-ceiling");
        assert_eq!(warned, clamped, "{asked} {ended:?}");
    }
}

#[test]
fn numbers_that_mean_nothing_are_refused() {
    for limits in
        ["retry_budget: -1", "retry_budget_per_workflow: -2", "retry_budget: many", "retry_budget: 1.5"]
    {
        let world = failing(1, limits);
        world.call(&["check", "w.yaml"]).exits(3);
        world.run().exits(3);
        assert!(!world.path("log").exists(), "{limits}");
    }
    let world = failing(1, "retry_budget: 1");
    for name in [
        "RETRY_BUDGET_DEFAULT",
        "RETRY_BUDGET_MAX",
        "RETRY_BUDGET_PER_WORKFLOW_DEFAULT",
        "RETRY_BUDGET_PER_WORKFLOW_MAX",
    ] {
        for value in ["-1", "many", ""] {
            let refused = world.call_with(&["run", "w.yaml"], &[(name, value)]).exits(2);
            assert!(refused.err.contains(name), "{refused:?}");
        }
    }
    assert!(!world.path("log").exists());
}

/// Two items with two retries between them; the second attempts wait for `go`.
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

/// Two retries more were allowed, and not one more made.
fn was_topped_up(world: &World) {
    let mut log = world.lines("log");
    log.sort();
    assert_eq!(log, ["1-1", "1-2", "1-3", "2-1", "2-2", "2-3"]);
    let events = world.events();
    is_lawful(&events);
    let topped = one(&events, "pool_topped_up");
    assert_eq!(
        (&topped["asked"], &topped["added"], &topped["total_budget"]),
        (&json!(2), &json!(2), &json!(4))
    );
    let budget = budget(world);
    assert_eq!((&budget["consumed"], &budget["total_budget"]), (&json!(4), &json!(4)));
}

#[test]
fn the_pool_of_a_job_that_another_process_runs_can_be_topped_up() {
    let world = World::of(&TWO.replace("DELAY", "3ms"));
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.wait_for_lines("log", 4);
    let told = world.call(&["budget", "top-up", "@last", "2", "--json"]).exits(0).json();
    assert_eq!(told["owner"], engine.pid());
    world.event("pool_topped_up");
    world.write("go", "");
    engine.wait().exits(4);
    was_topped_up(&world);
}

#[test]
fn the_pool_of_a_job_whose_owner_is_dead_can_be_topped_up() {
    let world = World::of(&TWO.replace("DELAY", "3ms"));
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.wait_for_lines("log", 4);
    engine.kill();
    let told = world.call(&["budget", "top-up", "@last", "2", "--json"]).exits(0).json();
    assert_eq!(told["owner"], Value::Null);
    world.write("go", "");
    world.resume().exits(4);
    was_topped_up(&world);
}

#[test]
fn the_pool_of_a_suspended_job_can_be_topped_up() {
    let world = World::of(&TWO.replace("DELAY", "2s"));
    world.write("go", "");
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.wait_for_events("two waits", |events| all(events, "retry_scheduled").len() == 2);
    engine.signal("INT");
    engine.wait().exits(75);
    let told = world.call(&["budget", "top-up", "@last", "2"]).exits(0).out;
    assert!(told.contains("added 2 retries to job") && told.contains(", 4 in total"), "{told}");
    world.resume().exits(4);
    was_topped_up(&world);
}

#[test]
fn dead_letters_are_tried_again_with_what_an_ended_job_was_topped_up_with() {
    let world = World::of(TEN);
    allow(&world, 99);
    world.run().exits(4);
    let told = world.call(&["budget", "top-up", "@last", "3"]).exits(0).out;
    assert!(told.contains("undaunted dlq redrive"), "{told}");
    let ended = world.call(&["dlq", "redrive", "@last", "--yes", "--json"]);
    // The first attempt of a round is free; what was used before stays used.
    assert_eq!(world.lines("log").len(), 17 + 10 + 3);
    let report = ended.exits(4).json();
    assert_eq!((&report["attempts"], &report["retries"]), (&json!(30), &json!(10)));
    assert_eq!(budget(&world)["consumed"], 10);
}

#[test]
fn no_redrive_gets_more_than_the_pool_has_left() {
    let world = World::of(TEN);
    allow(&world, 99);
    world.run().exits(4);
    world.call(&["dlq", "redrive", "@last", "--yes", "--json"]).exits(4);
    assert_eq!(world.lines("log").len(), 17 + 10);
    assert_eq!(budget(&world)["consumed"], 7);
}

#[test]
fn no_pool_is_topped_up_past_the_maximum_of_the_operator() {
    let world = failing(2, "retry_budget: 4");
    let operator = [("RETRY_BUDGET_MAX", "6")];
    world.call_with(&["run", "w.yaml", "--json"], &operator).exits(4);
    // What was allowed when it was submitted counts, whatever is said later.
    let later = [("RETRY_BUDGET_MAX", "40")];
    let told = world.call_with(&["budget", "top-up", "@last", "9", "--json"], &later);
    let told = told.exits(0).json();
    assert_eq!((&told["asked"], &told["added"], &told["total_budget"]), (&json!(9), &json!(2), &json!(6)));
    let refused = world.call_with(&["budget", "top-up", "@last", "1"], &later).exits(2);
    assert!(refused.err.contains("RETRY_BUDGET_MAX"), "{refused:?}");
    assert_eq!(budget(&world)["total_budget"], 6);
    for wrong in ["0", "-1", "many"] {
        world.call(&["budget", "top-up", "@last", wrong]).exits(2);
    }
}

#[test]
fn a_share_grows_with_the_total_that_bounded_it() {
    let world = failing(1, "retry_budget: 1");
    world.run().exits(4);
    world.call(&["budget", "top-up", "@last", "1"]).exits(0);
    world.call(&["dlq", "redrive", "@last", "--yes", "--json"]).exits(4);
    assert_eq!(world.lines("log").len(), 2 + 2);
}
