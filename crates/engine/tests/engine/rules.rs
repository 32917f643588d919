//! The table of rules, and interrupted attempts.

use undaunted_engine::event::{Event, ItemEvent};
use undaunted_policy::{FailureCause, Reason};

use crate::fixture::{EXIT_1, TestedJob, event_lines, secs};

fn ruled(rule: &str) -> TestedJob {
    let text = format!(
        "
mode: mapreduce
map:
  input: a.json
  agent_template:
    - shell: a
      retry_config: {{attempts: 3, rules: [{rule}]}}
      on_failure: {{shell: mend}}
"
    );
    TestedJob::started_over(&text, 1)
}

#[test]
fn a_rule_that_stops_ends_the_retries_and_the_handler_runs() {
    let mut test = ruled("{exit_code: 3, then: stop}");
    let records = test.fail(0, FailureCause::Exit(3)).records();
    assert_eq!(event_lines(&records).last().unwrap(), "command_stopped 0/0 0.1: rule, handler 1");
    let rules = records.iter().find_map(|record| match &record.event {
        Event::Item(ItemEvent::AttemptFailed(failed)) => failed.rule,
        _ => None,
    });
    assert_eq!(rules, Some(0));
}

#[test]
fn a_rule_dead_letters_or_skips_at_once_and_what_no_rule_matches_is_retried() {
    let mut test = ruled("{stderr: 'no such user', then: dead_letter}");
    test.fail_with(0, EXIT_1, "error: no such user");
    assert_eq!(test.outcome(), ("partial", Some(Reason::Rule), [0, 1, 0]));
    let mut test = ruled("{exit_code: 3, then: skip}");
    let retried = test.clone().fail(0, FailureCause::Exit(4)).lines();
    assert_eq!(retried[1], "retry_scheduled 0/0 0.1 in 1s at +1s");
    let lines = test.fail(0, FailureCause::Exit(3)).lines();
    assert!(lines.contains(&"item_skipped 0/0: rule".to_owned()));
    assert_eq!(test.outcome(), ("completed", None, [0, 0, 1]));
    let text = "mode: mapreduce\nmap: {input: a, error_policy: {on_item_failure: skip}, agent_template: [{shell: a}]}\n";
    let mut test = TestedJob::started_over(text, 1);
    assert_eq!(test.fail(0, EXIT_1).outcome(), ("completed", None, [0, 0, 1]), "without a rule");
}

#[test]
fn a_rule_may_retry_a_permanent_failure_on_its_own_terms() {
    let mut test = ruled("{exit_code: 127, then: retry, retry_config: {initial_delay: 9s}}");
    let _records = test.fail(0, FailureCause::Exit(127)).records();
    let retrying = test.scheduled().unwrap();
    assert_eq!(retrying.delay, secs(9));
}

#[test]
fn a_command_with_on_interrupt_stop_is_not_retried_after_an_interruption() {
    let text = "- {shell: a, on_interrupt: stop, retry_config: {attempts: 3}}\n";
    let mut test = TestedJob::started(text);
    test.fail(0, FailureCause::Interrupted);
    assert_eq!(test.outcome(), ("failed", Some(Reason::Interrupted), [0, 1, 0]));
    // Other failures are retried.
    let mut test = TestedJob::started(text);
    assert_eq!(test.fail(0, EXIT_1).lines()[1], "retry_scheduled 0/0 0.1 in 1s at +1s");
}

#[test]
fn an_interrupted_attempt_counts_as_one() {
    let mut test = TestedJob::started("- {shell: a, retry_config: {attempts: 1}}\n");
    test.fail(0, FailureCause::Interrupted).at(1).start().fail(0, FailureCause::Interrupted);
    assert_eq!(test.attempts(), 2);
    assert_eq!(test.outcome().1, Some(Reason::Attempts));
}
