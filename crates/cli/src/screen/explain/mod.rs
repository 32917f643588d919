//! Why a job or an item has its status.

mod item;
mod job;
mod standing;

pub(crate) use item::show as item;
pub(crate) use job::show as job;
