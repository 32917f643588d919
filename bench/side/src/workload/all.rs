//! All workloads, in the order of the document.

use super::{commands, growth, held, kill, noop, overhead, pending, policy, retry};
use crate::bench::Bench;
use crate::section::Section;

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
