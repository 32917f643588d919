//! One file per command.

pub(crate) mod attempts;
pub(crate) mod breaker;
pub(crate) mod budget;
pub(crate) mod cancel;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod dlq;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod explain_config;
pub(crate) mod keeper;
pub(crate) mod logs;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod map;
pub(crate) mod pause;
pub(crate) mod resume;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod state;
pub(crate) mod store;
