//! One file per command.

pub(crate) mod archive;
pub(crate) mod attempts;
pub(crate) mod breaker;
pub(crate) mod budget;
pub(crate) mod cancel;
pub(crate) mod check;
pub(crate) mod dlq;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod explain_config;
pub(crate) mod generated;
pub(crate) mod logs;
pub(crate) mod ls;
pub(crate) mod map;
pub(crate) mod pause;
pub(crate) mod resume;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod state;
pub(crate) mod store;
