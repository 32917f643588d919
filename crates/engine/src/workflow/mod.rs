//! From the text of a file to a checked workflow.

mod check;
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

pub use check::{
    Checked, check, check_aimed, check_bytes, check_bytes_by, check_retry_config, check_step,
};
pub use definition::plain_definition;
pub use diagnostic::{Code, Diagnostic, Severity};
pub use model::*;
pub use operator::Operator;
pub use schema::schema;
pub use source::{Position, Source, Span};
