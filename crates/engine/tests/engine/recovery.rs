//! Recovery is not a mode: what a journal comes to wants what the live job wanted.

use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::effect::{Effect, next_wake, ready, wanted, wanted_by};
use undaunted_engine::event::Record;
use undaunted_engine::id::StepId;
use undaunted_engine::input::Input;
use undaunted_engine::job::Job;
use undaunted_engine::view::{event, report};
use undaunted_policy::{FailureCause, Reason};

use crate::scene::{Scene, digest, fold};

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

/// Runs a job to its end, every third attempt failing.
fn story() -> Vec<Vec<u8>> {
    let mut scene = Scene::of(MAP);
    let mut number = 0_u32;
    while !scene.job.stage.has_ended() {
        if scene.wanted().iter().any(|wish| wish.starts_with("read")) {
            scene.items(5);
        }
        let _ = scene.start();
        match scene.job.starts.running.values().next() {
            Some(&item) => {
                number += 1;
                let _ = if number.is_multiple_of(3) {
                    scene.fail_saying(item.index, FailureCause::Exit(1), "connection refused")
                } else {
                    scene.succeed_writing(item.index, Some("{\"x\": 1}"))
                };
            }
            None => scene.now = scene.next_wake().unwrap(),
        }
        if number == 9 {
            let _ = scene.crash_and_resume();
            number += 1;
        }
    }
    scene.journal
}

fn decoded(journal: &[Vec<u8>]) -> Vec<Record> {
    let records = journal.iter().map(|bytes| Record::decode(bytes).unwrap());
    records.collect()
}

#[test]
fn at_every_record_the_journal_comes_to_the_state_and_the_wishes_of_the_live_job() {
    let journal = story();
    let records = decoded(&journal);
    let mut live = Job::begin(&records[0]).unwrap();
    for (count, record) in (1_usize..).zip(&records).skip(1) {
        live.apply(record);
        let found = fold(&journal[..count]);
        assert_eq!(digest(&found), digest(&live));
        assert_eq!(wanted(&found), wanted(&live));
        let admission = AdmissionControl::default();
        let startable = |job: &Job| ready(job, &admission, record.at);
        assert_eq!(startable(&found), startable(&live));
        assert_eq!(next_wake(&found, record.at), next_wake(&live, record.at));
        assert_eq!(report(&found), report(&live));
    }
    assert!(live.stage.has_ended());
}

#[test]
fn what_the_records_of_a_live_job_ask_for_is_what_its_state_asks_for() {
    let mut scene =
        Scene::over("mode: mapreduce\nmap: {input: a, max_parallel: 3, agent_template: [{shell: a}]}\n", 4);
    let records = scene.start();
    let by_record: Vec<Effect> = records.iter().filter_map(wanted_by).collect();
    assert_eq!(by_record, wanted(&scene.job));
    assert_eq!(by_record, wanted(&scene.refolded()));
    let records = scene.tell(&Input::Cancel);
    let by_record: Vec<Effect> = records.iter().filter_map(wanted_by).collect();
    assert_eq!(by_record, [Effect::EndAll]);
    assert_eq!(wanted(&scene.job).last(), Some(&Effect::EndAll));
}

#[test]
fn a_start_that_was_recorded_is_begun_again_under_its_number_and_is_not_charged() {
    let mut scene = Scene::of("- {shell: a, retry_config: {attempts: 3}}\n");
    let _ = scene.start();
    let _ = scene.crash_and_resume();
    assert_eq!(scene.wanted(), ["begin 1 for 0/0"]);
    assert_eq!(scene.ready(), []);
    assert_eq!(scene.counted().0, 1);
    let _ = scene.succeed(0);
    assert_eq!(scene.came_to().0, "completed");
}

#[test]
fn a_job_whose_first_record_alone_was_written_begins_when_it_is_resumed() {
    let mut scene = Scene::of("- shell: a\n");
    scene.journal.truncate(1);
    let records = scene.crash_and_resume();
    assert_eq!(crate::spoken::said(&records), ["job_resumed run 2", "step_started 0"]);
}

#[test]
fn every_record_of_a_story_can_be_shown() {
    let journal = story();
    let records = decoded(&journal);
    let mut job = Job::begin(&records[0]).unwrap();
    for (seq, record) in (1_u64..).zip(&records) {
        if seq > 1 {
            job.apply(record);
        }
        let shown = serde_json::to_value(event(&job, seq, record)).unwrap();
        assert_eq!(shown["seq"], seq);
        assert_eq!(shown["type"], record.event.word());
        assert!(shown["at"].as_str().unwrap().starts_with("2023-11-14T"));
    }
    let shown = serde_json::to_value(report(&job)).unwrap();
    assert_eq!(shown["items"]["total"], 5);
}

#[test]
fn a_setting_that_is_changed_holds_from_then_on_and_a_scheduled_retry_stands() {
    let mut scene = Scene::of("- {shell: a, retry_config: {attempts: 3}}\n");
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let due = scene.next_wake();
    let text = "- {shell: a, retry_config: {attempts: 1, initial_delay: 9s}}\n";
    let change = undaunted_engine::event::PolicyChange {
        of: "shell-1".to_owned(),
        setting: "attempts".to_owned(),
        old: "3".to_owned(),
        new: "1".to_owned(),
    };
    let update = Input::Update { text: text.into(), changes: vec![change] };
    assert_eq!(scene.hear(&update), ["policy_changed"]);
    assert_eq!(scene.next_wake(), due);
    scene.job = scene.refolded();
    assert_eq!(&*scene.job.submitted().text, text);
    scene.at(1);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    assert_eq!(scene.came_to().0, "failed");
}

#[test]
fn a_width_that_is_changed_holds_for_the_next_start() {
    let text = "mode: mapreduce\nmap: {input: a, max_parallel: 1, agent_template: [{shell: a}]}\n";
    let mut scene = Scene::over(text, 5);
    assert_eq!(scene.ready().len(), 1);
    let _ = scene.tell(&Input::Update {
        text: text.replace("max_parallel: 1", "max_parallel: 3").into(),
        changes: Vec::new(),
    });
    assert_eq!(scene.ready().len(), 3);
    scene.job = scene.refolded();
    assert_eq!(scene.ready().len(), 3);
}

#[test]
fn items_whose_reading_was_interrupted_are_read_again() {
    let text = "
mode: mapreduce
map: {input: {shell: list}, agent_template: [{shell: a}]}
";
    let mut scene = Scene::of(text);
    let interrupted = Input::InputFailed {
        step: StepId(0),
        reason: Reason::Interrupted,
        error: "gone".to_owned(),
        stderr: None,
    };
    assert_eq!(scene.wanted(), ["read the items of 0 by 1"]);
    assert_eq!(scene.hear(&interrupted), ["step_started 0, items by 2"]);
    assert_eq!(scene.wanted(), ["read the items of 0 by 2"]);
    let _ = scene.hear(&Input::Cancel);
    let _ = scene.hear(&interrupted);
    let report = scene.report();
    assert_eq!((report.status.word(), report.error), ("cancelled", None));
}
