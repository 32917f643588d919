//! State files of another system, for `state import`.
//!
//! A file fits a workflow or is refused with the key that does not fit. A file that fits makes a job that
//! keeps all laws, whose attempts stay within their limits, and which exports the same state.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;
use undaunted_engine::breaker::{AdmissionControl, BreakerRecord, BreakerState};
use undaunted_engine::decide::react;
use undaunted_engine::effect::ready;
use undaunted_engine::event::{Event, ImportedCommand, JobEvent, NewItem, Record};
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::Job;
use undaunted_engine::law::{violations_by_record, violations_in_state};
use undaunted_engine::state_file::shape::RetryCheckpointState;
use undaunted_engine::state_file::{ExportedPast, ImportedState, export, import};
use undaunted_engine::view::history::Histories;
use undaunted_policy::{FailureCause, Timestamp};

use super::drive::{admission_of, gate_of};
use super::law::uphold;
use super::record::reread;
use super::waiting_flow::submitted;

const LIST: &str = "
name: list
commands:
  - shell: one
    retry_config: {attempts: 3, initial_delay: 1s, retry_budget: 1m}
    breaker: {name: gate}
  - shell: two
    retry_config: {attempts: unlimited, initial_delay: 1s, backoff: fibonacci, jitter: decorrelated}
    on_failure: {shell: mend, max_attempts: 2}
";
const MAP: &str = "
mode: mapreduce
map:
  input: items.json
  max_parallel: 2
  agent_template:
    - id: first
      shell: echo ${item}
      retry_config: {attempts: 5, initial_delay: 10ms, backoff: {custom: {delays: [1s, 2s]}}}
    - id: second
      shell: echo ${item} repeated
reduce: [{id: last, shell: done}]
";

pub fn state_import(data: &[u8]) -> BTreeSet<&'static str> {
    let state: RetryCheckpointState = match serde_json::from_slice(data) {
        Ok(state) => state,
        Err(error) => {
            uphold("an error has words", !error.to_string().is_empty(), &error);
            return BTreeSet::from(["unreadable"]);
        }
    };
    written_again(&state);
    let whole: Value = serde_json::from_slice(data).unwrap_or_default();
    times(&whole);
    jobs().iter().map(|job| taken(&state, job)).collect()
}

fn jobs() -> &'static [Job] {
    static JOBS: OnceLock<Vec<Job>> = OnceLock::new();
    JOBS.get_or_init(|| {
        let jobs = [LIST, MAP].map(|text| submitted("imported", text));
        jobs.into_iter().flatten().map(|(_, job)| job).collect()
    })
}

/// A state that was read is written so that the same is read again.
fn written_again(state: &RetryCheckpointState) {
    let text = serde_json::to_string(state).unwrap_or_default();
    let repeated: Result<RetryCheckpointState, _> = serde_json::from_str(&text);
    let same = repeated.as_ref().is_ok_and(|repeated| repeated == state);
    uphold("a state is written as it was read", same, &(state, &repeated));
}

/// What is read as a time has the form of one.
fn times(of: &Value) {
    let commands = of.get("command_retry_states").and_then(Value::as_object);
    for command in commands.into_iter().flat_map(|them| them.values()) {
        let due = command.get("next_retry_at").and_then(Value::as_str);
        let plain = due.is_none_or(|due| {
            let digits = due.replace(|sign: char| sign.is_ascii_digit(), "0");
            let ends = ["Z", "+00:00", "-00:00"];
            let plain = ends.iter().find_map(|end| digits.strip_suffix(end));
            let whole = plain.map(|plain| plain.split_once('.').unwrap_or((plain, "0")));
            whole.is_some_and(|(whole, part)| {
                whole == "0000-00-00T00:00:00" && part.bytes().all(|digit| digit == b'0')
            })
        });
        uphold("what is read as a time is one", plain, &due);
    }
}

