//! Places where a test makes a process die.
//!
//! Compiled only with the feature `failpoints`; otherwise there is nothing here.

/// Every place there is, engine and keeper; `id` at the keeper's is the attempt, at the engine's the
/// how-manieth time in this process.
#[cfg(feature = "failpoints")]
pub const PLACES: &[&str] = &[
    "claimed",
    "append-before",
    "append-after",
    "begin-before",
    "begin-after",
    "ended-before",
    "forget-after",
    "items-read",
    "results-before-rename",
    "suspend-after",
    "spawning",
    "spawned",
    "exited",
    "archive-before-rename",
    "archive-kept",
    "archive-noted",
    "archive-folder-removed",
];

/// Dies at once, as by `kill -9`, if the environment says `UNDAUNTED_TEST_DIE=<place>:<id>`.
#[cfg(feature = "failpoints")]
pub(crate) fn reach(place: &str, id: u64) {
    let here = format!("{place}:{id}");
    if std::env::var("UNDAUNTED_TEST_DIE").is_ok_and(|wanted| wanted == here) {
        let own = rustix::process::getpid();
        // If even this fails the test sees a process that lives, and is red.
        let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
        loop {
            std::thread::park();
        }
    }
}

/// Nothing: tests alone make a process die on cue.
#[cfg(not(feature = "failpoints"))]
pub(crate) const fn reach(_place: &str, _id: u64) {}
