//! The shapes a policy is written in: both dialects of `retry_config`, and `work_config`.
//!
//! Every spelling is read here and nowhere else, and becomes one [`RetryConfig`](crate::RetryConfig).
//! Positions are the caller's: [`RetryConfig::read`](crate::RetryConfig::read) takes one setting at
//! a time from any deserializer, so that whoever knows where a value stands can say so.

mod backoff;
mod duration;
mod policy;
mod retry_config;
mod rules;
mod scalar;
mod work_config;

pub use duration::{DurationError, format_duration, parse_duration};
pub use retry_config::read_statuses;
pub use work_config::{BackoffType, WorkConfig, WorkDefaults};

#[cfg(test)]
mod tests;
