//! From the bytes of an input to work items with identities.
//!
//! Bytes in, values out: opening the file or running the command is done elsewhere, so the same bytes
//! always give the same items. [`read`] parses, [`Selection`] selects and names each [`WorkItem`].

mod format;
mod identity;
mod json_path;
mod reader;
mod selection;
mod table;
#[cfg(test)]
mod tests;

pub use format::InputFormat;
pub use json_path::JsonPath;
pub use reader::{InputError, read};
pub use selection::{SelectedItems, Selection, WorkItem};
