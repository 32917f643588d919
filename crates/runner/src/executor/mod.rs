//! Doing what an attempt is to do: one file per kind of work.

mod answer;
mod function;
mod http;
mod input;
mod program;
mod write_file;

pub use answer::{Answer, StepResult, step_result};
pub use function::{Attempt, Failed, FunctionOrder, Functions, Outcome};
pub use http::{Answered, Order, is_there, judged};
pub(crate) use http::{Calls, origin, send};
pub(crate) use input::{Items, items_of};
pub(crate) use program::{Reading, ended, spec, vanished};
pub use write_file::NewFile;
pub(crate) use write_file::write_file;
