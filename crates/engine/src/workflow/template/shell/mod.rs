//! Shell texts with references, whose values never become code.
//!
//! The lexer (`lexer.rs` and the `in_*` files) follows the shell's quoting and finds where every
//! reference stands; `spot.rs` says how a variable is written there; `edits.rs` rewrites the text,
//! leaving all else byte for byte as it was. Where shells disagree about the meaning of a text, or where
//! one of them would run what a value holds, a reference is refused (`obstacle.rs`).

mod arguments;
mod commands;
mod edits;
mod frame;
mod here_document;
mod in_commands;
mod in_expansions;
mod in_here_documents;
mod in_quotes;
mod lexer;
mod literal;
mod obstacle;
mod script;
mod spot;
mod template;
#[cfg(test)]
mod tests;
mod word;

pub use script::Script;
pub use template::ShellTemplate;
