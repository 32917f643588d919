//! Records of jobs as they were written: every one stays readable and keeps its meaning.

use proptest::prelude::*;
use undaunted_engine::event::{
    Event, FORMAT, ImportedCommand, ItemEvent, JobEvent, Record, RecordError, RetryArithmetic, StepEvent,
};

use crate::fixture::{
    Cbor, assert_malformed, at, check_damaged, check_golden, check_refused, golden, golden_events,
    golden_tree, tree, without_field,
};

fn record(event: Event) -> Record {
    Record { at: at(5), event }
}

fn read(fields: &Cbor) -> Result<Record, RecordError> {
    let mut bytes = vec![FORMAT];
    fields.write(&mut bytes);
    Record::decode(&bytes)
}

#[test]
fn every_kind_of_event_is_read_and_written_as_its_golden_record() {
    for (name, event) in golden_events() {
        check_golden(name, &record(event));
        check_refused::<Record>(name);
    }
    assert_malformed::<Record>(&[], "nothing");
}

#[test]
fn every_kind_of_event_has_a_golden_record() {
    // The number of the variant is the first element of the event.
    let numbers = golden_events().into_iter().map(|(_, event)| {
        let bytes = record(event).encode();
        match tree(&bytes[1..]).at(&[1, 0]) {
            Cbor::Plain(number) => number[..].to_vec(),
            other @ Cbor::List(_) => panic!("{other:?}"),
        }
    });
    let mut numbers: Vec<Vec<u8>> = numbers.collect();
    numbers.sort();
    // Some variants have several files, for fields that were added later.
    numbers.dedup();
    let all: Vec<Vec<u8>> = (0_u8..48).map(|number| minicbor::to_vec(number).unwrap()).collect();
    assert_eq!(numbers, all);
}

