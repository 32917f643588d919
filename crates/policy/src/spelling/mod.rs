//! Reads and writes policies with serde: both dialects of `retry_config`, and `work_config`.
//!
//! Every spelling is read here and becomes a [`RetryConfig`](crate::RetryConfig). A caller that knows the
//! position of each value in its file can report it: [`RetryConfig::read`](crate::RetryConfig::read) takes
//! one setting at a time, from any deserializer.

mod backoff;
mod duration;
mod retry_config;
mod rules;
mod scalar;
mod work_config;

pub use duration::{DurationError, format_duration, parse_duration};
pub use retry_config::read_statuses;
pub use work_config::{BackoffType, WorkConfig, WorkDefaults};

#[cfg(test)]
mod tests;
