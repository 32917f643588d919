//! From the bytes of an input to work items with identities.
//!
//! Bytes in, values out: who opens the file or runs the command is none of its business, so the
//! same bytes always give the same items. It reads ([`read`]), selects ([`Selection`]) and names
//! ([`WorkItem`]); what is done with an item is decided elsewhere.

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
pub use format::Format;
pub use json_path::JsonPath;
pub use reader::read;
pub use selection::Selection;
pub use work_item::WorkItem;
