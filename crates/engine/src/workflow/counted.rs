//! How often a text was checked, for tests: the answer is "once", and only a count can say so.

use std::sync::atomic::{AtomicUsize, Ordering};

static MADE: AtomicUsize = AtomicUsize::new(0);

/// How many texts this process has checked: workflows, steps and blocks of settings.
pub fn checks_made() -> usize {
    MADE.load(Ordering::Relaxed)
}

pub(crate) fn count_check() {
    let _ = MADE.fetch_add(1, Ordering::Relaxed);
}
