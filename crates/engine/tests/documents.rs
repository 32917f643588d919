//! Every YAML block of the two pages that the language follows is accepted, with the meaning given there.

#![expect(clippy::panic, clippy::indexing_slicing, reason = "a panic in a test is a failed test")]

use std::time::Duration;

use undaunted_engine::workflow::input::JsonPath;
use undaunted_engine::workflow::{MaxParallel, OnItemFailure, Operator, Source, StepWork, Workflow, check};
use undaunted_policy::{Jitter, Policy, Reason, Schedule, Seed, Tolerance};

fn blocks(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut inside: Option<String> = None;
    for line in page.lines() {
        match (&mut inside, line) {
            (None, "```yaml") => inside = Some(String::new()),
            (Some(_), "```") => blocks.extend(inside.take()),
            (Some(block), line) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, _) => {}
        }
    }
    blocks
}

fn budgets() -> Vec<String> {
    blocks(include_str!("documents/retry-budget.md"))
}

fn strategies() -> Vec<String> {
    blocks(include_str!("documents/backoff-strategies.md"))
}

/// Wraps a bare `retry_config:` in a command.
fn wrapped(block: &str) -> String {
    if !block.starts_with("retry_config:") {
        return block.to_owned();
    }
    let indented: Vec<_> = block.lines().map(|line| format!("  {line}")).collect();
    format!("- shell: 'true'\n{}\n", indented.join("\n"))
}

fn read(block: &str) -> Workflow {
    let source = Source::new("block.yaml", wrapped(block));
    let checked = check(&source, &Operator::default());
    let problems = &checked.diagnostics;
    checked.workflow.unwrap_or_else(|| panic!("{block}\n{problems:#?}"))
}

fn policy(block: &str) -> Policy {
    read(block).steps[0].commands[0].retry.policy.clone()
}

/// The delays in milliseconds without jitter, and the reason that stops them.
fn plan(block: &str) -> (Vec<u128>, Option<Reason>) {
    planned(&policy(block))
}

fn planned(policy: &Policy) -> (Vec<u128>, Option<Reason>) {
    let mut plan = Schedule::new(policy, Seed(0).draws(0, 0, 1));
    let delays = plan.by_ref().map(|planned| planned.delay.capped.as_millis());
    let delays = delays.collect();
    (delays, plan.stopped())
}

#[test]
fn all_seventeen_blocks_are_workflows() {
    let all = [budgets(), strategies()].concat();
    assert_eq!((budgets().len(), strategies().len(), all.len()), (6, 11, 17));
    for block in &all {
        read(block);
    }
}

#[test]
fn the_page_on_budgets_means_what_it_says() {
    let blocks = budgets();
    let configuration = policy(&blocks[0]);
    let limits = configuration.terms().limits();
    assert_eq!(limits.attempts().retries(), Some(10));
    assert_eq!(limits.retry_budget(), Some(Duration::from_mins(5)));

    // "The budget stops retries at ~8 attempts": 1+2+4+8+16+30+30 = 91s; the next would make 121s.
    let budget_first = vec![1000, 2000, 4000, 8000, 16_000, 30_000, 30_000];
    assert_eq!(plan(&blocks[1]), (budget_first, Some(Reason::RetryBudget)));
    // "Total delay: 5s + 5s + 5s = 15 seconds. Stops after 3."
    assert_eq!(plan(&blocks[2]), (vec![5000; 3], Some(Reason::Attempts)));

    let fast_failing = vec![500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000, 10_000];
    assert_eq!(plan(&blocks[3]), (fast_failing, Some(Reason::RetryBudget)));
    let resilient: Vec<u128> =
        [2, 2, 4, 6, 10, 16, 26, 42].into_iter().chain([60; 8]).map(|s| s * 1000).collect();
    assert_eq!(plan(&blocks[4]), (resilient, Some(Reason::RetryBudget)));
    let (strict, stopped) = plan(&blocks[5]);
    assert_eq!((strict.iter().sum::<u128>(), stopped), (451_000, Some(Reason::RetryBudget)));
}

/// The block with more retries than the default three.
fn eight_retries(block: &str) -> String {
    assert!(!block.contains("attempts"), "{block}");
    format!("{block}  attempts: 8\n")
}

