//! Every YAML block of the two pages the language follows is accepted and means what the page says.

#![expect(
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken expectation is a red test"
)]

use std::time::Duration;

use undaunted_engine::workflow::{Operator, Source, Workflow, check};
use undaunted_policy::{Jitter, Policy, Reason, Schedule, Seed};

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

/// A bare `retry_config:` becomes that of a command.
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
    checked
        .workflow
        .unwrap_or_else(|| panic!("{block}\n{problems:#?}"))
}

fn policy(block: &str) -> Policy {
    read(block).steps[0].commands[0].retry.policy.clone()
}

/// The delays in milliseconds without jitter, and what stops them.
fn plan(block: &str) -> (Vec<u128>, Option<Reason>) {
    let mut plan = Schedule::new(&policy(block), Seed(0).draws(0, 0, 1));
    let delays = plan
        .by_ref()
        .map(|planned| planned.delay.capped.as_millis());
    let delays = delays.collect();
    (delays, plan.stopped())
}

#[test]
fn there_are_seventeen_blocks_and_all_are_workflows() {
    let all = [budgets(), strategies()].concat();
    assert_eq!(
        (budgets().len(), strategies().len(), all.len()),
        (6, 11, 17)
    );
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
    let resilient: Vec<u128> = [2, 2, 4, 6, 10, 16, 26, 42]
        .into_iter()
        .chain([60; 8])
        .map(|s| s * 1000)
        .collect();
    assert_eq!(plan(&blocks[4]), (resilient, Some(Reason::RetryBudget)));
    let (strict, stopped) = plan(&blocks[5]);
    assert_eq!(
        (strict.iter().sum::<u128>(), stopped),
        (451_000, Some(Reason::RetryBudget))
    );
}

#[test]
fn the_page_on_strategies_means_what_it_says() {
    let blocks = strategies();
    let seconds = |index: usize| -> Vec<u128> {
        plan(&blocks[index])
            .0
            .iter()
            .map(|millis| millis / 1000)
            .collect()
    };
    assert_eq!(seconds(0), [2, 2, 2]);
    assert_eq!(seconds(1), [5, 5, 5]);
    assert_eq!(seconds(2), [1, 3, 5]);
    assert_eq!(seconds(3), [1, 3, 5]);
    assert_eq!(seconds(4), [1, 2, 4]);
    assert_eq!(seconds(5), [1, 2, 4]);
    assert_eq!(seconds(6), [1, 1, 2]);
    assert_eq!(seconds(7), [1, 1, 2]);
    assert_eq!(plan(&blocks[8]).0, [500, 1000, 2000]);
    let fields = policy(&blocks[10]);
    assert_eq!(
        fields.terms().pace().jitter(),
        Jitter::PlusMinus { factor: 0.3 }
    );
    assert_eq!(fields.terms().limits().attempts().retries(), Some(3));
}

#[test]
fn the_map_reduce_of_the_page_is_retried_by_its_error_policy() {
    let workflow = read(&strategies()[9]);
    assert_eq!(workflow.name.as_deref(), Some("resilient-mapreduce-job"));
    assert_eq!(workflow.steps.len(), 1);
    for command in &workflow.steps[0].commands {
        let terms = command.retry.policy.terms();
        assert_eq!(terms.limits().attempts().retries(), Some(5));
        assert_eq!(terms.pace().backoff().name(), "fibonacci");
        assert_eq!(terms.pace().jitter(), Jitter::PlusMinus { factor: 0.3 });
    }
    let validate = &workflow.steps[0].commands[1];
    let handler = &validate.on_failure.as_ref().expect("a handler").commands[0];
    assert_eq!(handler.action.kind(), "claude");
    assert_eq!(
        handler.retry.policy,
        Policy::ONCE,
        "a handler inherits nothing"
    );
}
