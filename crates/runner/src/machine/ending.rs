//! How attempts of programs ended, put together from what their keeper has noted.
//!
//! This is done where the output is, not in the event loop: a keeper on another machine does the
//! same, and sends the finished [`AttemptEnd`]. No secret leaves in any text.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use undaunted_engine::event;
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::{Keeps, Task};
use undaunted_policy::mutant::{self, Mutant};
use undaunted_policy::{Cause, Class, Timestamp};

use crate::clock::wall;
use crate::executor::{AttemptFate, ExecutorMessage};
use crate::failpoint;
use crate::keeper::{KeeperEvent, Refusal};
use crate::lock::locked;
use crate::secrets::Secrets;
use crate::spool::{
    CaptureError, End, EndedBy, Exited, Fate, NotStarted, Recovered, Refusing, Spool,
    SpooledOutput, Vanished,
};

/// The most of an output that can be captured.
const CAPTURE: u64 = 16 << 20;
/// The most of an output that items can be read from.
const INPUT: u64 = 1 << 30;
/// How much of the end of an output rules look at.
const LINES: usize = 1000;
/// How many lines, and bytes, of a failed command people see.
const SHOWN_LINES: usize = 20;
const SHOWN_BYTES: usize = 4 << 10;

/// Errors of a machine that is short of something just now: EAGAIN, ENOMEM, ENFILE, EMFILE, ENOSPC.
/// They say nothing about the program.
const PASSING: [i32; 5] = [11, 12, 23, 24, 28];

/// What commands wrote, for whoever knows the place.
pub trait Outputs {
    /// The whole of an output.
    fn capture(&self, kept: &SpooledOutput, limit: u64) -> Result<Vec<u8>, CaptureError>;

    fn last_lines(&self, kept: &SpooledOutput, lines: usize) -> io::Result<String>;

    /// The files a running command writes to: output and error output.
    fn slot(&self, number: u32) -> [PathBuf; 2];
}

impl Outputs for Spool {
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

/// What has to be known of an attempt to put its end together.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// The most of its output that is read, if something depends on it.
    pub(crate) capture: Option<u64>,
    /// Bytes of output after which it is ended.
    pub(crate) output_limit: Option<u64>,
    pub(crate) program: String,
    pub(crate) working_dir: String,
}

impl Expected {
    /// What is expected of an attempt that is about to begin.
    pub(crate) fn of(task: &Task) -> Self {
        Self {
            capture: task.wants_output.then(|| most(task.keeps)),
            output_limit: task.output_limit,
            program: task.work.program().unwrap_or_default().to_owned(),
            working_dir: task.working_dir.clone(),
        }
    }
}

/// The most of an output that can be used.
pub(crate) const fn most(keeps: Keeps) -> u64 {
    match keeps {
        Keeps::Items => INPUT,
        Keeps::Value | Keeps::All => CAPTURE,
    }
}

/// An attempt of a program that is on record as started, and may have been so before this engine was.
#[derive(Clone, Debug, Default)]
pub struct OnRecord {
    pub(crate) expected: Expected,
    /// How long it may take by itself.
    pub(crate) timeout: Option<Duration>,
    /// The receipt token of its command, which its processes hold.
    pub(crate) token: Option<String>,
}

/// Puts together the ends of the attempts of one job.
pub struct Endings {
    secrets: Secrets,
    expected: Mutex<BTreeMap<u64, Expected>>,
}

impl Endings {
    /// For the attempts that are on record as started. Made before a keeper is reached, which may tell
    /// of their ends at once.
    pub fn new(secrets: Secrets, started: &BTreeMap<u64, OnRecord>) -> Self {
        let expected = started.iter();
        let expected = expected.map(|(start, it)| (*start, it.expected.clone()));
        Self {
            secrets,
            expected: Mutex::new(expected.collect()),
        }
    }

    /// An attempt is about to begin.
    pub fn expect(&self, start: u64, expected: Expected) {
        locked(&self.expected).insert(start, expected);
    }

    /// The end of an attempt is on record. Until then a keeper may tell of it more than once.
    pub fn forget(&self, start: u64) {
        locked(&self.expected).remove(&start);
    }

