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
        (MappingTable::RetryConfig | MappingTable::Rule, name) => retry(name),
        (MappingTable::Workflow | MappingTable::ErrorPolicy, "max_failures")
        | (MappingTable::Command | MappingTable::Handler, "output_limit") => json!({"minimum": 1}),
        (MappingTable::Workflow | MappingTable::ErrorPolicy, "failure_threshold") => {
            json!({"minimum": 0, "maximum": 1})
        }
        (MappingTable::Workflow, "shell") => json!({"pattern": "^/"}),
        (MappingTable::Command | MappingTable::Handler, "max_attempts")
        | (MappingTable::WorkConfig, "parallelism") => count_from(0),
        (MappingTable::Workflow, "goals" | "steps") | (MappingTable::Http, "expect") => {
            json!({"minItems": 1})
        }
        (MappingTable::Workflow, "agents") => json!({
            "propertyNames": {"not": {"enum": keys_of_commands()}},
            "additionalProperties": {
                "type": "array",
                "items": {"type": "string"},
                "contains": {"type": "string", "pattern": "\\{prompt\\}"},
            },
        }),
        (MappingTable::Command | MappingTable::Handler, "shell") => json!({"pattern": "\\S"}),
        (MappingTable::Command | MappingTable::Handler | MappingTable::FlowStep, "id")
        | (MappingTable::Breaker, "name") => json!({"pattern": IDENTIFIER}),
        (MappingTable::Command | MappingTable::Handler, "capture_output") => {
            json!({"pattern": NAME, "not": {"enum": RESERVED_NAMES}})
        }
        (MappingTable::Map, "max_parallel") => {
            json!({"minimum": 1, "maximum": u32::MAX, "pattern": VARIABLE})
        }
        (MappingTable::Map | MappingTable::TimeoutConfig, "agent_timeout_secs") => {
            json!({"exclusiveMinimum": 0})
        }
        (MappingTable::Workflow, "retry_budget" | "retry_budget_per_workflow")
        | (MappingTable::Map | MappingTable::FlowStep, "best_effort_deadline_seconds") => {
            json!({"minimum": 0})
        }
        (MappingTable::Breaker, "failure_threshold" | "half_open_max_calls") => count_from(1),
        (MappingTable::Http, "url") => json!({"pattern": ADDRESS}),
        // A number is read as its digits: 7777 is the mode `7777`.
        (MappingTable::WriteFile, "mode") => json!({"pattern": PERMISSIONS, "maximum": 7777}),
        (MappingTable::FlowHttp, "endpoint" | "health_check") => {
            json!({"pattern": PLAIN_ADDRESS, "not": {"pattern": "\\$\\{"}})
        }
        // Parts of another system's language that are not supported.
        (MappingTable::FlowStep, "type") => json!({"not": {"const": "script"}}),
        (MappingTable::FlowStep, "memoizable") => json!({"const": false}),
        (MappingTable::Predicate, "language") => json!({"pattern": "^[cC][eE][lL]$"}),
        (MappingTable::WorkConfig, "max_retries") => {
            json!({"type": "integer", "minimum": -1, "maximum": u32::MAX})
        }
        _ => json!({}),
    }
}

fn count_from(least: i64) -> Value {
    json!({"minimum": least, "maximum": u32::MAX})
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