fn without(event: &Event, field: usize) -> Event {
    let mut event = event.clone();
    match (&mut event, field) {
        (Event::Job(JobEvent::Submitted(it)), 7) => it.pool = None,
        (Event::Job(JobEvent::Submitted(it)), 8) => it.ceilings = None,
        (Event::Job(JobEvent::Submitted(it)), 9) => it.release = None,
        (Event::Job(JobEvent::Submitted(it)), 10) => it.stdin = None,
        (Event::Job(JobEvent::Submitted(it)), 11) => it.passing = None,
        (Event::Job(JobEvent::Submitted(it)), 12) => it.completion = None,
        (Event::Job(JobEvent::Submitted(it)), 13) => it.late_results_count = None,
        (Event::Job(JobEvent::Submitted(it)), 14) => it.work = None,
        (Event::Job(JobEvent::Submitted(it)), 15) => it.flow = None,
        (Event::Job(JobEvent::Submitted(it)), 16) => it.token_key = None,
        (Event::Job(JobEvent::Submitted(it)), 17) => it.origin_breakers = None,
        (Event::Job(JobEvent::Resumed(it)), 5) => it.work.held = None,
        (Event::Item(ItemEvent::AttemptStarted(it)), 2) => it.pass = None,
        (Event::Item(ItemEvent::AttemptStarted(it)), 3) => it.began = None,
        (Event::Item(ItemEvent::Held(it)), 2) => it.until = None,
        (Event::Item(ItemEvent::Held(it)), 3) => it.expires = None,
        (Event::Item(ItemEvent::Held(it)), 4) => it.left = None,
        (Event::Item(ItemEvent::Held(it)), 5) => it.arithmetic = None,
        (Event::Item(ItemEvent::LateResult(it)), 2) => it.reason = None,
        (Event::Item(ItemEvent::LateResult(it)), 4) => it.output = None,
        (Event::Item(ItemEvent::LateResult(it)), 5) => it.error = None,
        (Event::Step(StepEvent::CompletionReached(it)), 8) => it.best_effort = None,
        (Event::Job(JobEvent::PolicyChanged { pool, .. }), 2) => *pool = None,
        (Event::Job(JobEvent::PolicyChanged { passed, .. }), 3) => *passed = None,
        (Event::Job(JobEvent::PoolToppedUp { per_item, .. }), 3) => *per_item = None,
        (Event::Job(JobEvent::StartsSpaced { every }), 0) => *every = None,
        (Event::Step(StepEvent::Started { start, .. }), 1) => *start = None,
        (Event::Step(StepEvent::ItemsRead { warning, .. }), 3) => *warning = None,
        (Event::Step(StepEvent::InputFailed { stderr, .. }), 3) => *stderr = None,
        (Event::Step(StepEvent::AttributeSet { unused, .. }), 3) => *unused = None,
        (Event::Item(ItemEvent::ResultArrived(it)), 1) => it.output = None,
        (Event::Item(ItemEvent::ResultArrived(it)), 2) => it.error = None,
        (Event::Item(ItemEvent::AttemptSucceeded(it)), 2) => it.next = None,
        (Event::Item(ItemEvent::AttemptSucceeded(it)), 3) => it.output = None,
        (Event::Item(ItemEvent::AttemptSucceeded(it)), 4) => it.stdout = None,
        (Event::Item(ItemEvent::AttemptSucceeded(it)), 5) => it.stderr = None,
        (Event::Item(ItemEvent::AttemptSucceeded(it)), 6) => it.left = None,
        (Event::Item(ItemEvent::AttemptFailed(it)), 4) => it.error = None,
        (Event::Item(ItemEvent::AttemptFailed(it)), 5) => it.rule = None,
        (Event::Item(ItemEvent::AttemptFailed(it)), 6) => it.output = None,
        (Event::Item(ItemEvent::AttemptFailed(it)), 7) => it.stdout = None,
        (Event::Item(ItemEvent::AttemptFailed(it)), 8) => it.stderr = None,
        (Event::Item(ItemEvent::AttemptFailed(it)), 9) => it.limit = None,
        (Event::Item(ItemEvent::RetryScheduled(it)), field) => {
            it.arithmetic = sum_without(it.arithmetic, field);
        }
        (Event::Item(ItemEvent::CommandStopped(it)), 3) => it.arithmetic = None,
        (Event::Item(ItemEvent::CommandStopped(it)), 4) => it.handler = None,
        (Event::Item(ItemEvent::CommandStopped(it)), 5) => it.rule = None,
        (Event::Item(ItemEvent::CommandRecovered { next, .. }), 1) => *next = None,
        (Event::Job(JobEvent::StateImported { executions: executions @ Some(_), .. }), 1) => {
            *executions = None;
        }
        (Event::Job(JobEvent::StateImported { correlations: correlations @ Some(_), .. }), 2) => {
            *correlations = None;
        }
        (Event::Job(JobEvent::StateImported { commands, .. }), field) => {
            imported_without(&mut commands[0], field);
        }
        (
            Event::Job(
                JobEvent::Completed(it)
                | JobEvent::Partial(it)
                | JobEvent::Failed(it)
                | JobEvent::Cancelled(it),
            ),
            field,
        ) => match field {
            1 => it.reason = None,
            2 => it.error = None,
            _ => it.submitted = None,
        },
        (other, field) => panic!("field {field} of {other:?} is needed"),
    }
    event
}

fn imported_without(command: &mut ImportedCommand, field: usize) {
    match field {
        5 => command.previous = None,
        6 => command.due = None,
        7 => command.expires = None,
        8 => command.error = None,
        9 => command.succeeded = None,
        10 => command.broken = None,
        11 => command.history = None,
        12 => command.last_attempt_at = None,
        other => panic!("field {other} is needed"),
    }
}

fn sum_without(mut sum: RetryArithmetic, field: usize) -> RetryArithmetic {
    match field {
        1 => sum.allowed = None,
        2 => sum.computed = None,
        3 => sum.capped = None,
        4 => sum.drawn = None,
        7 => sum.budget = None,
        8 => sum.expires = None,
        9 => sum.retry_after = None,
        10 => sum.deadline = None,
        11 => sum.pool = None,
        12 => sum.share = None,
        other => panic!("field {other} is needed"),
    }
    sum
}

