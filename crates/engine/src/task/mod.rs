//! What an attempt is to do, with all values filled in.
//!
//! Data only: an executor adds the rest of the environment and the values of secrets, which are never part
//! of a job's state. Values reach a command as data and never become code; see `workflow::template`.

pub(crate) mod action;
mod attempt;
mod call;
mod endpoint;
mod identity;
mod sub_flow;
mod values;

pub use action::TaskWork;
pub use attempt::{InputTask, KeptOutput, Task, input_task, task};
pub use call::{FunctionCall, HttpCall};
pub use endpoint::endpoint_inputs;
pub(crate) use endpoint::input_in_host;
pub use identity::{TokenStatus, as_uuid, correlation_id, find_token, receipt_token};
pub use sub_flow::{SubFlow, shorten_name};
pub use values::ValueFiles;
