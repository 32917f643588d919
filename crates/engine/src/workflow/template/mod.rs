//! Texts with references such as `${item.x}`, from what the author wrote to what a command gets.
//!
//! A template is parsed and checked once, against the names that exist where it stands, and rendered
//! many times. The caller supplies the values, and no value is ever read as a template or as code.
//! The three kinds differ only in where a value goes: into a text, into JSON, or into a shell script,
//! which gets it through its environment.

#[cfg(test)]
mod fixture;
mod json;
mod names;
mod reader;
mod reference;
mod shell;
mod text;

pub use super::filter::{Segment, SyntaxError};
pub use json::{JsonTemplate, JsonTemplateError};
pub use names::KnownNames;
pub use reference::{Reference, Root, TemplateValues, ValueError};
pub use shell::{Script, ShellTemplate};
pub use text::TextTemplate;
pub(crate) use text::push_encoded;
