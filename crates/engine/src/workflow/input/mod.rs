//! From the bytes of an input to work items with identities.
//!
//! Bytes in, values out: opening the file or running the command is done elsewhere, so the same bytes
//! always give the same items. [`read`] parses, [`Selection`] selects and names each [`WorkItem`].

mod canonical;
mod error;
mod fingerprint;
mod format;
mod identity;
mod json;
mod json_lines;
mod json_path;
mod lines;
mod reader;
mod selection;
mod table;
#[cfg(test)]
mod tests;
mod work_item;

pub use error::InputError;
pub use format::InputFormat;
pub use json_path::JsonPath;
pub use reader::read;
pub use selection::Selection;
pub use work_item::WorkItem;
