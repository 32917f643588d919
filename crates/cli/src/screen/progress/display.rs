//! Prints the progress of a job while it runs.
//!
//! On a terminal, lines are buffered until the next frame, so there are at most ten writes a second. Elsewhere
//! every line is written at once.

use std::env;
use std::io::{self, IsTerminal, Stderr, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{ArgAction, Args};
use rustix::termios::tcgetwinsize;
use signal_hook::consts::{SIGCONT, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use undaunted_engine::breaker::{AdmissionControl, BreakerChange};
use undaunted_engine::event::{OutputPassing, Record};
use undaunted_engine::job::Job;
use undaunted_engine::view::log::{LogRecord, records_of, transition_record};
use undaunted_runner::clock::Clock;
use undaunted_runner::drive::{Observer, StoreOutage};

use super::frame::sample;
use super::sentences::{headline, leaving, warning};
use super::terminal::{CLEAR_FRAME, Terminal};
use super::{FrameLine, ProgressFrame, Sentences, Size, Speed};
use crate::screen::{records, wants_colour};

const FRAME: Duration = Duration::from_millis(100);
/// A job that ends before this has no frame: it would only flicker.
const FIRST: Duration = Duration::from_millis(200);

/// How much is printed while a job runs.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Quietness {
    /// Print nothing until the end
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Also print every start, every success and warnings; twice (-vv), all log records
    #[arg(long, short, action = ArgAction::Count, conflicts_with_all = ["quiet", "json"])]
    pub(crate) verbose: u8,

    /// Print only one JSON object, at the end
    #[arg(long)]
    pub(crate) json: bool,
}

impl Quietness {
    pub(crate) const fn of(json: bool) -> Self {
        Self { quiet: false, verbose: 0, json }
    }

    pub(crate) const fn is_quiet(self) -> bool {
        self.quiet || self.json
    }
}

pub(crate) struct Display {
    sentences: Sentences,
    /// How often `--verbose` was typed.
    verbosity: u8,
    mode: DisplayMode,
    /// Whether warnings are printed even if nothing else is.
    warns: bool,
}

enum DisplayMode {
    Quiet,
    Lines,
    Frames(Box<Frames>),
}

struct Frames {
    terminal: Terminal<Stderr>,
    lines: String,
    clock: Clock,
    speed: Speed,
    first: Instant,
    next: Instant,
    /// Set by SIGCONT: other processes may have written to the terminal.
    continued: Arc<AtomicBool>,
}

impl Display {
    pub(crate) fn new(job: &Job, quietness: Quietness) -> Self {
        let mode = if quietness.is_quiet() {
            DisplayMode::Quiet
        } else if io::stderr().is_terminal() && can_move_its_cursor() {
            DisplayMode::Frames(Box::new(Frames::new(job)))
        } else {
            DisplayMode::Lines
        };
        let verbosity = quietness.verbose;
        let sentences = Sentences::new(verbosity > 0);
        let display = Self { sentences, verbosity, mode, warns: !quietness.quiet };
        if !quietness.is_quiet() {
            say(&headline(job));
        }
        display
    }

    /// For a job whose output is printed: lines, which can be mixed with it.
    pub(crate) fn beside_output(job: &Job, quiet: bool) -> Self {
        // A map needs its job id; a single command needs no headline.
        if !quiet && job.submitted().passing != Some(OutputPassing::Through) {
            say(&headline(job));
        }
        Self {
            sentences: Sentences::new(false),
            verbosity: 0,
            mode: if quiet { DisplayMode::Quiet } else { DisplayMode::Lines },
            warns: !quiet,
        }
    }

    /// Clears the frame; the lines above it stay.
    pub(crate) fn end(&mut self) {
        if let DisplayMode::Frames(frames) = &mut self.mode {
            frames.write(&[]);
        }
    }

    fn log(&mut self, records: impl IntoIterator<Item = LogRecord>) {
        for record in records {
            if records::is_shown(&record, self.verbosity) {
                self.say(Some(&records::line(&record)));
            }
        }
    }

    fn say(&mut self, line: Option<&str>) {
        match (&mut self.mode, line) {
            (DisplayMode::Lines, Some(line)) => say(line),
            (DisplayMode::Frames(frames), Some(line)) => {
                frames.lines.push_str(line);
                frames.lines.push('\n');
            }
            _ => {}
        }
    }
}

impl Observer for Display {
    fn recorded(&mut self, job: &Job, _seq: u64, record: &Record) {
        if !matches!(self.mode, DisplayMode::Quiet) {
            let sentence = self.sentences.of(job, record);
            self.say(sentence.as_deref());
            if self.verbosity > 0 {
                self.log(records_of(job, record));
            }
        } else if let Some(warning) = warning(&record.event).filter(|_| self.warns) {
            say(&warning);
        }
    }

    fn leaving(&mut self, asked: u32, running: usize) {
        self.say(leaving(asked, running).as_deref());
    }

    fn outage(&mut self, outage: &StoreOutage<'_>) {
        self.say(Some(&outage.to_string()));
    }

    fn tick_interval(&self) -> Option<Duration> {
        matches!(self.mode, DisplayMode::Frames(_)).then_some(FRAME)
    }

    fn breaker_changed(&mut self, job: &Job, breaker: &str, change: &BreakerChange) {
        if !matches!(self.mode, DisplayMode::Quiet) {
            let sentence = self.sentences.turned(job, breaker, change);
            self.say(sentence.as_deref());
            self.log(transition_record(breaker, change));
        }
    }

    fn tick(&mut self, job: &Job, breakers: &AdmissionControl) {
        if let DisplayMode::Frames(frames) = &mut self.mode {
            frames.tick(job, breakers);
        }
    }
}

impl Frames {
    fn new(job: &Job) -> Self {
        let (clock, now) = (Clock::set(), Instant::now());
        let continued = Arc::new(AtomicBool::new(false));
        // Without the flag, a stopped job would leave an unchanged frame where other processes wrote since.
        let _ = signal_hook::flag::register(SIGCONT, Arc::clone(&continued));
        clear_frame_when_stopped();
        Self {
            terminal: Terminal::new(io::stderr(), wants_colour(&io::stderr())),
            lines: String::new(),
            speed: Speed::new(sample(job, clock.now())),
            clock,
            first: now.checked_add(FIRST).unwrap_or(now),
            next: now,
            continued,
        }
    }

    fn tick(&mut self, job: &Job, breakers: &AdmissionControl) {
        let instant = Instant::now();
        let has_frame = instant >= self.first;
        if instant < self.next || !has_frame && self.lines.is_empty() {
            return;
        }
        self.next = instant.checked_add(FRAME).unwrap_or(instant);
        let now = self.clock.now();
        self.speed.note(sample(job, now));
        let frame = if has_frame {
            ProgressFrame::of(job, breakers, &self.speed, now).lines(size())
        } else {
            Vec::new()
        };
        self.write(&frame);
    }

    fn write(&mut self, frame: &[FrameLine]) {
        if self.continued.swap(false, Ordering::Relaxed) {
            self.terminal.forget_frame();
        }
        self.terminal.write(&self.lines, frame, size());
        self.lines.clear();
    }
}

/// On Ctrl-Z the shell writes where the frame is, so the frame is cleared before the process stops.
fn clear_frame_when_stopped() {
    // Without the handler the process is stopped all the same.
    let Ok(mut signals) = Signals::new([SIGTSTP]) else { return };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let _ = io::stderr().write_all(CLEAR_FRAME.as_bytes());
            let _ = emulate_default_handler(signal);
        }
    });
}

fn say(line: &str) {
    // A closed standard error does not stop a job.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

fn can_move_its_cursor() -> bool {
    env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}

/// Read for every frame: the terminal may be resized at any time.
fn size() -> Size {
    let found = tcgetwinsize(io::stderr()).ok();
    let or = |found: Option<u16>, default: usize| match found {
        Some(known @ 1..) => usize::from(known),
        _ => default,
    };
    Size { columns: or(found.map(|size| size.ws_col), 80), rows: or(found.map(|size| size.ws_row), 24) }
}
