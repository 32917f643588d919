//! The real binary on a terminal: a pty whose other side is held, read and typed into by a test.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// Longer than anything here takes on the slowest machine.
const DEADLINE: Duration = Duration::from_mins(1);

/// A terminal with our program in its foreground.
pub(crate) struct Pty {
    near: File,
    child: Child,
    /// Everything the program has written.
    pub(crate) bytes: Vec<u8>,
}

impl Pty {
    /// Starts the program on a terminal of this size, with these variables and no `NO_COLOR`.
    pub(crate) fn start(
        folder: &Path,
        (columns, rows): (u16, u16),
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let near = openpt(flags).expect("a pty");
        grantpt(&near).expect("granted");
        unlockpt(&near).expect("unlocked");
        tcsetwinsize(&near, winsize(columns, rows)).expect("a size");
        let far = ioctl_tiocgptpeer(&near, flags).expect("its other side");
        let far = || far.try_clone().expect("once more");
        // It makes the terminal the one that Ctrl-C comes from, which needs code between fork and
        // exec, and unsafe code is forbidden here.
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .arg(env!("CARGO_BIN_EXE_undaunted"))
            .args(arguments)
            .current_dir(folder)
            .env("UNDAUNTED_HOME", folder.join("store"))
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied())
            .stdin(far())
            .stdout(far())
            .stderr(far());
        let child = command.spawn().expect("setsid and the binary run");
        Self { near: near.into(), child, bytes: Vec::new() }
    }

    /// Reads until what was written fulfils a condition.
    pub(crate) fn until(&mut self, what: &str, fulfils: impl Fn(&str) -> bool) {
        let began = Instant::now();
        while !fulfils(&self.text()) {
            let waited = began.elapsed();
            assert!(waited < DEADLINE, "no {what}: {:?}", self.text());
            let there = self.read();
            let ended = self.child.try_wait().expect("a child").is_some();
            assert!(there || !ended, "no {what}: {:?}", self.text());
        }
    }

    /// Reads to the end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < DEADLINE, "no end: {:?}", self.text());
            let there = self.read();
            if let Some(status) = self.child.try_wait().expect("a child")
                && !there
            {
                // What it wrote last may have come between the two.
                while self.read() {}
                return status;
            }
        }
    }

    /// Waits a moment for something to read; false if there was nothing.
    fn read(&mut self) -> bool {
        let moment = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let mut fds = [PollFd::new(&self.near, PollFlags::IN)];
        let ready = poll(&mut fds, Some(&moment)).expect("polled");
        if ready == 0 {
            return false;
        }
        let mut buffer = [0_u8; 8192];
        match self.near.read(&mut buffer) {
            Ok(count) => {
                self.bytes.extend_from_slice(buffer.get(..count).expect("as many"));
                count > 0
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            // The last one on the other side has gone.
            Err(_) => false,
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        self.near.write_all(text.as_bytes()).expect("typed");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a pid");
        let pid = Pid::from_raw(pid).expect("not zero");
        kill_process(pid, signal).expect("it is there");
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        tcsetwinsize(&self.near, winsize(columns, rows)).expect("resized");
    }

    /// Whether the terminal still edits lines and echoes, as it does for everybody.
    pub(crate) fn is_cooked(&self) -> bool {
        let modes = tcgetattr(&self.near).expect("modes").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// The screen of a terminal of this size after everything was written.
    pub(crate) fn screen(&self, columns: u16, rows: u16) -> vt100::Parser {
        let size = |cells: u16| NonZero::new(cells).expect("not zero");
        let mut parser = vt100::Parser::new(size(rows), size(columns), 1000);
        parser.process(&self.bytes);
        parser
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // A red test leaves nothing running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const fn winsize(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Every escape sequence in what was written, without the escape.
pub(crate) fn escapes(text: &str) -> Vec<String> {
    let pieces = text.split('\x1b').skip(1);
    pieces
        .map(|piece| {
            let end = piece.char_indices().find(|(at, sign)| *at > 0 && sign.is_ascii_alphabetic());
            let end = end.map_or(piece.len(), |(at, sign)| at + sign.len_utf8());
            piece.get(..end).expect("a boundary").to_owned()
        })
        .collect()
}
