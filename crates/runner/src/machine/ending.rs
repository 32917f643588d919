//! Turns the exit of a command, as its keeper reports it, into the end of an attempt.
//!
//! This is done where the output is, not in the event loop: a keeper on another machine could do the same and
//! send the complete [`AttemptEnd`]. The keeper has redacted secrets from the output.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use undaunted_engine::event;
use undaunted_engine::id::StartId;
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::mutant::{self, Mutant};
use undaunted_engine::task::{KeptOutput, Task};
use undaunted_policy::{FailureCause, FailureClass, Timestamp};

use crate::clock::wall;
use crate::keeper::KeeperEvent;
use crate::spool::CaptureError;
use crate::{
    AttemptFate, CommandEnd, CommandExit, CommandFate, EndedBy, ExecutorMessage, KeeperRefusal,
    NotStartedCommand, RecoveredSpool, Spool, SpooledOutput, StartRefusal, VanishedCommand, failpoint,
    locked,
};

/// The most bytes of an output that can be captured.
const CAPTURE: u64 = 16 << 20;
/// The most bytes of an output that items can be read from.
const INPUT: u64 = 1 << 30;
/// How many of the last lines of an output are matched by rules.
const LINES: usize = 1000;
/// How much of the output of a failed command is shown.
const SHOWN_LINES: usize = 20;
const SHOWN_BYTES: usize = 4 << 10;

/// The machine lacks a resource for now, which is no fault of the program: EAGAIN, ENOMEM, ENFILE, EMFILE,
/// ENOSPC.
const PASSING: [i32; 5] = [11, 12, 23, 24, 28];

pub trait CapturedOutputs {
    fn capture(&self, kept: &SpooledOutput, limit: u64) -> Result<Vec<u8>, CaptureError>;

    fn last_lines(&self, kept: &SpooledOutput, lines: usize) -> io::Result<String>;

    /// The files a running command writes: output and error output.
    fn slot(&self, number: u32) -> [PathBuf; 2];
}

impl CapturedOutputs for Spool {
    fn capture(&self, kept: &SpooledOutput, limit: u64) -> Result<Vec<u8>, CaptureError> {
        self.capture(kept, limit)
    }

    fn last_lines(&self, kept: &SpooledOutput, lines: usize) -> io::Result<String> {
        self.last_lines(kept, lines)
    }

    fn slot(&self, number: u32) -> [PathBuf; 2] {
        self.slot(number)
    }
}

#[derive(Clone, Debug, Default)]
pub struct ExpectedEnd {
    /// The most bytes of output to read, if the output is needed.
    pub(crate) capture: Option<u64>,
    /// In bytes; a command that writes more is ended.
    pub(crate) output_limit: Option<u64>,
    pub(crate) program: String,
    pub(crate) working_dir: String,
}

impl ExpectedEnd {
    pub(crate) fn of(task: &Task) -> Self {
        Self {
            capture: task.wants_output.then(|| most(task.keeps)),
            output_limit: task.output_limit,
            program: task.work.program().unwrap_or_default().to_owned(),
            working_dir: task.working_dir.clone(),
        }
    }
}

pub(crate) const fn most(keeps: KeptOutput) -> u64 {
    match keeps {
        KeptOutput::Items => INPUT,
        KeptOutput::Value | KeptOutput::All => CAPTURE,
    }
}

/// An attempt of a program that is on record as started, perhaps by an earlier engine.
#[derive(Clone, Debug, Default)]
pub struct RecordedAttempt {
    pub(crate) expected: ExpectedEnd,
    pub(crate) timeout: Option<Duration>,
    /// The receipt token of its command, which is in the environment of its processes.
    pub(crate) token: Option<String>,
}

/// Completes the ends of the attempts of one job.
pub struct AttemptEnds {
    expected: Mutex<BTreeMap<StartId, ExpectedEnd>>,
}

impl AttemptEnds {
    /// For the attempts on record as started. Created before connecting to a keeper, which may report ends at
    /// once.
    pub fn new(started: &BTreeMap<StartId, RecordedAttempt>) -> Self {
        let expected = started.iter().map(|(start, it)| (*start, it.expected.clone()));
        Self { expected: Mutex::new(expected.collect()) }
    }

    pub fn expect(&self, start: StartId, expected: ExpectedEnd) {
        locked(&self.expected).insert(start, expected);
    }

    /// The end of an attempt is on record. Before that, a keeper may report it more than once.
    pub fn forget(&self, start: StartId) {
        locked(&self.expected).remove(&start);
    }

