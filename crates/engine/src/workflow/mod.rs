//! From the text of a file to a checked workflow.

mod assembly;
mod check;
#[cfg(feature = "count-checks")]
mod counted;
mod definition;
mod diagnostic;
pub mod filter;
pub mod input;
mod keys;
mod lint;
mod model;
mod operator;
mod read;
mod schema;
mod source;
pub mod template;
mod yaml;

pub(crate) use assembly::aim_at;
pub use assembly::assemble;
pub use check::{
    CheckedWorkflow, check, check_aimed, check_bytes, check_bytes_by, check_retry_config, check_step,
};
#[cfg(feature = "count-checks")]
pub use counted::checks_made;
#[cfg(feature = "count-checks")]
pub(crate) use counted::count_check;
pub use definition::{plain_definition, without_nulls};
pub use diagnostic::{Diagnostic, DiagnosticCode, Severity};
pub use model::*;
pub use operator::Operator;
pub use schema::schema;
pub use source::{Position, Source, Span};
