//! Keeps the values of secrets out of the output files of a command.
//!
//! A command that was given secrets writes to two pipes. A thread of its own reads them, redacts the values and
//! writes the rest to the command's output slot, so that a value never reaches a file. Commands without secrets
//! write to their slot themselves.
//!
//! A process that a successful command leaves behind keeps its pipes as long as the keeper lives. What it writes
//! after the end of the command is read and dropped, as the slot itself is removed then.

use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::serve::thread;
use super::worker::{ROOM, is_full};
use super::{CommandSpec, KeeperRefusal, KeeperShared};
use crate::OutputSlot;
use crate::secrets::Redaction;

const CHUNK: usize = 64 << 10;

/// The redaction of the output of one command, until everything it wrote is in its slot.
#[derive(Debug)]
pub(crate) struct OutputRedaction {
    /// Closed when the command has ended.
    running: PipeWriter,
    settled: Receiver<()>,
}

impl OutputRedaction {
    /// The redaction of a command that has secrets, and the ends of the pipes that it writes to.
    pub(crate) fn begin(
        shared: &KeeperShared,
        spec: &CommandSpec,
        slot: &OutputSlot,
    ) -> io::Result<Option<(Self, [OwnedFd; 2])>> {
        if spec.secrets.is_empty() {
            return Ok(None);
        }
        let stream = |file: &File| -> io::Result<(RedactedStream, OwnedFd)> {
            let (pipe, end) = io::pipe()?;
            fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
            let redaction = Redaction::of(spec.secrets.iter().map(String::as_str));
            Ok((RedactedStream { pipe: Some(pipe), file: Some(file.try_clone()?), redaction }, end.into()))
        };
        let ((out, out_end), (err, err_end)) = (stream(&slot.out)?, stream(&slot.err)?);
        let (ended, running) = io::pipe()?;
        let (sender, settled) = sync_channel(1);
        let Some(shared) = shared.own.upgrade() else {
            return Err(ErrorKind::Other.into());
        };
        let id = spec.id;
        thread("redaction", move || redact(&shared, id, [out, err], &ended, &sender))?;
        Ok(Some((Self { running, settled }, [out_end, err_end])))
    }

    /// Waits until everything that the ended command wrote is in its slot.
    pub(crate) fn settle(self) {
        drop(self.running);
        // An error would mean that the thread is gone; a keeper that loses a thread aborts.
        let _ = self.settled.recv();
    }
}

#[derive(Debug)]
struct RedactedStream {
    /// None after its end.
    pipe: Option<PipeReader>,
    /// None if it cannot be written, and after the end of the command.
    file: Option<File>,
    redaction: Redaction,
}

fn redact(
    shared: &KeeperShared,
    id: u64,
    mut streams: [RedactedStream; 2],
    ended: &PipeReader,
    settled: &SyncSender<()>,
) {
    let mut buffer = vec![0; CHUNK];
    while !has_ended(&streams, ended) {
        for stream in &mut streams {
            // One piece each, so that an endless writer cannot hide the end of the command.
            stream.copy(shared, id, &mut buffer);
        }
    }
    for stream in &mut streams {
        // A process that stays may write for ever; what it writes now is no output of the command.
        let mut left = stream.pipe.as_ref().map_or(0, waiting);
        while left > 0 {
            match stream.copy(shared, id, &mut buffer) {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        let rest = stream.redaction.finish();
        stream.write(shared, id, &rest);
        stream.file = None;
    }
    // The keeper may not wait for it, if the command was never started.
    let _ = settled.send(());
    while streams.iter().any(|stream| stream.pipe.is_some()) {
        wait(streams.iter().filter_map(|stream| stream.pipe.as_ref()).map(AsFd::as_fd));
        for stream in &mut streams {
            stream.copy(shared, id, &mut buffer);
        }
    }
}

/// Waits until there is something to read. True if the command has ended.
fn has_ended(streams: &[RedactedStream; 2], ended: &PipeReader) -> bool {
    let pipes = streams.iter().filter_map(|stream| stream.pipe.as_ref()).map(AsFd::as_fd);
    wait(std::iter::once(ended.as_fd()).chain(pipes))
}

/// Returns whether the first one is ready.
fn wait<'a>(readable: impl Iterator<Item = BorrowedFd<'a>>) -> bool {
    let mut polled: Vec<PollFd<'_>> =
        readable.map(|each| PollFd::from_borrowed_fd(each, PollFlags::IN)).collect();
    // Interrupted by a signal: the caller looks again.
    let _ = poll(&mut polled, None);
    polled.first().is_some_and(|first| !first.revents().is_empty())
}

/// How many bytes a pipe holds.
fn waiting(pipe: &PipeReader) -> usize {
    rustix::io::ioctl_fionread(pipe).ok().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(CHUNK)
}

impl RedactedStream {
    /// Copies one piece, if there is one. Returns how many bytes were read.
    fn copy(&mut self, shared: &KeeperShared, id: u64, buffer: &mut [u8]) -> usize {
        let Some(pipe) = &mut self.pipe else { return 0 };
        match pipe.read(buffer) {
            Ok(read) if read > 0 => {
                let redacted = self.redaction.push(buffer.get(..read).unwrap_or_default());
                self.write(shared, id, &redacted);
                read
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            _ => {
                self.pipe = None;
                0
            }
        }
    }

    /// Writes to the slot. While the disk is full it waits and reports that to the engine; the command then waits
    /// for room in its pipe. After any other error the output is lost, as for a command that writes itself.
    fn write(&mut self, shared: &KeeperShared, id: u64, mut bytes: &[u8]) {
        while let Some(file) = &mut self.file
            && !bytes.is_empty()
        {
            match file.write(bytes) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_full(&error) => {
                    let errno = error.raw_os_error().unwrap_or_default();
                    shared.refuse(Some(id), KeeperRefusal::Spool(errno));
                    std::thread::sleep(ROOM);
                }
                Err(_) => self.file = None,
            }
        }
    }
}
