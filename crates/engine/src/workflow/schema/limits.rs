//! What the value behind a key may be, beyond its kind.
//!
//! Each limit is a few keywords that are added to the schema of the value. A keyword of JSON Schema
//! applies to one kind of value only (`minimum` to numbers, `pattern` to texts), so a limit does not
//! affect the other kinds that the key accepts.

use serde_json::{Value, json};
use undaunted_policy::SIGNAL_NAMES;

use crate::workflow::keys::{MappingKey, MappingTable, RESERVED_NAMES, ValueShape, keys_of_commands};

/// Numbers, each followed by its unit. A fraction of a nanosecond is refused.
pub(super) const DURATION: &str = "^\\s*(([0-9]+ns|[0-9]+(\\.[0-9]+)?\
     (us|µs|ms|s|sec|m|min|h|hr|d|w))\\s*)+$";

/// One status, a range, or all that begin with a digit.
pub(super) const STATUSES: &str = "^([1-5]xx|[1-5][0-9]{2}(-[1-5][0-9]{2})?)$";

/// Of environment variables and captured outputs.
const NAME: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
const HEADER: &str = "^[A-Za-z_][A-Za-z0-9_-]*$";
/// No spaces, no `/`, no control characters.
const IDENTIFIER: &str = "^[^\\s/\\u0000-\\u001f\\u007f-\\u009f]+$";
/// A template may become anything; an address without one has no spaces.
const ADDRESS: &str = "^(\\$\\{|https?://(\\S+$|.*\\$\\{))";
const PLAIN_ADDRESS: &str = "^https?://\\S+$";
const VARIABLE: &str = "^\\$([A-Za-z0-9_]+|\\{[A-Za-z0-9_]+\\})$";
const PERMISSIONS: &str = "^(0o)?0*[0-7]{1,4}$";

pub(super) fn of(table: MappingTable, key: MappingKey) -> Value {
    match (table, key.name()) {
        (MappingTable::Http, "headers") => json!({"propertyNames": {"pattern": HEADER}}),
        (_, "env" | "secrets") if matches!(key.shape, ValueShape::MapOf(_)) => {
            json!({"propertyNames": {"pattern": NAME}})
        }
        (_, "timeout" | "deadline") if matches!(key.shape, ValueShape::Duration) => {
            json!({"allOf": [{"pattern": "[1-9]"}]})
        }
        (MappingTable::Workflow, name) => workflow(name),
        (MappingTable::Command | MappingTable::Handler, name) => command(name),
        (MappingTable::Map | MappingTable::TimeoutConfig, name) => map(name),
        (MappingTable::RetryConfig | MappingTable::Rule, name) => retry(name),
        (
            MappingTable::FlowStep
            | MappingTable::FlowHttp
            | MappingTable::Predicate
            | MappingTable::WorkConfig,
            name,
        ) => flow(name),
        (MappingTable::ErrorPolicy, name) => tolerance(name),
        (MappingTable::Breaker, "name") => json!({"pattern": IDENTIFIER}),
        (MappingTable::Breaker, "failure_threshold" | "half_open_max_calls") => count_from(1),
        (MappingTable::Http, "expect") => json!({"minItems": 1}),
        (MappingTable::Http, "url") => json!({"pattern": ADDRESS}),
        // A number is read as its digits: 7777 is the mode `7777`.
        (MappingTable::WriteFile, "mode") => json!({"pattern": PERMISSIONS, "maximum": 7777}),
        _ => json!({}),
    }
}

fn count_from(least: i64) -> Value {
    json!({"minimum": least, "maximum": u32::MAX})
}

fn workflow(name: &str) -> Value {
    match name {
        "shell" => json!({"pattern": "^/"}),
        "retry_budget" | "retry_budget_per_workflow" => count_from(0),
        "goals" | "steps" => json!({"minItems": 1}),
        "agents" => json!({
            "propertyNames": {"not": {"enum": keys_of_commands()}},
            "additionalProperties": {
                "type": "array",
                "items": {"type": "string"},
                "contains": {"type": "string", "pattern": "\\{prompt\\}"},
            },
        }),
        name => tolerance(name),
    }
}

fn tolerance(name: &str) -> Value {
    match name {
        "max_failures" => json!({"minimum": 1}),
        "failure_threshold" => json!({"minimum": 0, "maximum": 1}),
        _ => json!({}),
    }
}

fn command(name: &str) -> Value {
    match name {
        "shell" => json!({"pattern": "\\S"}),
        "id" => json!({"pattern": IDENTIFIER}),
        "capture_output" => json!({"pattern": NAME, "not": {"enum": RESERVED_NAMES}}),
        "output_limit" => json!({"minimum": 1}),
        "max_attempts" => count_from(0),
        _ => json!({}),
    }
}

fn map(name: &str) -> Value {
    match name {
        "max_parallel" => {
            json!({"minimum": 1, "maximum": u32::MAX, "pattern": VARIABLE})
        }
        "agent_timeout_secs" => json!({"exclusiveMinimum": 0}),
        "best_effort_deadline_seconds" => json!({"minimum": 0}),
        _ => json!({}),
    }
}

fn retry(name: &str) -> Value {
    let each = |keywords: Value| {
        let mut each = keywords.clone();
        super::add(&mut each, json!({"minItems": 1, "items": keywords}));
        each
    };
    match name {
        "attempts" | "max_attempts" | "max_retries" => json!({"maximum": u32::MAX}),
        "jitter_factor" => json!({"minimum": 0, "maximum": 1}),
        // A condition with an empty list would match everything.
        "exit_code" => each(json!({"maximum": 255})),
        "signal" => {
            let names = format!("^(SIG)?({})$", SIGNAL_NAMES.join("|"));
            each(json!({"minimum": 1, "maximum": 64, "pattern": names}))
        }
        "status" | "class" => json!({"minItems": 1}),
        // How a failure is retried may differ; which failures are retried is decided before.
        "retry_config" => json!({
            "properties": {"rules": false, "retry_on": false, "retry_statuses": false},
        }),
        _ => json!({}),
    }
}

fn flow(name: &str) -> Value {
    match name {
        "id" => json!({"pattern": IDENTIFIER}),
        "endpoint" | "health_check" => {
            json!({"pattern": PLAIN_ADDRESS, "not": {"pattern": "\\$\\{"}})
        }
        // Parts of another system's language that are not part of this one.
        "type" => json!({"not": {"const": "script"}}),
        "memoizable" => json!({"const": false}),
        "language" => json!({"pattern": "^[cC][eE][lL]$"}),
        "max_retries" => json!({"type": "integer", "minimum": -1, "maximum": u32::MAX}),
        "parallelism" => count_from(0),
        "best_effort_deadline_seconds" => json!({"minimum": 0}),
        _ => json!({}),
    }
}
