//! The workloads, one a file. Each measures and says what came of it.

mod commands;
mod growth;
mod held;
mod kill;
mod noop;
mod overhead;
mod pending;
mod policy;
mod retry;

use crate::bench::Bench;
use crate::section::Section;

/// All of them, in the order of the document.
pub(crate) const ALL: [fn(&Bench) -> Section; 9] = [
    noop::measure,
    retry::measure,
    commands::measure,
    kill::measure,
    pending::measure,
    held::measure,
    growth::measure,
    overhead::measure,
    policy::measure,
];
