//! Reading a spool while its keeper writes it, without disturbing the keeper.
//!
//! The log is read as a whole each time: it is short, since what has ended is forgotten.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::{CommandFate, FoundLog, RunningCommand, Spool, SpoolEntry};

const PIECE: usize = 1 << 20;

impl Spool {
    /// The fate of an attempt now. One that is not in the log has not begun, or its end was collected.
    pub fn peek(&self, id: u64) -> io::Result<CommandFate> {
        let FoundLog::Log(log) = FoundLog::at(&self.log())? else {
            return Ok(CommandFate::NeverBegan);
        };
        let entry = log.entries.get(id);
        let mut fate = entry.map_or(CommandFate::NeverBegan, |entry| entry.fate(id));
        if let CommandFate::Running(RunningCommand { slot, .. }) = &mut fate {
            // A slot is reused a moment before the end of its last command is recorded; then it no longer
            // belongs to that command.
            let shares =
                |entry: &SpoolEntry| matches!(entry, SpoolEntry::Begun(it) if Some(it.slot) == *slot);
            let users = log.entries.iter().filter(|(_, entry)| shares(entry)).count();
            *slot = slot.filter(|_| users == 1);
        }
        Ok(fate)
    }

    /// What a running attempt has written so far, from these offsets of its output and error output on, at
    /// most a mebibyte of each. None if it is not running, or has just ended.
    pub fn live(&self, id: u64, from: [u64; 2]) -> io::Result<Option<[Vec<u8>; 2]>> {
        let slot = |fate| match fate {
            CommandFate::Running(RunningCommand { slot, .. }) => slot,
            CommandFate::NeverBegan | CommandFate::Exited(_) | CommandFate::Vanished(_) => None,
        };
        let Some(before) = slot(self.peek(id)?) else {
            return Ok(None);
        };
        let [out, err] = self.slot(before);
        let found = [(out, from[0]), (err, from[1])].map(|(path, from)| {
            let mut bytes = vec![0; PIECE];
            let read = File::open(path)?.read_at(&mut bytes, from)?;
            bytes.truncate(read);
            io::Result::Ok(bytes)
        });
        // The slot may have gone to another command while it was read.
        if slot(self.peek(id)?) != Some(before) {
            return Ok(None);
        }
        let [out, err] = found;
        Ok(Some([out?, err?]))
    }
}
