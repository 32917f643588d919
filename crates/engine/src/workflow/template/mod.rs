//! Texts with holes: `${item.x}` and its kin, from what the author wrote to what a command gets.
//!
//! A template is parsed and checked once, against the names that exist where it stands, and rendered
//! many times. The caller supplies the `Values`, and no value is ever read as a template or as code.
//! Three kinds differ only in where a value goes: into a text, into JSON, or into a shell script, which
//! gets it through its environment.

mod cursor;
mod dollar;
mod json;
mod names;
mod reader;
mod reference;
mod shell;
mod template_error;
mod text;
mod value;

pub use json::{JsonTemplate, JsonTemplateError};
pub use names::KnownNames;
pub use reference::{Reference, Root, Segment};
pub use shell::{Script, ShellTemplate};
pub use template_error::TemplateError;
pub use text::TextTemplate;
pub use value::{TemplateValues, ValueError};
