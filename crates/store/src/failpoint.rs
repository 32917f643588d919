//! Points at which a test kills the process.
//!
//! Compiled only with the feature `failpoints`. The module is in the lowest crate that writes to a disk, so
//! that every crate above can use it.

#[cfg(feature = "failpoints")]
mod enabled {
    use std::collections::BTreeMap;
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::sync::{Mutex, OnceLock, PoisonError};
    use std::time::{SystemTime, UNIX_EPOCH};

    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    static PASSED: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

    /// The failpoint that kills this process: `<place>:<id>`.
    fn wanted() -> Option<&'static str> {
        WANTED.get_or_init(|| std::env::var("UNDAUNTED_TEST_DIE").ok()).as_deref()
    }

    /// Kills the process with SIGKILL if `UNDAUNTED_TEST_DIE` is `<place>:<id>`.
    pub fn reach(place: &str, id: u64) {
        let Some(wanted) = wanted() else { return };
        if wanted != format!("{place}:{id}") || !note(wanted) {
            return;
        }
        let own = rustix::process::getpid();
        // If the signal cannot be sent, the process lives and the test fails.
        let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
        loop {
            std::thread::park();
        }
    }

    /// Like [`reach`], where `id` is how often this process has passed the place, from 1.
    pub fn pass(place: &str) {
        let is_here = |it: &str| it.split_once(':').is_some_and(|(it, _)| it == place);
        if !wanted().is_some_and(is_here) {
            return;
        }
        let mut passed = PASSED.lock().unwrap_or_else(PoisonError::into_inner);
        let times = passed.entry(place.to_owned()).or_default();
        *times = times.saturating_add(1);
        let times = *times;
        drop(passed);
        reach(place, times);
    }

    /// Appends place, process id and time to the file that `UNDAUNTED_TEST_DIED` names. Returns false if a
    /// process has died here before: a process restarted with the same environment must get past this point.
    fn note(place: &str) -> bool {
        let Some(path) = std::env::var_os("UNDAUNTED_TEST_DIED") else {
            return true;
        };
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        if before.lines().any(|line| line.split(' ').next() == Some(place)) {
            return false;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_micros());
        let line = format!("{place} {} {now}\n", std::process::id());
        let file = OpenOptions::new().append(true).create(true).open(path);
        // A missing line costs the test one note; the kill matters more.
        drop(file.and_then(|mut file| file.write_all(line.as_bytes())));
        true
    }
}

#[cfg(feature = "failpoints")]
pub use enabled::{pass, reach};

#[cfg(not(feature = "failpoints"))]
pub(crate) const fn pass(_place: &str) {}