/// The path of the fields of an event, and the numbers of the optional ones.
fn optional(event: &Event) -> (&'static [usize], &'static [usize]) {
    match event {
        Event::Job(JobEvent::Submitted(it))
            if it.work.is_some() || it.flow.is_some() || it.token_key.is_some() =>
        {
            (&[1, 1, 0], &[7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17])
        }
        Event::Job(JobEvent::Submitted(it)) if it.completion.is_some() => {
            (&[1, 1, 0], &[7, 8, 9, 10, 11, 12, 13])
        }
        Event::Job(JobEvent::Resumed(_)) => (&[1, 1, 0, 3], &[5]),
        Event::Item(ItemEvent::LateResult(it)) if it.output.is_some() => (&[1, 1, 0], &[2, 4, 5]),
        Event::Item(ItemEvent::AttemptStarted(it)) if it.began.is_some() => (&[1, 1, 0], &[2, 3]),
        Event::Item(ItemEvent::AttemptStarted(_) | ItemEvent::LateResult(_)) => (&[1, 1, 0], &[2]),
        Event::Step(StepEvent::CompletionReached(it)) if it.best_effort.is_some() => (&[1, 1, 0], &[8]),
        Event::Job(JobEvent::PolicyChanged { pool: Some(_), .. }) => (&[1, 1], &[2, 3]),
        Event::Item(ItemEvent::Held(_)) => (&[1, 1, 0], &[2, 3, 4, 5]),
        Event::Job(JobEvent::Submitted(it)) if it.passing.is_some() => (&[1, 1, 0], &[7, 8, 9, 10, 11]),
        Event::Job(JobEvent::Submitted(_)) => (&[1, 1, 0], &[7, 8, 9]),
        Event::Step(StepEvent::Started { .. }) | Event::Item(ItemEvent::CommandRecovered { .. }) => {
            (&[1, 1], &[1])
        }
        Event::Job(JobEvent::StartsSpaced { .. }) => (&[1, 1], &[0]),
        Event::Step(
            StepEvent::InputFailed { .. }
            | StepEvent::ItemsRead { warning: Some(_), .. }
            | StepEvent::AttributeSet { .. },
        )
        | Event::Job(JobEvent::PoolToppedUp { .. }) => (&[1, 1], &[3]),
        Event::Item(ItemEvent::ResultArrived(_)) => (&[1, 1, 0], &[1, 2]),
        Event::Item(ItemEvent::AttemptSucceeded(_)) => (&[1, 1, 0], &[2, 3, 4, 5, 6]),
        Event::Item(ItemEvent::AttemptFailed(_)) => (&[1, 1, 0], &[4, 5, 6, 7, 8, 9]),
        Event::Item(ItemEvent::RetryScheduled(_)) => (&[1, 1, 0, 1], &[1, 2, 3, 4, 7, 8, 9, 10, 11, 12]),
        Event::Item(ItemEvent::CommandStopped(_)) => (&[1, 1, 0], &[3, 4, 5]),
        Event::Job(JobEvent::StateImported { correlations: Some(_), .. }) => (&[1, 1], &[1, 2]),
        Event::Job(JobEvent::StateImported { commands, .. }) if commands[0].history.is_some() => {
            (&[1, 1, 0, 0], &[5, 6, 7, 8, 9, 10, 11, 12])
        }
        Event::Job(JobEvent::StateImported { .. }) => (&[1, 1, 0, 0], &[5, 6, 7, 8]),
        Event::Job(
            JobEvent::Completed(_) | JobEvent::Partial(_) | JobEvent::Failed(_) | JobEvent::Cancelled(_),
        ) => (&[1, 1, 0], &[1, 2, 3]),
        Event::Job(
            JobEvent::TextKept { .. }
            | JobEvent::Stopping { .. }
            | JobEvent::Suspended
            | JobEvent::PolicyChanged { .. }
            | JobEvent::Redriven { .. }
            | JobEvent::Paused
            | JobEvent::Unpaused { .. },
        )
        | Event::Step(
            StepEvent::ItemsRead { warning: None, .. }
            | StepEvent::Completed { .. }
            | StepEvent::Failed { .. }
            | StepEvent::CompletionReached(_)
            | StepEvent::Skipped { .. }
            | StepEvent::Unreachable { .. },
        )
        | Event::Item(
            ItemEvent::CommandRepeated { .. }
            | ItemEvent::Succeeded { .. }
            | ItemEvent::DeadLettered { .. }
            | ItemEvent::Skipped { .. }
            | ItemEvent::Redriven { .. }
            | ItemEvent::Dropped { .. }
            | ItemEvent::Released(_)
            | ItemEvent::AttemptAccepted { .. }
            | ItemEvent::StartReserved(_)
            | ItemEvent::ReservationWithdrawn(_),
        )
        | Event::Breaker(_) => (&[1, 1], &[]),
    }
}

