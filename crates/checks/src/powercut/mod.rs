//! Power cuts: what a store has acknowledged survives them on every disk that keeps its promise.
//!
//! The real `SqliteStore` works in a folder while every write, resize, sync and name of its SQLite files is
//! recorded (`vfs`, `trace`), together with the calls and their acknowledgements (`session`). The recording
//! is cut before and after every sync and in many places between (`round`). The files that a disk may hold at
//! that moment (`disk`, `crash_image`) are laid out in another folder and opened with the real store, which
//! must have all that was acknowledged, nothing torn and nothing else, and must work (`inspect`). Some
//! recoveries are recorded and cut too. And sometimes all processes die first while the kernel keeps what
//! they wrote: what a store finds then and returns to its users must survive the next cut, although the dead
//! process never synced it (`CrashKind::Kill`).
//!
//! **What a disk may do**, and real disks do:
//! - What was synced stays. A sync counts for its own file only.
//! - Of what was written since the last sync of a file, each part of 512 or of 4096 bytes (a sector, or a
//!   page of the kernel) is there, is as it was at any time since that sync, or is torn: its beginning is
//!   there, or it is noise. There is no order between parts or between files. Bytes of a sector that were not
//!   written to do not change: SQLite relies on that (`SQLITE_IOCAP_POWERSAFE_OVERWRITE`), and so do we. A
//!   growing file is as long as at any time since the sync; where nothing was written it has zeros.
//! - A file is truncated as a whole or not at all, and later writes are there only if it was, as with a
//!   journaling file system. Or it keeps its length and loses parts of what was beyond, as without a journal
//!   (ext2, FAT). SQLite's `wal_checkpoint(TRUNCATE)` does not survive that, which is why the store truncates
//!   its log in another way.
//! - A name that was made or deleted is there or not until its folder is synced, each name on its own,
//!   although journaling file systems keep their order. SQLite's default VFS syncs the folder at the first
//!   sync of a log or journal through each of its handles; the store syncs it after making an empty database.
//!   SQLite does not sync the folder after deletions in WAL mode: an old log may come back.
//! - The index of the log (`-shm`) is missing or noise: it lives in memory.
//! - The files beside the database (`owners/`, `snapshots/`, the lock) may be missing, older or torn. That is
//!   more than a disk does to snapshots, which are synced before they get their name; the store promises to
//!   survive it.
//!
//! **Not tried:** a disk that loses synced data, which no store survives (the other values of [`SyncPromise`]
//! show that it would be noticed); the loss of the store's whole folder, whose name the store syncs; a
//! deleted file that comes back in parts; a log so long (64 MiB) that it is truncated. **Not observed**, but
//! taken from the code (and twice from a trace of the system calls): that the folder is synced when stated
//! above. The files beside the database are read after each call, not at every write.
//!
//! **Determined by the seed:** the calls, their order, and where and how the disk is cut. Not determined: the
//! random names that SQLite makes (owners, the salt of the log), process ids, and, in one round of four,
//! which of several concurrent handles is first; in rounds that write enough to move the log, before which
//! commit that happens. Elsewhere even group commits are the same: the writing thread is held up until the
//! whole group has arrived.

mod campaign;
mod crash_image;
mod disk;
mod inspect;
mod model;
mod round;
mod session;
mod trace;
mod vfs;
mod workload;

pub use campaign::{PowercutArgs, PowercutTally, campaign, run};
pub use disk::SyncPromise;
