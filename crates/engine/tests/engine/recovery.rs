//! Recovery is not a mode: the replayed state has the effects of the live job.

use undaunted_engine::effect::{Effect, wanted, wanted_by};
use undaunted_engine::input::Input;
use undaunted_engine::job::Job;
use undaunted_engine::view::{event, report};
use undaunted_policy::Reason;

use crate::fixture::{EXIT_1, TestedJob, input_failed};

const MAP: &str = "
retry_budget: 9
mode: mapreduce
setup: [{shell: s, capture_output: base}]
map:
  input: a.json
  max_parallel: 2
  error_policy: {retry_config: {attempts: 2, retry_budget: 1m, jitter: true}}
  agent_template:
    - {shell: 'echo ${base}', on_failure: {shell: mend, max_attempts: 1}}
    - {shell: b, capture_output: got, capture_format: json}
    - shell: echo ${got.x}
reduce: [{shell: r}]
";

/// Runs a job to its end. Every third attempt fails, and the process dies once.
fn run_to_the_end() -> TestedJob {
    let mut test = TestedJob::of(MAP);
    let mut number = 0_u32;
    while !test.job.stage.has_ended() {
        if test.effects().iter().any(|wish| wish.starts_with("read")) {
            test.items(5);
        }
        test.start();
        match test.job.starts.running.values().next() {
            Some(&item) => {
                number += 1;
                let _ = if number.is_multiple_of(3) {
                    test.fail_with(item.index, EXIT_1, "connection refused")
                } else {
                    test.succeed_with(item.index, "{\"x\": 1}")
                };
            }
            None => test.now = test.next_wake().unwrap(),
        }
        if number == 9 {
            test.crash_and_resume();
            number += 1;
        }
    }
    test
}

#[test]
fn at_every_record_the_journal_folds_to_the_state_and_the_effects_of_the_live_job() {
    run_to_the_end().check_replay();
}

#[test]
fn the_effects_of_records_are_the_effects_of_the_state() {
    let mut test = TestedJob::over(
        "mode: mapreduce\nmap: {input: a, max_parallel: 3, agent_template: [{shell: a}]}\n",
        4,
    );
    let records = test.start().records();
    let by_record: Vec<Effect> = records.iter().filter_map(wanted_by).collect();
    assert_eq!(by_record, wanted(&test.job));
    assert_eq!(by_record, wanted(&test.replayed()));
    let records = test.cancel().records();
    let by_record: Vec<Effect> = records.iter().filter_map(wanted_by).collect();
    assert_eq!(by_record, [Effect::EndAll]);
    assert_eq!(wanted(&test.job).last(), Some(&Effect::EndAll));
}

#[test]
fn a_recorded_start_begins_again_under_its_number_and_is_not_charged() {
    let mut test = TestedJob::started("- {shell: a, retry_config: {attempts: 3}}\n");
    test.crash_and_resume();
    assert_eq!(test.effects(), ["begin 1 for 0/0"]);
    assert_eq!(test.ready(), []);
    assert_eq!(test.attempts(), 1);
    assert_eq!(test.succeed(0).outcome().0, "completed");
}

#[test]
fn a_job_with_only_its_first_record_begins_when_resumed() {
    let mut test = TestedJob::of("- shell: a\n");
    test.journal.truncate(1);
    let records = test.crash_and_resume().records();
    assert_eq!(crate::fixture::event_lines(&records), ["job_resumed run 2", "step_started 0"]);
}

#[test]
fn every_record_of_a_job_can_be_shown() {
    let records = run_to_the_end().decoded();
    let mut job = Job::begin(&records[0]).unwrap();
    for (seq, record) in (1_u64..).zip(&records) {
        if seq > 1 {
            job.apply(record);
        }
        let view = serde_json::to_value(event(&job, seq, record)).unwrap();
        assert_eq!(view["seq"], seq);
        assert_eq!(view["type"], record.event.word());
        assert!(view["at"].as_str().unwrap().starts_with("2023-11-14T"));
    }
    assert_eq!(serde_json::to_value(report(&job)).unwrap()["items"]["total"], 5);
}

#[test]
fn a_changed_setting_applies_at_once_but_not_to_a_scheduled_retry() {
    let mut test = TestedJob::started("- {shell: a, retry_config: {attempts: 3}}\n");
    test.fail(0, EXIT_1);
    let due = test.next_wake();
    let text = "- {shell: a, retry_config: {attempts: 1, initial_delay: 9s}}\n";
    let change = undaunted_engine::event::PolicyChange {
        of: "shell-1".to_owned(),
        setting: "attempts".to_owned(),
        old: "3".to_owned(),
        new: "1".to_owned(),
    };
    let update = Input::Update { text: text.into(), changes: vec![change] };
    assert_eq!(test.feed(&update).lines(), ["policy_changed"]);
    assert_eq!(test.next_wake(), due);
    test.job = test.replayed();
    assert_eq!(&*test.job.submitted().text, text);
    assert_eq!(test.at(1).start().fail(0, EXIT_1).outcome().0, "failed");
}

#[test]
fn a_changed_parallelism_applies_to_the_next_start() {
    let text = "mode: mapreduce\nmap: {input: a, max_parallel: 1, agent_template: [{shell: a}]}\n";
    let mut test = TestedJob::over(text, 5);
    assert_eq!(test.ready().len(), 1);
    test.update(&text.replace("max_parallel: 1", "max_parallel: 3"));
    assert_eq!(test.ready().len(), 3);
    test.job = test.replayed();
    assert_eq!(test.ready().len(), 3);
}

#[test]
fn items_whose_reading_was_interrupted_are_read_again() {
    let text = "
mode: mapreduce
map: {input: {shell: list}, agent_template: [{shell: a}]}
";
    let mut test = TestedJob::of(text);
    let interrupted = input_failed(Reason::Interrupted, "gone");
    assert_eq!(test.effects(), ["read the items of 0 by 1"]);
    assert_eq!(test.feed(&interrupted).lines(), ["step_started 0, items by 2"]);
    assert_eq!(test.effects(), ["read the items of 0 by 2"]);
    test.cancel().feed(&interrupted);
    let report = test.report();
    assert_eq!((report.status.word(), report.error), ("cancelled", None));
}
