//! Power cuts: what a store has acknowledged is there, whatever a disk that keeps its word holds after one.
//!
//! The real `SqliteStore` works in a folder while every write, resize, sync and name of its SQLite files
//! is recorded (`vfs`, `trace`), together with what was asked of it and what it acknowledged
//! (`session`). Then the recording is cut before and after every sync and in many places between
//! (`round`); the files a disk may hold at that moment (`disk`, `crash_image`) are laid out in another
//! folder and opened with the real store, which must have all that was acknowledged, nothing torn and
//! nothing else, and must work on (`inspect`). Some of the recoveries are recorded too, and cut again. And
//! sometimes all processes die first and the kernel keeps what they wrote: what a store finds then and
//! gives to whoever opens it has to outlast the next cut, though the dead never synced it (`replay`).
//!
//! **What a disk may do**, and real ones do:
//! - What was synced stays. A sync counts for its own file alone.
//! - Of what was written since the last sync of a file, each part of 512 or of 4096 bytes (a sector, or
//!   a page of the kernel) is there, is as it was at any time since that sync, or is torn: its beginning
//!   is there, or it is noise. No order holds between parts or between files. Bytes of a sector that
//!   nobody wrote to do not change: SQLite relies on that (`SQLITE_IOCAP_POWERSAFE_OVERWRITE`), and so do
//!   we. A file that grows is as long as at any time since the sync; where nothing was written it has zeros.
//! - A file that is cut is cut as a whole or not at all, and what is written after that is there only if
//!   it was: file systems with a journal do it so. Or it keeps its length and loses parts of what was
//!   beyond, as on those without (ext2, FAT). SQLite's `wal_checkpoint(TRUNCATE)` does not bear that,
//!   which is why the store cuts its log in another way.
//! - A name that was made or deleted is there or not until its folder is synced, each name for itself,
//!   though file systems with a journal keep their order. SQLite's ordinary VFS syncs the folder at the
//!   first sync of a log or journal through each of its handles; the store syncs it after making an empty
//!   database. Of deletions in WAL mode nobody syncs the folder: an old log may come back.
//! - The index of the log (`-shm`) is missing or noise: it lives in memory.
//! - What lies beside the database (`owners/`, `snapshots/`, the lock) may be missing, older or torn. That
//!   is more than a disk does to snapshots, which are synced before they get their name; the store
//!   promises to bear it.
//!
//! **Not tried:** a disk that loses what it said was synced, which nobody can bear (the lies of
//! [`SyncPromise`] show that it would be noticed); the loss of the store's whole folder, whose name the store
//! syncs; a deleted file that comes back in parts; a log so long (64 MiB) that it is cut back. **Not
//! observed**, but taken from the code (and twice from a trace of the system calls): that the folder is
//! synced when said above. What lies beside the database is looked at after each piece of work, not at
//! every write.
//!
//! **By the seed:** what is asked, in which order, and where and how the disk is cut. Not by the seed: the
//! random names that SQLite makes (owners, the salt of the log), process ids, and, in one round of four,
//! which of the handles that write at once is first; in those with so much that the log is moved
//! meanwhile, before which commit that is. Elsewhere even group commits are the same: the writing thread
//! is held up until the whole group has arrived.

mod campaign;
mod crash_image;
mod disk;
mod inspect;
mod model;
mod replay;
mod round;
mod session;
mod trace;
mod vfs;
mod workload;

pub use campaign::{PowercutArgs, PowercutTally, campaign, run};
pub use disk::SyncPromise;
