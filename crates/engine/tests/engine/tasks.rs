//! The task of an attempt.

use undaunted_engine::id::{CommandId, ItemId};
use undaunted_engine::task::{Task, TaskWork, ValueFiles, correlation_id, receipt_token, task};

use crate::fixture::{EXIT_1, TestedJob, item_at};

fn made(test: &TestedJob, item: ItemId) -> Task {
    let files = ValueFiles { item: "/run/item.json", ..ValueFiles::default() };
    task(&test.job, item, files, test.now).unwrap().unwrap()
}

fn variable(task: &Task, name: &str) -> String {
    let mut env = task.env.iter().rev();
    let found = env.find(|(known, _)| known == name);
    found.map(|(_, value)| value.clone()).unwrap()
}

#[test]
fn token_and_id_are_the_same_for_all_attempts() {
    let mut test = TestedJob::of("- {shell: a, retry_config: {attempts: 3}}\n");
    let names = ["UNDAUNTED_JOB", "UNDAUNTED_ITEM", "UNDAUNTED_RECEIPT_TOKEN", "UNDAUNTED_CORRELATION_ID"];
    let first = made(&test, item_at(0));
    assert_eq!(variable(&first, "UNDAUNTED_ATTEMPT"), "1");
    test.start();
    assert_eq!(made(&test, item_at(0)), first, "one that was recorded and never began");
    test.fail(0, EXIT_1).crash_and_resume();
    let second = made(&test, item_at(0));
    assert_eq!(variable(&second, "UNDAUNTED_ATTEMPT"), "2");
    for name in names {
        assert_eq!(variable(&first, name), variable(&second, name), "{name}");
    }
}

#[test]
fn an_extra_attempt_after_a_handler_has_the_same_token() {
    let mut test = TestedJob::of("- {shell: a, on_failure: {shell: mend, max_attempts: 1}}\n");
    let first = made(&test, item_at(0));
    test.start().fail(0, EXIT_1);
    let handler = made(&test, item_at(0));
    test.start().succeed(0);
    let second = made(&test, item_at(0));
    let token = |task| variable(task, "UNDAUNTED_RECEIPT_TOKEN");
    assert_eq!(token(&first), token(&second));
    assert_ne!(token(&first), token(&handler));
    assert_eq!(variable(&second, "UNDAUNTED_ATTEMPT"), "2");
}

#[test]
fn ids_differ_from_item_to_item_and_tokens_from_command_to_command() {
    let text = "mode: mapreduce\nmap: {input: a, agent_template: [{shell: a}, {shell: b}]}\n";
    let test = TestedJob::over(text, 2);
    let ids = [0, 1].map(|index| correlation_id(&test.job, item_at(index)));
    assert_ne!(ids[0], ids[1]);
    assert_eq!(ids[0].len(), 36);
    let token = |command, round| {
        let item = item_at(0);
        receipt_token(&test.job, item, CommandId(command), round)
    };
    assert_ne!(token(0, 1), token(1, 1));
    assert_ne!(token(0, 1), token(0, 2));
}

#[test]
fn item_values_are_passed_as_data_and_the_item_file_only_if_used() {
    let text = "mode: mapreduce\nmap: {input: a, agent_template: [{shell: 'echo ${item.id}'}, {shell: 'cat ${item_file}'}]}\n";
    let mut test = TestedJob::over(text, 1);
    let first = made(&test, item_at(0));
    assert!(first.env.iter().any(|(_, value)| value == "a0"));
    assert!(!first.reads_item_file);
    let TaskWork::Run { argv } = &first.work else {
        panic!("{first:?}");
    };
    assert!(!argv[2].to_string_lossy().contains("a0"), "{argv:?}");
    test.start().succeed(0);
    let second = made(&test, item_at(0));
    assert!(second.reads_item_file);
}

#[test]
fn a_relative_directory_is_resolved_from_where_the_job_was_submitted() {
    for (written, seen) in [("sub", "/w/sub"), ("/abs", "/abs")] {
        let test = TestedJob::of(&format!("- {{shell: a, working_dir: {written}}}\n"));
        assert_eq!(made(&test, item_at(0)).working_dir, seen);
    }
    assert_eq!(made(&TestedJob::of("- shell: a\n"), item_at(0)).working_dir, "/w");
}
