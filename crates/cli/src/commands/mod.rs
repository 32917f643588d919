//! One file per command.

pub(crate) mod check;
pub(crate) mod explain_config;
pub(crate) mod schedule;
pub(crate) mod schema;