    /// None if the event changes nothing.
    pub fn message(&self, event: KeeperEvent, outputs: &dyn CapturedOutputs) -> Option<ExecutorMessage> {
        Some(match event {
            KeeperEvent::Began(running) => ExecutorMessage::Began {
                start: StartId(running.id),
                at: running.began.map(wall),
                files: running.slot.map(|slot| outputs.slot(slot)),
            },
            KeeperEvent::Exited(exited) => ExecutorMessage::Ended(Box::new(self.end(&exited, outputs))),
            KeeperEvent::Refused { id: Some(id), why } => match why {
                // The attempt runs or has run, so its end is reported anyway.
                KeeperRefusal::Known => return None,
                KeeperRefusal::Cancelled => ExecutorMessage::NotBegun(StartId(id)),
                why => ExecutorMessage::Refused(why),
            },
            KeeperEvent::Refused { id: None, why } => ExecutorMessage::Refused(why),
            KeeperEvent::Gone => ExecutorMessage::KeeperGone,
        })
    }

    fn end(&self, exited: &CommandExit, outputs: &dyn CapturedOutputs) -> AttemptEnd {
        failpoint::reach("ended-before", exited.id);
        let expected = locked(&self.expected).get(&StartId(exited.id)).cloned();
        ended(exited, outputs, &expected.unwrap_or_default())
    }

    /// The fates of attempts on record as started, and the other attempts that a spool knows of.
    pub fn fates(
        &self,
        started: &BTreeMap<StartId, RecordedAttempt>,
        recovered: &RecoveredSpool,
        outputs: &dyn CapturedOutputs,
        now: Timestamp,
    ) -> (BTreeMap<StartId, AttemptFate>, BTreeSet<StartId>) {
        let others = recovered.known().map(|(start, _)| StartId(start));
        let others = others.filter(|start| !started.contains_key(start)).collect();
        let fates = started.iter().map(|(&start, on_record)| {
            let mut fate = recovered.fate(start.0);
            if matches!(fate, CommandFate::Running(_)) && mutant::is(Mutant::ReconnectLosesRunning) {
                fate = CommandFate::Vanished(None);
            }
            let fate = match fate {
                CommandFate::NeverBegan => AttemptFate::Begin,
                CommandFate::Vanished(_) if mutant::is(Mutant::UnknownAttemptRestarted) => AttemptFate::Begin,
                CommandFate::Running(running) => AttemptFate::Wait(running.began.map(wall)),
                CommandFate::Exited(exited) => AttemptFate::Ended(Box::new(self.end(&exited, outputs))),
                CommandFate::Vanished(found) => {
                    let found = found.as_ref();
                    let mut end = vanished(start, found, outputs, now);
                    if found.is_some_and(|found| was_overdue(found, on_record.timeout, now)) {
                        end.failure = Some(FailureCause::Timeout);
                    }
                    AttemptFate::Ended(Box::new(end))
                }
            };
            (start, fate)
        });
        (fates.collect(), others)
    }
}

/// Whether a command was found running after its timeout, because no keeper was alive to end it.
fn was_overdue(found: &VanishedCommand, timeout: Option<Duration>, now: Timestamp) -> bool {
    let ran = now.since(wall(found.began));
    found.ended > 0 && timeout.is_some_and(|timeout| ran >= timeout)
}

fn ended(exited: &CommandExit, outputs: &dyn CapturedOutputs, expected: &ExpectedEnd) -> AttemptEnd {
    let failure = cause(exited);
    let mut end = AttemptEnd {
        start: StartId(exited.id),
        began: Some(wall(exited.began)),
        failure,
        took: exited.ended.duration_since(exited.began).unwrap_or_default(),
        stdout: kept(&exited.stdout),
        stderr: kept(&exited.stderr),
        left: exited.left,
        ..AttemptEnd::default()
    };
    if let Some(most) = expected.capture {
        match outputs.capture(&exited.stdout, most) {
            Ok(bytes) => {
                end.output = Some(String::from_utf8_lossy(&bytes).into_owned());
            }
            Err(error) if end.failure.is_none() => {
                end.failure = Some(FailureCause::Unreadable);
                end.error = format!("the command succeeded, but its output cannot be used: {error}");
                return end;
            }
            Err(_) => {}
        }
    }
    if failure.is_some() {
        end.stderr_end = end_of(&exited.stderr, outputs);
        end.stdout_end = end_of(&exited.stdout, outputs);
        end.error = explanation(exited, expected).unwrap_or_else(|| {
            // Some programs write errors to their output.
            let quiet = end.stderr_end.trim().is_empty();
            let text = if quiet { &end.stdout_end } else { &end.stderr_end };
            last_lines(text)
        });
    }
    end
}

