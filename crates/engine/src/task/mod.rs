//! What an attempt is to do, with all values filled in.
//!
//! Data only: the executor adds the rest of the environment and the values of secrets, which are never
//! part of a job's state.

pub(crate) mod action;
mod attempt;
mod call;
mod function;
mod identity;
mod input;
mod sub_flow;
mod token;
mod values;

pub use action::TaskWork;
pub use attempt::{KeptOutput, Task, task};
pub use call::{HttpCall, as_uuid};
pub use function::FunctionCall;
pub use identity::{correlation_id, receipt_token};
pub use input::{InputTask, input_task};
pub use sub_flow::{SubFlow, short};
pub use token::{TokenStatus, find_token};
pub use values::ValueFiles;
