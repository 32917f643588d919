//! What `schedule` promises.

use super::*;
use crate::config::{JitterMode, RetryConfig};
use crate::draw::Seed;

fn plan(config: &RetryConfig) -> (Vec<u64>, Option<Reason>) {
    let mut schedule = Schedule::new(&config.build().unwrap(), Seed(1).draws(0, 0, 1));
    let waits = schedule.by_ref().take(1000);
    let millis = |wait: Duration| u64::try_from(wait.as_millis()).unwrap();
    let waits = waits.map(|planned| millis(planned.delay.drawn)).collect();
    (waits, schedule.stopped())
}

#[test]
fn the_refused_retry_is_not_part_of_the_plan() {
    let config = RetryConfig::new().attempts(100).retry_budget(Duration::from_secs(5));
    assert_eq!(plan(&config), (vec![1000, 2000], Some(Reason::RetryBudget)));
}

#[test]
fn attempts_are_taken_to_last_no_time_before_the_deadline() {
    let config = RetryConfig::fixed().attempts(100).deadline(Duration::from_secs(3));
    assert_eq!(plan(&config), (vec![1000; 3], Some(Reason::Deadline)));
}

#[test]
fn an_unlimited_plan_never_ends() {
    let (waits, stopped) = plan(&RetryConfig::new().unlimited_attempts());
    assert_eq!((waits.len(), stopped), (1000, None));
    assert_eq!(waits[999], 30_000);
}

#[test]
fn the_same_seed_gives_the_same_plan_and_another_seed_another() {
    let policy = RetryConfig::new().attempts(20).jitter(JitterMode::Decorrelated).build().unwrap();
    let waits = |seed| -> Vec<PlannedRetry> { Schedule::new(&policy, Seed(seed).draws(0, 0, 1)).collect() };
    assert_eq!(waits(7), waits(7));
    assert_ne!(waits(7), waits(8));
}
