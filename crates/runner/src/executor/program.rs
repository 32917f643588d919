//! Programs: shell commands and agents, run by the keeper.
//!
//! From a task to what the keeper is told, and from what it says back to how an attempt ended. A
//! secret goes in by the environment and comes out of no text.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use undaunted_engine::event;
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::{Task, TaskWork};
use undaunted_policy::{Cause, Class, Timestamp};

use crate::clock::wall;
use crate::keeper::Spec;
use crate::machine::Outputs;
use crate::secrets::Secrets;
use crate::spool::{End, Exited, Kept, NotStarted, Refusing, Vanished, Why};

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

/// What is to be read of an attempt when it has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// The whole output, because something depends on it.
    pub(crate) output: bool,
    /// It gives the items of a map.
    pub(crate) is_input: bool,
    pub(crate) output_limit: Option<u64>,
}

impl Reading {
    const fn most(self) -> u64 {
        if self.is_input { INPUT } else { CAPTURE }
    }
}

/// What the keeper is told. `around` is the environment the engine was started with.
pub(crate) fn spec(
    task: &Task,
    start: u64,
    around: &[(OsString, OsString)],
    secrets: &Secrets,
    grace: Duration,
    reading: Reading,
) -> Option<Spec> {
    let TaskWork::Run { argv } = &task.work else {
        return None;
    };
    let mut env = around.to_vec();
    let own = secrets.iter().chain(&task.env);
    for (name, value) in own {
        let (name, value) = (OsString::from(name), OsString::from(value));
        match env.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => env.push((name, value)),
        }
    }
    Some(Spec {
        env,
        working_dir: PathBuf::from(&task.working_dir),
        timeout: task.timeout,
        output_limit: task.output_limit,
        stdin: task.stdin.as_ref().map(PathBuf::from),
        capture: match (task.keeps_all, reading.output) {
            (true, _) => u64::MAX,
            (false, true) => reading.most(),
            (false, false) => 0,
        },
        grace,
        ..Spec::new(start, argv)
    })
}

/// How an attempt ended, as the engine is told. `what` is its program and its working directory, in
/// case it could not be started.
pub(crate) fn ended(
    exited: &Exited,
    outputs: &dyn Outputs,
    secrets: &Secrets,
    reading: Reading,
    what: &[String; 2],
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
    if reading.output {
        match outputs.capture(&exited.stdout, reading.most()) {
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
        end.error = told(exited, reading, what).unwrap_or_else(|| {
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
pub(crate) fn vanished(
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
fn end_of(kept: &Kept, outputs: &dyn Outputs, secrets: &Secrets) -> String {
    let text = outputs.last_lines(kept, LINES).unwrap_or_default();
    // The line break at the end is not part of it.
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    let is_rest = kept.length > length.saturating_add(2);
    secrets.redact(text, is_rest)
}

fn cause(exited: &Exited) -> Option<Cause> {
    match (exited.why, exited.end) {
        (Why::Timeout, _) => Some(Cause::Timeout),
        // What writes too much will do so again.
        (Why::OutputLimit, _) => Some(Cause::Other(Class::Permanent)),
        (Why::Cancelled, _) => Some(Cause::Interrupted),
        (Why::Itself, End::Code(0)) => None,
        (Why::Itself, End::Code(code)) => Some(Cause::Exit(code)),
        (Why::Itself, End::Signal(signal)) => Some(Cause::Signal(signal)),
        (Why::Itself, End::NotStarted(NotStarted { errno, .. })) if PASSING.contains(&errno) => {
            Some(Cause::Other(Class::Transient))
        }
        // A status is said of programs, as a shell says it; a folder that is missing has none.
        (Why::Itself, End::NotStarted(NotStarted { refusing, .. }))
            if refusing != Refusing::Program =>
        {
            Some(Cause::Other(Class::Permanent))
        }
        (Why::Itself, end @ End::NotStarted(_)) => Some(Cause::Exit(end.shell_status())),
    }
}

/// What we know better than the command's last lines.
fn told(exited: &Exited, reading: Reading, what: &[String; 2]) -> Option<String> {
    let [program, directory] = what;
    match (exited.why, exited.end) {
        (Why::OutputLimit, _) => {
            let most = reading.output_limit.unwrap_or_default();
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

fn kept(kept: &Kept) -> Option<event::Kept> {
    (kept.length > 0).then_some(event::Kept {
        length: kept.length,
        head: kept.head,
        tail: kept.tail,
        segment: kept.segment,
        offset: kept.offset,
    })
}