#[test]
fn a_record_that_lacks_an_optional_field_is_read_without_it() {
    for (name, event) in golden_events() {
        let (path, fields) = optional(&event);
        for &field in fields {
            if golden_tree(name).at(path).has(field) {
                let found = Record::decode(&without_field(name, &[path, &[field]].concat()));
                assert_eq!(found, Ok(record(without(&event, field))), "{name} without {field}");
            }
        }
    }
}

#[test]
fn a_record_from_before_a_field_was_added_is_read_without_it_and_all_later_ones() {
    for (name, event) in golden_events() {
        let (path, fields) = optional(&event);
        for &field in fields {
            let mut older = golden_tree(name);
            let Cbor::List(list) = older.at(path) else {
                panic!("{name} has no fields");
            };
            if list.len() <= field {
                continue;
            }
            let later: Vec<usize> = (field..list.len()).collect();
            list.truncate(field);
            if later.iter().all(|it| fields.contains(it)) {
                let expected = later.iter().fold(event.clone(), |it, at| without(&it, *at));
                let expected = record(expected);
                assert_eq!(read(&older), Ok(expected), "{name} before {field}");
            } else {
                let found = read(&older);
                assert!(matches!(found, Err(RecordError::Malformed { .. })));
            }
        }
    }
}

#[test]
fn a_record_that_lacks_a_required_field_is_malformed() {
    for (name, event) in golden_events() {
        let (path, fields) = optional(&event);
        let Cbor::List(list) = golden_tree(name).at(path).clone() else {
            panic!("{name} has no fields");
        };
        for field in (0..list.len()).filter(|field| !fields.contains(field)) {
            assert_malformed::<Record>(&without_field(name, &[path, &[field]].concat()), name);
        }
    }
}

#[test]
fn a_record_with_bytes_behind_its_end_is_malformed() {
    let bytes = [golden("attempt_started"), vec![0]].concat();
    let what = "trailing bytes".to_owned();
    assert_eq!(Record::decode(&bytes), Err(RecordError::Malformed { what }));
}

#[test]
fn unknown_events_reasons_classes_and_causes_are_malformed() {
    let word = |word: &str| minicbor::to_vec(word).unwrap();
    for (name, path, unknown) in [
        ("job_suspended", &[1, 0][..], minicbor::to_vec(25).unwrap()),
        ("job_stopping", &[1, 1, 0], word("boredom")),
        ("attempt_failed", &[1, 1, 0, 3], word("odd")),
        ("attempt_failed", &[1, 1, 0, 2, 0], word("gremlins")),
        // A number that is no HTTP status.
        ("attempt_failed", &[1, 1, 0, 2, 0], word("status")),
    ] {
        let mut fields = golden_tree(name);
        *fields.at(path) = Cbor::Plain(unknown);
        let found = read(&fields);
        assert!(matches!(found, Err(RecordError::Malformed { .. })), "{name}: {found:?}");
    }
}

#[test]
fn every_cause_is_read_as_it_was_written() {
    use undaunted_policy::{FailureCause, FailureClass};
    let facts = golden_events();
    let found = facts.into_iter().find_map(|(_, event)| match event {
        Event::Item(ItemEvent::AttemptFailed(failed)) => Some(failed),
        _ => None,
    });
    let mut failed = found.unwrap();
    for cause in [
        FailureCause::Exit(0),
        FailureCause::Exit(i32::MIN),
        FailureCause::Signal(9),
        FailureCause::Timeout,
        FailureCause::Network,
        FailureCause::Status(0),
        FailureCause::Status(u16::MAX),
        FailureCause::Refused,
        FailureCause::Unreadable,
        FailureCause::Interrupted,
        FailureCause::Other(FailureClass::Transient),
        FailureCause::Other(FailureClass::Throttled),
        FailureCause::Other(FailureClass::Permanent),
    ] {
        failed.cause = cause;
        failed.class = cause.class();
        let written = record(Event::Item(ItemEvent::AttemptFailed(failed.clone())));
        assert_eq!(Record::decode(&written.encode()), Ok(written));
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_read_or_refused_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = Record::decode(&bytes);
        let mut with_format = vec![FORMAT];
        with_format.extend(bytes);
        let _ = Record::decode(&with_format);
    }

    #[test]
    fn a_damaged_record_is_refused_or_is_another_record(
        which in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        check_damaged::<Record>(which.get(&golden_events()).0, place, byte);
    }
}