#[test]
fn the_page_on_strategies_means_what_it_says() {
    let blocks = strategies();
    let seconds = |seconds: [u128; 8]| seconds.map(|second| second * 1000);
    let (linear, fibonacci) = ([1, 3, 5, 7, 9, 11, 13, 15], [1, 1, 2, 3, 5, 8, 13, 21]);
    let series = [
        seconds([2; 8]),
        seconds([5; 8]),
        seconds(linear),
        seconds(linear),
        // "max_delay: 100s"; the block after it has the default, 30s.
        seconds([1, 2, 4, 8, 16, 32, 64, 100]),
        seconds([1, 2, 4, 8, 16, 30, 30, 30]),
        seconds(fibonacci),
        seconds(fibonacci),
        // The delays as listed, then the cap.
        [500, 1000, 2000, 5000, 10_000, 30_000, 30_000, 30_000],
    ];
    for (block, delays) in blocks.iter().zip(&series) {
        let stopped = Some(Reason::Attempts);
        let default = (delays[..3].to_vec(), stopped);
        assert_eq!(plan(block), default, "without a number of attempts\n{block}");
        let longer = eight_retries(block);
        assert_eq!(plan(&longer), (delays.to_vec(), stopped), "{longer}");
    }
}

#[test]
fn the_fields_of_the_page_are_the_defaults_but_for_jitter() {
    let block = &strategies()[10];
    let fields = policy(block);
    let jitter = Jitter::PlusMinus { factor: 0.3 };
    assert_eq!(fields.terms().pace().jitter(), jitter);
    let stopped = Some(Reason::Attempts);
    assert_eq!(plan(block), (vec![1000, 2000, 4000], stopped));
    let plain = block.replace("jitter: true ", "jitter: false ");
    assert_eq!(policy(&plain), Policy::DEFAULT);
}

#[test]
fn the_map_reduce_of_the_page_is_retried_by_its_error_policy() {
    let workflow = read(&strategies()[9]);
    assert_eq!(workflow.name.as_deref(), Some("resilient-mapreduce-job"));
    assert_eq!(workflow.steps.len(), 1);
    let StepWork::Map(map) = &workflow.steps[0].work else {
        panic!("{:?} is no map", workflow.steps[0].work);
    };
    assert_eq!(map.max_parallel, MaxParallel::Number(10));
    let path = map.selection.json_path.as_ref();
    assert_eq!(path.map(JsonPath::as_str), Some("$.items[*]"));
    // "continue_on_failure: true" and no number: any number of items may fail.
    assert_eq!(map.tolerance, Tolerance::default());
    assert_eq!(map.on_item_failure, OnItemFailure::DeadLetter);
    assert_eq!(map.item_deadline, None);
    for command in &workflow.steps[0].commands {
        let terms = command.retry.policy.terms();
        assert_eq!(terms.pace().initial_delay(), Duration::from_secs(1));
        assert_eq!(terms.limits().attempts().retries(), Some(5));
        assert_eq!(terms.pace().backoff().name(), "fibonacci");
        assert_eq!(terms.pace().jitter(), Jitter::PlusMinus { factor: 0.3 });
    }
    let validate = &workflow.steps[0].commands[1];
    let handler = &validate.on_failure.as_ref().expect("a handler").commands[0];
    assert_eq!(handler.action.kind(), "claude");
    assert_eq!(handler.retry.policy, Policy::ONCE, "a handler inherits nothing");
}

/// Five retries wait 10 + 10 + 20 + 30 + 50 = 120s, "leaving 180s" of the five minutes of an item.
#[test]
fn delays_count_towards_the_item_deadline() {
    let text = "\
mode: mapreduce
map:
  input: items.json
  timeout_config:
    agent_timeout_secs: 300
    retry_config:
      attempts: ATTEMPTS
      backoff: {fibonacci: {initial: 10s}}
      max_delay: 60s
  agent_template:
    - shell: ./work.sh ${item.id}
";
    let read = |attempts: &str| read(&text.replace("ATTEMPTS", attempts));
    let workflow = read("5");
    let StepWork::Map(map) = &workflow.steps[0].work else {
        panic!("{:?} is no map", workflow.steps[0].work);
    };
    let (delays, stopped) = planned(&workflow.steps[0].commands[0].retry.policy);
    assert_eq!(delays, [10_000, 10_000, 20_000, 30_000, 50_000]);
    assert_eq!(stopped, Some(Reason::Attempts));
    let spent: u128 = delays.iter().sum();
    let limit = map.item_deadline.expect("a deadline").as_millis();
    assert_eq!([limit, spent, limit - spent], [300_000, 120_000, 180_000]);

    // With more attempts than that, three of the longest delays take up those 180s exactly.
    let workflow = read("100");
    let (delays, stopped) = planned(&workflow.steps[0].commands[0].retry.policy);
    assert_eq!(delays[5..], [60_000; 3]);
    assert_eq!(stopped, Some(Reason::Deadline));
}
