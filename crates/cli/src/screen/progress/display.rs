//! Shows a job while it runs.
//!
//! On a terminal, lines are buffered until the next frame, so there are at most ten writes a second. Elsewhere
//! every line is written at once.

use std::env;
use std::io::{self, IsTerminal, Stderr, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::termios::tcgetwinsize;
use signal_hook::consts::SIGCONT;
use undaunted_engine::breaker::{AdmissionControl, BreakerChange};
use undaunted_engine::event::{OutputPassing, Record};
use undaunted_engine::job::Job;
use undaunted_runner::clock::Clock;
use undaunted_runner::drive::{Observer, StoreOutage};

use super::board::{Board, seen};
use super::draw::Size;
use super::quietness::Quietness;
use super::sentences::{Sentences, headline, leaving};
use super::speed::Speed;
use super::terminal::Terminal;
use crate::screen::words::is_colourful;

const FRAME: Duration = Duration::from_millis(100);
/// A job that ends before this has no frame, which would only flicker.
const FIRST: Duration = Duration::from_millis(200);

pub(crate) struct Display {
    sentences: Sentences,
    place: Place,
}

enum Place {
    Nowhere,
    Lines,
    Frames(Box<Frames>),
}

struct Frames {
    terminal: Terminal<Stderr>,
    said: String,
    clock: Clock,
    speed: Speed,
    first: Instant,
    next: Instant,
    /// Set by SIGCONT: other processes may have written to the terminal.
    continued: Arc<AtomicBool>,
}

impl Display {
    pub(crate) fn new(job: &Job, quietness: Quietness) -> Self {
        let place = if quietness.is_quiet() {
            Place::Nowhere
        } else if io::stderr().is_terminal() && can_move_its_cursor() {
            Place::Frames(Box::new(Frames::new(job)))
        } else {
            Place::Lines
        };
        let display = Self { sentences: Sentences::new(quietness.verbose), place };
        if !quietness.is_quiet() {
            say(&headline(job));
        }
        display
    }

    /// For a job whose output is passed on: lines, which can be mixed with it.
    pub(crate) fn beside_output(job: &Job, quiet: bool) -> Self {
        // A single command needs no headline; a map has a job id to look up.
        if !quiet && job.submitted().passing != Some(OutputPassing::Through) {
            say(&headline(job));
        }
        Self { sentences: Sentences::new(false), place: if quiet { Place::Nowhere } else { Place::Lines } }
    }

    /// Removes the frame; the lines above it stay.
    pub(crate) fn end(&mut self) {
        if let Place::Frames(frames) = &mut self.place {
            frames.write(&[]);
        }
    }

    fn say(&mut self, line: Option<&str>) {
        match (&mut self.place, line) {
            (Place::Lines, Some(line)) => say(line),
            (Place::Frames(frames), Some(line)) => {
                frames.said.push_str(line);
                frames.said.push('\n');
            }
            _ => {}
        }
    }
}

impl Observer for Display {
    fn recorded(&mut self, job: &Job, _seq: u64, record: &Record) {
        if !matches!(self.place, Place::Nowhere) {
            let sentence = self.sentences.of(job, record);
            self.say(sentence.as_deref());
        }
    }

    fn leaving(&mut self, asked: u32, running: usize) {
        self.say(leaving(asked, running).as_deref());
    }

    fn outage(&mut self, outage: &StoreOutage<'_>) {
        self.say(Some(&outage.to_string()));
    }

    fn patience(&self) -> Option<Duration> {
        matches!(self.place, Place::Frames(_)).then_some(FRAME)
    }

    fn turned(&mut self, job: &Job, breaker: &str, change: &BreakerChange) {
        if !matches!(self.place, Place::Nowhere) {
            let sentence = self.sentences.turned(job, breaker, change);
            self.say(sentence.as_deref());
        }
    }

    fn tick(&mut self, job: &Job, breakers: &AdmissionControl) {
        if let Place::Frames(frames) = &mut self.place {
            frames.tick(job, breakers);
        }
    }
}

impl Frames {
    fn new(job: &Job) -> Self {
        let (clock, now) = (Clock::set(), Instant::now());
        let continued = Arc::new(AtomicBool::new(false));
        // Without the flag, a job that was stopped draws its next frame over what was typed meanwhile.
        let _ = signal_hook::flag::register(SIGCONT, Arc::clone(&continued));
        Self {
            terminal: Terminal::new(io::stderr(), is_colourful(&io::stderr())),
            said: String::new(),
            speed: Speed::new(seen(job, clock.now())),
            clock,
            first: now.checked_add(FIRST).unwrap_or(now),
            next: now,
            continued,
        }
    }

    fn tick(&mut self, job: &Job, breakers: &AdmissionControl) {
        let instant = Instant::now();
        let has_frame = instant >= self.first;
        if instant < self.next || !has_frame && self.said.is_empty() {
            return;
        }
        self.next = instant.checked_add(FRAME).unwrap_or(instant);
        let now = self.clock.now();
        self.speed.note(seen(job, now));
        let lines =
            if has_frame { Board::of(job, breakers, &self.speed, now).lines(size()) } else { Vec::new() };
        self.write(&lines);
    }

    fn write(&mut self, lines: &[super::line::Line]) {
        if self.continued.swap(false, Ordering::Relaxed) {
            self.terminal.let_go();
        }
        self.terminal.write(&self.said, lines, size());
        self.said.clear();
    }
}

fn say(line: &str) {
    // A closed standard error does not stop a job.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

fn can_move_its_cursor() -> bool {
    env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}

/// Asked for every frame: the terminal may be resized at any time.
fn size() -> Size {
    let found = tcgetwinsize(io::stderr()).ok();
    let or = |found: Option<u16>, usual: usize| match found {
        Some(known @ 1..) => usize::from(known),
        _ => usual,
    };
    Size { columns: or(found.map(|size| size.ws_col), 80), rows: or(found.map(|size| size.ws_row), 24) }
}