fn vanished(
    start: StartId,
    vanished: Option<&VanishedCommand>,
    outputs: &dyn CapturedOutputs,
    now: Timestamp,
) -> AttemptEnd {
    let stderr_end = vanished.map_or_else(String::new, |it| end_of(&it.stderr, outputs));
    let left = match vanished {
        Some(it) if it.survived > 0 => {
            format!("; {} of its processes could not be killed", it.survived)
        }
        _ => String::new(),
    };
    let fate = match vanished {
        Some(it) if it.ended > 0 => "the keeper died; the command was found running and was killed",
        Some(_) => "the keeper died; the command is gone, and its exit status is unknown",
        None => "it is unknown whether the command began or how it ended",
    };
    let shown = match last_lines(&stderr_end).as_str() {
        "" => String::new(),
        lines => format!("\n{lines}"),
    };
    AttemptEnd {
        start,
        began: vanished.map(|it| wall(it.began)),
        failure: Some(FailureCause::Interrupted),
        // If it was found gone, how long it ran is unknown.
        took: vanished.filter(|it| it.ended > 0).map(|it| now.since(wall(it.began))).unwrap_or_default(),
        error: format!("{fate}{left}{shown}"),
        stdout: vanished.and_then(|it| kept(&it.stdout)),
        stderr: vanished.and_then(|it| kept(&it.stderr)),
        ..AttemptEnd::default()
    }
}

fn end_of(kept: &SpooledOutput, outputs: &dyn CapturedOutputs) -> String {
    outputs.last_lines(kept, LINES).unwrap_or_default()
}

fn cause(exited: &CommandExit) -> Option<FailureCause> {
    match (exited.why, exited.end) {
        (EndedBy::Timeout, _) => Some(FailureCause::Timeout),
        // The next attempt would write too much as well.
        (EndedBy::OutputLimit, _) => Some(FailureCause::Other(FailureClass::Permanent)),
        (EndedBy::Cancelled, _) => Some(FailureCause::Interrupted),
        (EndedBy::Itself, CommandEnd::Code(0)) => None,
        (EndedBy::Itself, CommandEnd::Code(code)) => Some(FailureCause::Exit(code)),
        (EndedBy::Itself, CommandEnd::Signal(signal)) => Some(FailureCause::Signal(signal)),
        (EndedBy::Itself, CommandEnd::NotStarted(NotStartedCommand { errno, .. }))
            if PASSING.contains(&errno) =>
        {
            Some(FailureCause::Other(FailureClass::Transient))
        }
        // For a program a shell would show an exit status; for a missing folder there is none.
        (EndedBy::Itself, CommandEnd::NotStarted(NotStartedCommand { refusing, .. }))
            if refusing != StartRefusal::Program =>
        {
            Some(FailureCause::Other(FailureClass::Permanent))
        }
        (EndedBy::Itself, end @ CommandEnd::NotStarted(_)) => Some(FailureCause::Exit(end.shell_status())),
    }
}

/// An explanation that is better than the command's last lines.
fn explanation(exited: &CommandExit, expected: &ExpectedEnd) -> Option<String> {
    let ExpectedEnd { program, working_dir: directory, .. } = expected;
    match (exited.why, exited.end) {
        (EndedBy::OutputLimit, _) => {
            let most = expected.output_limit.unwrap_or_default();
            Some(format!("the output exceeds the output_limit of {most} bytes"))
        }
        (_, CommandEnd::NotStarted(NotStartedCommand { errno, refusing })) => {
            let error = std::io::Error::from_raw_os_error(errno);
            Some(match refusing {
                StartRefusal::Program if errno == 2 => {
                    format!("`{program}` is not installed, or not in a folder of PATH")
                }
                StartRefusal::Program => format!("cannot start `{program}`: {error}"),
                StartRefusal::WorkingDirectory => {
                    format!("cannot use the working directory `{directory}`: {error}")
                }
                StartRefusal::Stdin => format!("cannot open the input of the command: {error}"),
            })
        }
        _ => None,
    }
}

fn last_lines(text: &str) -> String {
    let text = text.trim_end();
    let text = text.get(text.ceil_char_boundary(text.len().saturating_sub(SHOWN_BYTES))..);
    let mut lines: Vec<&str> = text.unwrap_or_default().rsplit('\n').take(SHOWN_LINES).collect();
    lines.reverse();
    lines.join("\n")
}

fn kept(kept: &SpooledOutput) -> Option<event::SpooledPart> {
    (kept.length > 0).then_some(event::SpooledPart {
        length: kept.length,
        head: kept.head,
        tail: kept.tail,
        segment: kept.segment,
        offset: kept.offset,
    })
}
