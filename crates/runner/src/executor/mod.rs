//! Doing what an attempt is to do: one file per kind of work.

mod answer;
mod http;
mod input;
mod program;
mod write_file;

pub use answer::{StepResult, step_result};
pub use http::is_there;
pub(crate) use http::{Answered, Calls, Order, origin};
pub(crate) use input::{Items, items_of};
pub(crate) use program::{Reading, ended, spec, vanished};
pub(crate) use write_file::write_file;
