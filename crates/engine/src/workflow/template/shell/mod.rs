//! Shell texts with references, whose values never become code.
//!
//! The lexer (`lexer.rs` and the `in_*` files) follows the shell's quoting and finds where every
//! reference stands; `frame.rs` says how a variable is written there; `template.rs` rewrites the text,
//! leaving all else byte for byte as it was. Where shells disagree about the meaning of a text, or where
//! one of them would execute a value, a reference is refused (`obstacle.rs`).

mod arguments;
mod commands;
mod frame;
mod in_commands;
mod in_here_documents;
mod in_quotes;
mod lexer;
mod obstacle;
mod template;
#[cfg(test)]
mod tests;
mod word;

pub use template::{Script, ShellTemplate};
