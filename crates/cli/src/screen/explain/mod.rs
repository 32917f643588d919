//! Why a job or an item stands as it does.

mod hold;
mod item;
mod item_json;
mod job;
mod place;

pub(crate) use item::Explained;
pub(crate) use job::{json as job_json, show as job_text};
