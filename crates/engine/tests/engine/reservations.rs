//! Reserved starts: which attempts may be reserved, and what comes first.

use std::time::Duration;

use undaunted_engine::effect::{Effect, wanted, wanted_by};
use undaunted_engine::event::{Event, ItemEvent};
use undaunted_engine::id::StartId;
use undaunted_engine::input::Input;
use undaunted_engine::law::violations_by_record;
use undaunted_policy::FailureCause;

use crate::fixture::{EXIT_1, TestedJob, at, item_at, start_input};

const MAP: &str = "mode: mapreduce\nmap:\n  input: a.json\n  max_parallel: 2\n  agent_template:\n    - shell: run\n      retry_config: {attempts: 2}\n";

/// Reserves a start for every slot.
fn reserve(test: &mut TestedJob) {
    for item in test.job.reservable(test.now) {
        test.feed(&Input::Reserve { item });
    }
}

fn reserved(test: &TestedJob) -> Vec<u32> {
    test.job.starts.reserved.values().map(|it| it.item.index).collect()
}

/// A job of which all slots are taken, and for each a start is reserved.
fn full() -> TestedJob {
    let mut test = TestedJob::started_over(MAP, 7);
    reserve(&mut test);
    test
}

#[test]
fn one_start_is_reserved_for_each_slot_once_all_slots_are_taken() {
    let mut test = TestedJob::over(MAP, 7);
    reserve(&mut test);
    assert_eq!(reserved(&test), [0; 0], "a free slot needs no reservation");
    test.start();
    reserve(&mut test);
    assert_eq!(reserved(&test), [2, 3]);
    assert_eq!(test.job.reservable(test.now), []);
    test.feed(&start_input(item_at(2)));
    assert_eq!(test.lines(), [""; 0], "there is no slot for another start");
    assert_eq!(
        test.effects(),
        ["begin 1 for 0/0", "begin 2 for 0/1", "reserve 3 for 0/2", "reserve 4 for 0/3"]
    );
}

#[test]
fn a_reserved_attempt_starts_when_the_keeper_has_begun_it() {
    let mut test = full();
    test.at(5).succeed(0);
    let (start, at) = (StartId(3), at(4));
    test.feed(&Input::Begun { start, at });
    assert_eq!(test.lines(), ["attempt_started 0/2 0.1 as 3"]);
    let records = test.records();
    let Event::Item(ItemEvent::AttemptStarted(started)) = &records[0].event else { panic!("{records:?}") };
    assert_eq!(started.began, Some(at));
    assert_eq!(wanted_by(&records[0]), None, "the keeper has begun it already");
    test.feed(&Input::Begun { start, at });
    assert_eq!(test.lines(), [""; 0], "a repeated report changes nothing");
    reserve(&mut test);
    assert_eq!(reserved(&test), [3, 4]);
}

#[test]
fn the_time_limits_of_a_reserved_attempt_run_from_its_beginning() {
    let text = format!("{MAP}      timeout: 3s\n");
    let mut test = TestedJob::started_over(&text, 7);
    reserve(&mut test);
    test.at(60).succeed(0);
    test.at(61).feed(&Input::Begun { start: StartId(3), at: at(60) });
    test.at(63).fail(2, FailureCause::Timeout);
    let failed = test.records().into_iter().find_map(|record| match record.event {
        Event::Item(ItemEvent::AttemptFailed(failed)) => Some(failed),
        _ => None,
    });
    assert_eq!(failed.unwrap().limit.map(|limit| limit.allowed), Some(Duration::from_secs(3)));
}

#[test]
fn a_withdrawn_start_uses_nothing_up_and_its_item_keeps_its_turn() {
    let mut test = full();
    test.feed(&Input::NotBegun { start: StartId(3) });
    assert_eq!(test.lines(), ["reservation_withdrawn 0/2 0.1 as 3"]);
    test.feed(&Input::Begun { start: StartId(3), at: at(0) });
    assert_eq!(test.lines(), [""; 0], "it is gone");
    test.succeed(0).succeed(1);
    test.feed(&Input::Begun { start: StartId(4), at: at(0) });
    test.start();
    assert_eq!(test.started_items(), [2], "before those that come after it");
    assert_eq!(test.job.counts.attempts, 4);
    let active = test.job.active(item_at(2)).unwrap();
    assert_eq!(active.attempts, 1);
}

#[test]
fn nothing_is_reserved_while_a_retry_is_due_within_five_milliseconds() {
    let mut test = full();
    test.fail(0, EXIT_1);
    let due = test.scheduled().unwrap().due;
    let before = due.as_nanos() - 5_000_000;
    assert!(test.job.keeps_reservations(test.now));
    let withdrawal = test.next_wake().unwrap();
    assert_eq!(withdrawal.as_nanos(), before);
    test.now = withdrawal;
    assert!(!test.job.keeps_reservations(test.now));
    assert_eq!(test.job.reservable(test.now), []);
}

#[test]
fn a_pause_a_stop_and_a_suspension_end_reservations() {
    let mut test = full();
    assert!(test.job.has_running_here());
    for start in [3, 4] {
        test.feed(&Input::NotBegun { start: StartId(start) });
    }
    test.feed(&Input::Pause);
    assert_eq!(test.job.reservable(test.now), []);
    test.feed(&Input::Unpause);
    reserve(&mut test);
    let stop = TestedJob::started_over(MAP, 1).feed(&Input::Cancel).records();
    let broken = violations_by_record(&test.job, &stop[0]);
    assert_eq!(broken[0].law, "reserved starts are withdrawn before the job starts nothing more");
    let effects = wanted(&test.job);
    assert!(effects.contains(&Effect::Reserve { start: StartId(5), item: item_at(2) }), "{effects:?}");
}

#[test]
fn only_attempts_that_a_slot_alone_decides_are_reserved() {
    let of_job = |line: &str| format!("{line}\n{MAP}");
    let of_map = |line: &str| MAP.replace("  max", &format!("  {line}\n  max"));
    let of_command = |line: &str| format!("{MAP}      {line}\n");
    let others = [
        of_job("retry_budget: 9"),
        of_job("deadline: 1h"),
        of_map("error_policy: {max_failures: 2}"),
        of_map("error_policy: {failure_threshold: 0.5}"),
        of_map("error_policy: {continue_on_failure: false}"),
        of_map("best_effort: true"),
        of_command("breaker: true"),
        MAP.replace("attempts: 2", "attempts: 0"),
        of_command("on_interrupt: stop"),
        of_command("on_failure: {shell: mend}"),
        of_command("on_success: {shell: follow}"),
        MAP.replace("shell: run", "http: {url: \"http://127.0.0.1/\"}"),
        format!("{MAP}    - shell: follow\n"),
    ];
    for text in others {
        let test = TestedJob::started_over(&text, 7);
        assert_eq!(test.job.reservable(test.now), [], "{text}");
    }
    assert_eq!(TestedJob::started_over(MAP, 7).job.reservable(at(0)).len(), 2);
}
