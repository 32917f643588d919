//! Doing what an attempt is to do: one file per kind of work.

mod input;
mod program;
mod write_file;

pub(crate) use input::{Items, items_of};
pub(crate) use program::{Reading, ended, spec, vanished};
pub(crate) use write_file::write_file;
