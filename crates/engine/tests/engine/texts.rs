//! Equal texts are stored once, up to a limit.

use undaunted_engine::decide::react;
use undaunted_engine::event::{Event, ItemEvent, JobEvent, Record, StoredText};
use undaunted_engine::id::StartId;
use undaunted_engine::input::{AttemptEnd, Input};

use crate::fixture::{EXIT_1, TestedJob, item_at, start_input};

const MAP: &str = "
mode: mapreduce
map: {input: a.json, max_parallel: 6000, agent_template: [{shell: a}]}
";

fn kept(records: &[Record]) -> usize {
    let kept = |record: &&Record| matches!(record.event, Event::Job(JobEvent::TextKept { .. }));
    records.iter().filter(kept).count()
}

fn error(records: &[Record]) -> Option<StoredText> {
    records.iter().find_map(|record| match &record.event {
        Event::Item(ItemEvent::AttemptFailed(failed)) => failed.error.clone(),
        _ => None,
    })
}

/// Starts and fails one item. Laws are not checked: there are too many records.
fn fail_once(test: &mut TestedJob, item: u32, error: &str) -> Vec<Record> {
    let start = start_input(item_at(item));
    let _ = react(&mut test.job, &start, test.now);
    let end = AttemptEnd {
        start: StartId(u64::from(item) + 1),
        failure: Some(EXIT_1),
        error: error.to_owned(),
        ..AttemptEnd::default()
    };
    react(&mut test.job, &Input::Ended(Box::new(end)), test.now).records
}

#[test]
fn equal_errors_are_stored_once() {
    let mut test = TestedJob::started_over(MAP, 3);
    let first = test.fail_with(0, EXIT_1, "connection refused").records();
    assert_eq!(kept(&first), 2, "the error output and the reason");
    let second = test.fail_with(1, EXIT_1, "connection refused").records();
    assert_eq!(kept(&second), 0);
    assert_eq!(error(&first), error(&second));
    assert_eq!(error(&second), Some(StoredText::Kept(0)));
    let job = test.replayed();
    assert_eq!(job.texts.read(&StoredText::Kept(0)), "connection refused");
    assert_eq!(job.texts.read(&StoredText::Kept(1)), "exit status 1: connection refused");
}

#[test]
fn a_short_text_is_stored_inline() {
    let mut test = TestedJob::started_over(MAP, 1);
    let records = test.fail_with(0, EXIT_1, "busy").records();
    assert_eq!(error(&records), Some(StoredText::Itself("busy".to_owned())));
}

#[test]
fn a_command_without_error_output_has_no_error_text() {
    let mut test = TestedJob::started_over(MAP, 1);
    assert_eq!(error(&test.fail(0, EXIT_1).records()), None);
}

#[test]
fn after_four_thousand_texts_further_ones_are_stored_inline() {
    let mut test = TestedJob::over(MAP, 2100);
    let mut last = Vec::new();
    for item in 0..2100 {
        last = fail_once(&mut test, item, &format!("error number {item}"));
    }
    assert_eq!(test.job.texts.len(), 4096);
    let Some(StoredText::Itself(text)) = error(&last) else {
        panic!("{last:?}");
    };
    assert_eq!(text, "error number 2099");
    assert_eq!(test.job.texts.number("error number 0"), Some(0), "the first ones are still known");
}

#[test]
fn texts_kept_in_one_decision_are_bounded_too() {
    let text = "
mode: mapreduce
map:
  input: a.json
  max_parallel: 5000
  error_policy: {retry_config: {attempts: 2, retry_budget: 1m, jitter: full, initial_delay: 30s}}
  agent_template: [{shell: a}]
";
    let mut test = TestedJob::over(text, 3000);
    for item in 0..3000 {
        let _ = fail_once(&mut test, item, &format!("error number {item}"));
    }
    assert_eq!(test.job.texts.len(), 3000);
    // Every retry has expired, each with another last error.
    test.at(1000);
    let reaction = react(&mut test.job, &Input::Resume { last_seen: None }, test.now);
    assert!(reaction.records.len() > 6_000);
    assert_eq!(test.job.texts.len(), 4096);
    assert!(test.job.texts.bytes() <= 4 << 20);
}
