//! A VFS in front of SQLite's default VFS that records what is written.
//!
//! SQLite's interface of a VFS is C functions and pointers, so this file cannot be written in safe Rust. It
//! is the only one, and does no more than to pass calls on and record them. The default VFS opens a file in
//! memory that SQLite provides; a `RecordedFile` lies behind it, with our functions in place of four of its
//! methods. Everything else (locks, shared memory, reading, device characteristics) stays with the default
//! VFS, so that SQLite does exactly what it does in the product. The crate `sqlite-plugin` was considered:
//! its users write locks and shared memory themselves, it still takes pointers for the latter, and its device
//! characteristics let SQLite sync less.
//!
//! It becomes the default VFS of the process; files outside of recorded folders are not touched.

#![expect(unsafe_code, reason = "SQLite calls a VFS through C function pointers")]

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;
use std::sync::{Arc, OnceLock};

use rusqlite::ffi;

use super::trace::{self, Recorder, TraceEvent};

/// Our data behind the default VFS's file. The methods come first: SQLite's pointer to them is our pointer to
/// the rest.
#[repr(C)]
struct RecordedFile {
    methods: ffi::sqlite3_io_methods,
    ordinary: *const ffi::sqlite3_io_methods,
    recorder: Arc<Recorder>,
    file: usize,
    /// Whether the next sync also syncs the folder.
    folder_due: bool,
}

/// Installs this VFS as the default, once. Whether it is installed.
pub(super) fn install() -> bool {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    // SAFETY: the default VFS lives as long as the process, and so does ours, which is never freed. The
    // functions that we leave in place do not look at the VFS they are called for.
    *INSTALLED.get_or_init(|| unsafe {
        let ordinary = ffi::sqlite3_vfs_find(ptr::null());
        if ordinary.is_null() {
            return false;
        }
        let mut ours = *ordinary;
        let recorded_file = c_int::try_from(size_of::<RecordedFile>()).unwrap_or(c_int::MAX);
        let room = c_int::try_from(room(ordinary)).unwrap_or(c_int::MAX);
        ours.szOsFile = room.saturating_add(recorded_file);
        ours.pNext = ptr::null_mut();
        ours.zName = c"undaunted-recorder".as_ptr();
        ours.pAppData = ordinary.cast();
        ours.xOpen = Some(open);
        ours.xDelete = Some(delete);
        ffi::sqlite3_vfs_register(Box::into_raw(Box::new(ours)), 1) == ffi::SQLITE_OK
    })
}

/// The size of the default VFS's file, rounded up for the alignment of ours behind it.
///
/// # Safety
///
/// `vfs` points to a VFS.
unsafe fn room(vfs: *const ffi::sqlite3_vfs) -> usize {
    // SAFETY: as promised.
    let size = unsafe { (*vfs).szOsFile };
    let align = align_of::<RecordedFile>();
    usize::try_from(size).unwrap_or_default().next_multiple_of(align)
}

/// The recorder of a file's folder, and the name of the file in it.
///
/// # Safety
///
/// `name` is null or points to a text that ends with a zero.
unsafe fn recorded<'a>(name: *const c_char) -> Option<(Arc<Recorder>, &'a str)> {
    if name.is_null() {
        return None; // A temporary file, which is not opened after a power cut.
    }
    // SAFETY: not null, and as promised.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()));
    let recorder = trace::recorder_of(path.parent()?)?;
    Some((recorder, path.file_name()?.to_str()?))
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    given: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls us with our own VFS, a valid name, and memory for a file of the size we asked for,
    // whose beginning the default VFS fills in.
    unsafe {
        let ordinary = (*vfs).pAppData.cast::<ffi::sqlite3_vfs>();
        let Some(pass_on) = (*ordinary).xOpen else {
            return ffi::SQLITE_ERROR;
        };
        let Some((recorder, short)) = recorded(name) else {
            return pass_on(ordinary, name, file, flags, given);
        };
        let mut trace = recorder.trace();
        let code = pass_on(ordinary, name, file, flags, given);
        if code != ffi::SQLITE_OK {
            return code;
        }
        let number = trace.opened(short);
        drop(trace);
        let methods = (*file).pMethods;
        let logs = ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_MAIN_JOURNAL;
        let recorded_file = file.byte_add(room(ordinary)).cast::<RecordedFile>();
        recorded_file.write(RecordedFile {
            methods: ffi::sqlite3_io_methods {
                iVersion: 2, // Without memory maps, whose writes would not be recorded.
                xClose: Some(close),
                xWrite: Some(write),
                xTruncate: Some(resize),
                xSync: Some(sync),
                ..*methods
            },
            ordinary: methods,
            recorder,
            file: number,
            folder_due: flags & ffi::SQLITE_OPEN_CREATE != 0 && flags & logs != 0,
        });
        (*file).pMethods = recorded_file.cast();
        code
    }
}

unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, with_folder: c_int) -> c_int {
    // SAFETY: as for `open`.
    unsafe {
        let ordinary = (*vfs).pAppData.cast::<ffi::sqlite3_vfs>();
        let Some(pass_on) = (*ordinary).xDelete else {
            return ffi::SQLITE_ERROR;
        };
        let Some((recorder, short)) = recorded(name) else {
            return pass_on(ordinary, name, with_folder);
        };
        let mut trace = recorder.trace();
        let code = pass_on(ordinary, name, with_folder);
        if code == ffi::SQLITE_OK {
            trace.deleted(short);
            if with_folder != 0 {
                trace.note(TraceEvent::FolderSync);
            }
        }
        code
    }
}

/// Calls a method of the default VFS and records what it did, under the lock of the trace.
///
/// # Safety
///
/// `file` was opened by us.
unsafe fn pass_and_note(
    file: *mut ffi::sqlite3_file,
    method: impl FnOnce(&ffi::sqlite3_io_methods) -> Option<c_int>,
    events: impl FnOnce(&mut RecordedFile) -> Vec<TraceEvent>,
) -> c_int {
    // SAFETY: the methods of a file that we opened are the beginning of a `RecordedFile`, and SQLite uses a
    // file from one thread at a time.
    let recorded_file = unsafe { &mut *(*file).pMethods.cast::<RecordedFile>().cast_mut() };
    let recorder = Arc::clone(&recorded_file.recorder);
    let mut trace = recorder.trace();
    // SAFETY: the default VFS's methods live as long as the process.
    let code = method(unsafe { &*recorded_file.ordinary }).unwrap_or(ffi::SQLITE_ERROR);
    if code == ffi::SQLITE_OK {
        for event in events(recorded_file) {
            trace.note(event);
        }
    }
    code
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    length: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite calls us for a file that we opened, with that many bytes.
    unsafe {
        let pass_on = |methods: &ffi::sqlite3_io_methods| {
            let method = methods.xWrite?;
            Some(method(file, bytes, length, at))
        };
        pass_and_note(file, pass_on, |recorded_file| {
            let length = usize::try_from(length).unwrap_or_default();
            let bytes = std::slice::from_raw_parts(bytes.cast::<u8>(), length);
            vec![TraceEvent::Write {
                file: recorded_file.file,
                at: usize::try_from(at).unwrap_or_default(),
                bytes: Arc::new(bytes.to_vec()),
            }]
        })
    }
}

unsafe extern "C" fn resize(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    // SAFETY: as for `write`.
    unsafe {
        let pass_on = |methods: &ffi::sqlite3_io_methods| {
            let method = methods.xTruncate?;
            Some(method(file, size))
        };
        pass_and_note(file, pass_on, |recorded_file| {
            vec![TraceEvent::Resize {
                file: recorded_file.file,
                size: usize::try_from(size).unwrap_or_default(),
            }]
        })
    }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: as for `write`.
    unsafe {
        let pass_on = |methods: &ffi::sqlite3_io_methods| {
            let method = methods.xSync?;
            Some(method(file, flags))
        };
        pass_and_note(file, pass_on, |recorded_file| {
            let mut events = vec![TraceEvent::Sync { file: recorded_file.file }];
            if std::mem::take(&mut recorded_file.folder_due) {
                events.push(TraceEvent::FolderSync);
            }
            events
        })
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: as for `write`; SQLite does not use the file any more, and what we drop here is not reached
    // again, because the file has its default methods back.
    unsafe {
        let recorded_file = (*file).pMethods.cast::<RecordedFile>().cast_mut();
        let ordinary = (*recorded_file).ordinary;
        (*file).pMethods = ordinary;
        ptr::drop_in_place(recorded_file);
        (*ordinary).xClose.map_or(ffi::SQLITE_ERROR, |pass_on| pass_on(file))
    }
}