fn taken(state: &RetryCheckpointState, submitted: &Job) -> &'static str {
    let imported = match import(state, submitted, None) {
        Ok(imported) => imported,
        Err(error) => {
            uphold("a refusal names what does not fit", error.to_string().contains('`'), &error);
            return "refused";
        }
    };
    let mut job = submitted.clone();
    let commands = counted(&imported);
    let event = imported.event.clone();
    let mut record = Record { at: job.times.last_at, event };
    // Sums of more than 584 years saturate, so bytes are compared.
    let written = record.encode();
    let read = reread(&written, Record::decode, Record::encode);
    uphold("what is imported can be stored", read.is_some_and(|read| read.encode() == written), &record);
    lawfully(&mut job, &record);
    exported(submitted, (&job, &record), &commands);
    record.event = Event::Job(JobEvent::Suspended);
    lawfully(&mut job, &record);
    for breaker in &imported.breakers {
        uphold("a breaker has a name", !breaker.name.is_empty(), breaker);
        let mut state = BreakerState::with_settings(breaker.settings);
        let fact = breaker.fact(&state, record.at);
        let is_restored = fact.is_none_or(|fact| {
            state.apply(&BreakerRecord::by_hand(vec![fact])).len() == 1
                && breaker.fact(&state, record.at).is_none()
        });
        uphold("a breaker is restored once", is_restored, &(breaker, state));
    }
    let word = match (commands.is_empty(), imported.succeeded, imported.pending) {
        (true, ..) => "nothing",
        (false, 0, 0) => "used up",
        (false, 0, _) => "pending",
        (false, ..) => "succeeded",
    };
    resume_and_fail_all(job);
    word
}

/// The commands that are told to the new job.
fn counted(imported: &ImportedState) -> Vec<ImportedCommand> {
    let Event::Job(JobEvent::StateImported { commands, .. }) = &imported.event else {
        uphold("an import is an event of the job", false, imported);
        return Vec::new();
    };
    let pending = commands.iter().filter(|it| it.due.is_some()).count();
    let skipped = commands.iter().filter(|it| it.has_succeeded()).count();
    let same =
        commands.len() == imported.commands && pending == imported.pending && imported.succeeded <= skipped;
    uphold("what is counted is there", same, imported);
    commands.clone()
}

fn lawfully(job: &mut Job, record: &Record) {
    let broken = violations_by_record(job, record);
    uphold("what is recorded keeps the laws", broken.is_empty(), &(record, &broken));
    job.apply(record);
    let broken = violations_in_state(job);
    uphold("an imported job keeps the laws", broken.is_empty(), &(record, &broken));
}

/// What is exported is imported and exported again unchanged.
fn exported(submitted: &Job, (job, record): (&Job, &Record), commands: &[ImportedCommand]) {
    let mut past = ExportedPast::default();
    past.take(job, record);
    let breakers = AdmissionControl::default();
    let state = export(job, &breakers, &Histories::of_all().items, &past);
    let Ok(repeated) = import(&state, submitted, None) else {
        return uphold("what is exported can be imported", false, &state);
    };
    for command in counted(&repeated) {
        let known = commands.iter().any(|it| {
            (it.command, &it.item, it.attempts, it.spent, it.due)
                == (command.command, &command.item, command.attempts, command.spent, command.due)
        });
        uphold("what is exported is what was imported", known, &(command, commands));
    }
    let mut again = submitted.clone();
    let record = Record { event: repeated.event, ..record.clone() };
    lawfully(&mut again, &record);
    let mut past = ExportedPast::default();
    past.take(&again, &record);
    let twice = export(&again, &breakers, &Histories::of_all().items, &past);
    uphold("what is imported is exported unchanged", twice == state, &(&state, &twice));
}

/// Resumes the job and lets all attempts fail.
fn resume_and_fail_all(mut job: Job) {
    let mut now = job.times.last_at.after(Duration::from_secs(1));
    feed(&mut job, &Input::Resume { last_seen: None }, now);
    feed(&mut job, &Input::Woke, now);
    let items =
        ["a", "b", "1", "x/y"].map(|name| NewItem { identity: name.to_owned(), input: "1".to_owned() });
    let items = items.to_vec();
    feed(&mut job, &Input::ItemsRead { step: StepId(0), items, warning: None }, now);
    for _ in 0..6 {
        let mut breakers = admission_of(&job, now);
        for item in ready(&job, &breakers, now) {
            let refused = None;
            let gate = gate_of(&job, &mut breakers, item);
            feed(&mut job, &Input::Start { item, refused, gate }, now);
        }
        let running: Vec<StartId> = job.starts.running.keys().copied().collect();
        for start in running {
            let end = AttemptEnd { start, failure: Some(FailureCause::Exit(1)), ..AttemptEnd::default() };
            feed(&mut job, &Input::Ended(Box::new(end)), now);
        }
        now = now.after(Duration::from_secs(40));
        feed(&mut job, &Input::Woke, now);
    }
    feed(&mut job, &Input::Resume { last_seen: None }, Timestamp::MAX);
}

fn feed(job: &mut Job, input: &Input, now: Timestamp) {
    for record in react(&mut job.clone(), input, now).records {
        lawfully(job, &record);
    }
}