    /// What the event loop is told of something that a keeper says; nothing if that is no news.
    pub fn message(&self, event: KeeperEvent, outputs: &dyn Outputs) -> Option<ExecutorMessage> {
        Some(match event {
            KeeperEvent::Began(running) => ExecutorMessage::Began {
                start: running.id,
                files: running.slot.map(|slot| outputs.slot(slot)),
            },
            KeeperEvent::Exited(exited) => {
                ExecutorMessage::Ended(Box::new(self.end(&exited, outputs)))
            }
            KeeperEvent::Refused { id: Some(id), why } => match why {
                // It runs, or has run: its end comes or has come.
                Refusal::Known => return None,
                Refusal::Cancelled => ExecutorMessage::NotBegun(id),
                why => ExecutorMessage::Refused(why),
            },
            KeeperEvent::Refused { id: None, why } => ExecutorMessage::Refused(why),
            KeeperEvent::Gone => ExecutorMessage::KeeperGone,
        })
    }

    fn end(&self, exited: &Exited, outputs: &dyn Outputs) -> AttemptEnd {
        failpoint::reach("ended-before", exited.id);
        let expected = locked(&self.expected).get(&exited.id).cloned();
        ended(
            exited,
            outputs,
            &self.secrets,
            &expected.unwrap_or_default(),
        )
    }

    /// What became of attempts that are on record as started, and which others a spool knows of.
    pub fn fates(
        &self,
        started: &BTreeMap<u64, OnRecord>,
        recovered: &Recovered,
        outputs: &dyn Outputs,
        now: Timestamp,
    ) -> (BTreeMap<u64, AttemptFate>, BTreeSet<u64>) {
        let others = recovered.known().map(|(start, _)| start);
        let others = others.filter(|start| !started.contains_key(start));
        let others = others.collect();
        let fates = started.iter().map(|(&start, on_record)| {
            let fate = match recovered.fate(start) {
                Fate::Vanished(_) if mutant::is(Mutant::SecondStart) => Fate::NeverBegan,
                Fate::Running(_) if mutant::is(Mutant::TakeoverForgetsRunning) => {
                    Fate::Vanished(None)
                }
                fate => fate,
            };
            let fate = match fate {
                Fate::NeverBegan => AttemptFate::Begin,
                Fate::Running(_) => AttemptFate::Wait,
                Fate::Exited(exited) => AttemptFate::Ended(Box::new(self.end(&exited, outputs))),
                Fate::Vanished(found) => {
                    let found = found.as_ref();
                    let mut end = vanished(start, found, outputs, &self.secrets, now);
                    if found.is_some_and(|found| was_overdue(found, on_record.timeout, now)) {
                        end.failure = Some(Cause::Timeout);
                    }
                    AttemptFate::Ended(Box::new(end))
                }
            };
            (start, fate)
        });
        (fates.collect(), others)
    }
}

/// Whether a command was found alive after its time, because no keeper was there to end it.
fn was_overdue(found: &Vanished, timeout: Option<Duration>, now: Timestamp) -> bool {
    let ran = now.since(wall(found.began));
    found.ended > 0 && timeout.is_some_and(|timeout| ran >= timeout)
}

/// How an attempt ended, as the engine is told.
fn ended(
    exited: &Exited,
    outputs: &dyn Outputs,
    secrets: &Secrets,
    expected: &Expected,
) -> AttemptEnd {
    let failure = cause(exited);
    let mut end = AttemptEnd {
        start: exited.id,
        failure,
        took: exited
            .ended
            .duration_since(exited.began)
            .unwrap_or_default(),
        stdout: kept(&exited.stdout),
        stderr: kept(&exited.stderr),
        left: exited.left,
        ..AttemptEnd::default()
    };
    if let Some(most) = expected.capture {
        match outputs.capture(&exited.stdout, most) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                end.output = Some(secrets.redact(text, false));
            }
            Err(error) if end.failure.is_none() => {
                end.failure = Some(Cause::Unreadable);
                end.error = format!("it succeeded, but its output cannot be used: {error}");
                return end;
            }
            Err(_) => {}
        }
    }
    if failure.is_some() {
        end.stderr_end = end_of(&exited.stderr, outputs, secrets);
        end.stdout_end = end_of(&exited.stdout, outputs, secrets);
        end.error = told(exited, expected).unwrap_or_else(|| {
            // Some programs complain on their output.
            let quiet = end.stderr_end.trim().is_empty();
            let text = if quiet {
                &end.stdout_end
            } else {
                &end.stderr_end
            };
            last_lines(text)
        });
    }
    end
}

