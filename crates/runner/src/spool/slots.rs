//! Pairs of files that running commands write to, reused.
//!
//! A command writes directly into its pair, without a process in between. A pair that a remaining process may
//! still write to is removed, not reused.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Mutex;

use super::Spool;
use crate::locked;

#[derive(Debug)]
pub(crate) struct OutputSlots {
    spool: Spool,
    state: Mutex<FreeSlots>,
}

#[derive(Debug, Default)]
struct FreeSlots {
    free: Vec<OutputSlot>,
    made: u32,
}

#[derive(Debug)]
pub(crate) struct OutputSlot {
    pub(crate) number: u32,
    pub(crate) out: File,
    pub(crate) err: File,
}

impl OutputSlots {
    /// Starts with no slots, and removes those of an earlier keeper.
    pub(crate) fn clear(spool: &Spool) -> io::Result<Self> {
        for entry in std::fs::read_dir(spool.slots())? {
            std::fs::remove_file(entry?.path())?;
        }
        Ok(Self { spool: spool.clone(), state: Mutex::default() })
    }

    pub(crate) fn take(&self) -> io::Result<OutputSlot> {
        let number = {
            let mut state = locked(&self.state);
            if let Some(slot) = state.free.pop() {
                return Ok(slot);
            }
            state.made = state.made.saturating_add(1);
            state.made
        };
        let [out, err] = self.spool.slot(number);
        let open = |path| OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path);
        Ok(OutputSlot { number, out: open(out)?, err: open(err)? })
    }

    pub(crate) fn reuse(&self, slot: OutputSlot) {
        if slot.empty().is_err() {
            return self.discard(slot);
        }
        locked(&self.state).free.push(slot);
    }

    /// Removes a pair that a process may still write to. Its space is free when the last writer ends.
    pub(crate) fn discard(&self, slot: OutputSlot) {
        for path in self.spool.slot(slot.number) {
            // A file that stays is harmless: its number is never reused, and the next keeper clears the
            // folder.
            drop(std::fs::remove_file(path));
        }
        drop(slot);
    }
}

impl OutputSlot {
    pub(crate) fn reopen(spool: &Spool, number: u32) -> io::Result<Self> {
        let [out, err] = spool.slot(number);
        Ok(Self { number, out: File::open(out)?, err: File::open(err)? })
    }

    pub(crate) fn written(&self) -> io::Result<u64> {
        let [out, err] = [self.out.metadata()?, self.err.metadata()?];
        Ok(out.len().saturating_add(err.len()))
    }

    fn empty(&self) -> io::Result<()> {
        for file in [&self.out, &self.err] {
            if file.metadata()?.len() > 0 {
                file.set_len(0)?;
            }
        }
        Ok(())
    }
}
