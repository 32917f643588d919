//! From the text of a file to a checked workflow.

mod check;
mod cursor;
mod definition;
mod diagnostic;
pub mod filter;
pub mod input;
mod keys;
mod lint;
mod model;
mod read;
mod schema;
mod source;
pub mod template;
mod yaml;

pub(crate) use check::check_accepted;
#[cfg(feature = "count-checks")]
pub use check::checks_made;
pub use check::{
    CheckedWorkflow, Operator, check, check_aimed, check_bytes, check_bytes_by, check_registered_step,
    check_retry_config, check_step,
};
pub use definition::{plain_definition, without_nulls, without_unset};
pub use diagnostic::{Diagnostic, DiagnosticCode, Severity};
pub use model::*;
pub(crate) use read::aim_at;
pub use read::assemble;
pub use schema::schema;
pub use source::{Position, Source, Span};