/// The end of an attempt that vanished.
fn vanished(
    start: u64,
    vanished: Option<&Vanished>,
    outputs: &dyn Outputs,
    secrets: &Secrets,
    now: Timestamp,
) -> AttemptEnd {
    let said = vanished.map(|it| end_of(&it.stderr, outputs, secrets));
    let said = said.unwrap_or_default();
    let left = match vanished {
        Some(it) if it.survived > 0 => {
            format!("; {} of its processes could not be ended", it.survived)
        }
        _ => String::new(),
    };
    let fate = match vanished {
        Some(it) if it.ended > 0 => {
            "it was found running with nobody to wait for it, and was ended"
        }
        Some(_) => "it was gone when the job was gone on with, and nobody knows how it ended",
        None => "nobody knows whether it began or how it ended",
    };
    let said = match last_lines(&said).as_str() {
        "" => String::new(),
        lines => format!("\n{lines}"),
    };
    AttemptEnd {
        start,
        failure: Some(Cause::Interrupted),
        // How long one ran that was found gone, nobody knows.
        took: vanished
            .filter(|it| it.ended > 0)
            .map(|it| now.since(wall(it.began)))
            .unwrap_or_default(),
        error: format!("{fate}{left}{said}"),
        stdout: vanished.and_then(|it| kept(&it.stdout)),
        stderr: vanished.and_then(|it| kept(&it.stderr)),
        ..AttemptEnd::default()
    }
}

/// The last lines of an output. Secrets are taken out before anything is cut to what people see: half
/// a secret would not be found.
fn end_of(kept: &SpooledOutput, outputs: &dyn Outputs, secrets: &Secrets) -> String {
    let text = outputs.last_lines(kept, LINES).unwrap_or_default();
    // The line break at the end is not part of it.
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    let is_rest = kept.length > length.saturating_add(2);
    secrets.redact(text, is_rest)
}

fn cause(exited: &Exited) -> Option<Cause> {
    match (exited.why, exited.end) {
        (EndedBy::Timeout, _) => Some(Cause::Timeout),
        // What writes too much will do so again.
        (EndedBy::OutputLimit, _) => Some(Cause::Other(Class::Permanent)),
        (EndedBy::Cancelled, _) => Some(Cause::Interrupted),
        (EndedBy::Itself, End::Code(0)) => None,
        (EndedBy::Itself, End::Code(code)) => Some(Cause::Exit(code)),
        (EndedBy::Itself, End::Signal(signal)) => Some(Cause::Signal(signal)),
        (EndedBy::Itself, End::NotStarted(NotStarted { errno, .. }))
            if PASSING.contains(&errno) =>
        {
            Some(Cause::Other(Class::Transient))
        }
        // A status is said of programs, as a shell says it; a folder that is missing has none.
        (EndedBy::Itself, End::NotStarted(NotStarted { refusing, .. }))
            if refusing != Refusing::Program =>
        {
            Some(Cause::Other(Class::Permanent))
        }
        (EndedBy::Itself, end @ End::NotStarted(_)) => Some(Cause::Exit(end.shell_status())),
    }
}

/// What we know better than the command's last lines.
fn told(exited: &Exited, expected: &Expected) -> Option<String> {
    let Expected {
        program,
        working_dir: directory,
        ..
    } = expected;
    match (exited.why, exited.end) {
        (EndedBy::OutputLimit, _) => {
            let most = expected.output_limit.unwrap_or_default();
            Some(format!(
                "it wrote more than its output_limit of {most} bytes"
            ))
        }
        (_, End::NotStarted(NotStarted { errno, refusing })) => {
            let error = std::io::Error::from_raw_os_error(errno);
            Some(match refusing {
                Refusing::Program if errno == 2 => {
                    format!("`{program}` is not installed, or not where PATH looks")
                }
                Refusing::Program => format!("`{program}` cannot be started: {error}"),
                Refusing::WorkingDirectory => {
                    format!("its working directory `{directory}` cannot be used: {error}")
                }
                Refusing::Stdin => format!("its input cannot be opened: {error}"),
            })
        }
        _ => None,
    }
}

fn last_lines(text: &str) -> String {
    let text = text.trim_end();
    let from = text.len().saturating_sub(SHOWN_BYTES);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at));
    let text = from.and_then(|from| text.get(from..)).unwrap_or_default();
    let mut lines: Vec<&str> = text.rsplit('\n').take(SHOWN_LINES).collect();
    lines.reverse();
    lines.join("\n")
}

fn kept(kept: &SpooledOutput) -> Option<event::Kept> {
    (kept.length > 0).then_some(event::Kept {
        length: kept.length,
        head: kept.head,
        tail: kept.tail,
        segment: kept.segment,
        offset: kept.offset,
    })
}
