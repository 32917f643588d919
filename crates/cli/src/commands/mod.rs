//! One file per command.

pub(crate) mod cancel;
pub(crate) mod check;
pub(crate) mod events;
pub(crate) mod explain_config;
pub(crate) mod keeper;
pub(crate) mod ls;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod schema;
pub(crate) mod show;
