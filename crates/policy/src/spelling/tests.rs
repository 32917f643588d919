//! Tests of every spelling of a policy. They use JSON: serde reads YAML through the same visitors.

use core::time::Duration;

use super::*;
use crate::backoff::Backoff;
use crate::config::RetryConfig;
use crate::draw::Seed;
use crate::limits::Attempts;
use crate::policy::Policy;
use crate::schedule::Schedule;

fn read(json: &str) -> Result<RetryConfig, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

fn refused(json: &str) -> String {
    let message = match read(json) {
        Err(message) => message,
        Ok(config) => config.build().unwrap_err().to_string(),
    };
    message.split(" at line").next().unwrap().to_owned()
}

fn seconds(json: &str, retries: usize) -> Vec<u64> {
    let policy = read(json).unwrap().build().unwrap();
    let plan = Schedule::new(&policy, Seed(0).draws(0, 0, 1));
    plan.take(retries).map(|planned| planned.delay.drawn.as_secs()).collect()
}

#[test]
fn both_dialects_mean_the_same() {
    for (one, other) in [
        (r#"{"attempts": 5}"#, r#"{"max_attempts": 5}"#),
        (r#"{"attempts": 5}"#, r#"{"max_retries": 5}"#),
        (r#"{"backoff": "fixed", "initial_delay": "5s"}"#, r#"{"backoff": {"fixed": {"delay": "5s"}}}"#),
        (
            r#"{"backoff": {"linear": {"increment": "2s"}}, "initial_delay": "1s"}"#,
            r#"{"backoff": {"linear": {"initial": "1s", "increment": "2s"}}}"#,
        ),
        (
            r#"{"backoff": {"exponential": {"base": 3.0}}, "initial_delay": "1s"}"#,
            r#"{"backoff": {"exponential": {"initial": "1s", "multiplier": 3}}}"#,
        ),
        (r#"{"backoff": "exponential"}"#, r#"{"backoff": {"exponential": {"base": 2.0}}}"#),
        (
            r#"{"backoff": "fibonacci", "initial_delay": "1s"}"#,
            r#"{"backoff": {"fibonacci": {"initial": "1s"}}}"#,
        ),
        (
            r#"{"initial_delay": "5s", "backoff": {"fixed": {"delay": "5s"}}}"#,
            r#"{"backoff": {"fixed": {"delay": "5s"}}}"#,
        ),
    ] {
        assert_eq!(read(one).unwrap(), read(other).unwrap(), "{one} {other}");
    }
}

#[test]
fn the_worked_examples_of_the_guide_are_exact() {
    assert_eq!(seconds(r#"{"backoff": "fixed", "initial_delay": "2s"}"#, 3), [2, 2, 2]);
    let linear = r#"{"backoff": {"linear": {"increment": "2s"}}, "initial_delay": "1s"}"#;
    assert_eq!(seconds(linear, 3), [1, 3, 5]);
    let exponential = r#"{"attempts": 5, "initial_delay": "1s", "max_delay": "100s"}"#;
    assert_eq!(seconds(exponential, 9), [1, 2, 4, 8, 16]);
    let fibonacci = r#"{"attempts": 6, "backoff": "fibonacci", "initial_delay": "1s"}"#;
    assert_eq!(seconds(fibonacci, 9), [1, 1, 2, 3, 5, 8]);
    let agent = r#"{"attempts": 5, "backoff": "fibonacci", "initial_delay": "10s", "max_delay": "60s"}"#;
    assert_eq!(seconds(agent, 9), [10, 10, 20, 30, 50]);
    let custom = r#"{"attempts": 7, "backoff": {"custom": {"delays": ["1s", "2s", "5s", "10s"]}}}"#;
    assert_eq!(seconds(custom, 9), [1, 2, 5, 10, 30, 30, 30]);
    let empty = r#"{"backoff": {"custom": {"delays": []}}}"#;
    assert_eq!(seconds(empty, 9), [30, 30, 30]);
    let budget = r#"{"attempts": 100, "retry_budget": "2m", "backoff": {"exponential": {"base": 2.0}}}"#;
    assert_eq!(seconds(budget, 99), [1, 2, 4, 8, 16, 30, 30]);
    let attempts = r#"{"attempts": 3, "retry_budget": "10m", "backoff": "fixed", "initial_delay": "5s"}"#;
    assert_eq!(seconds(attempts, 9), [5, 5, 5]);
    assert_eq!(seconds(r#"{"retry_budget": "5s", "attempts": 9}"#, 9), [1, 2]);
    let tested = r#"{"attempts": 10, "initial_delay": "50ms", "retry_budget": "100ms"}"#;
    assert_eq!(seconds(tested, 99).len(), 1, "50ms, and 100ms more would be 150ms");
}

#[test]
fn a_contradiction_names_the_setting_and_both_values() {
    for (json, message) in [
        (r#"{"attempts": 3, "max_attempts": 5}"#, "`attempts` has two values, 3 and 5"),
        (
            r#"{"initial_delay": "1s", "backoff": {"fixed": {"delay": "5s"}}}"#,
            "`initial_delay` has two values, 1s and 5s",
        ),
        (r#"{"backoff": {"exponential": {"base": 2, "multiplier": 3}}}"#, "`base` has two values, 2 and 3"),
        (
            r#"{"backoff": {"fixed": {"delay": "1s"}, "fibonacci": {}}}"#,
            "`backoff` has two strategies, `fixed` and `fibonacci`",
        ),
    ] {
        assert_eq!(refused(json), message);
    }
}

#[test]
fn a_wrong_value_says_what_is_accepted() {
    for (json, message) in [
        (r#"{"atempts": 3}"#, "unknown field `atempts`, expected one of `attempts`"),
        (r#"{"attempts": -1}"#, "`-1` is not a number of retries, or `unlimited`"),
        (r#"{"attempts": 4294967296}"#, "`4294967296` is not a number of retries"),
        (r#"{"attempts": "3"}"#, "`3` is not a number of retries"),
        (r#"{"attempts": 2.5}"#, "`2.5` is not a number of retries"),
        (r#"{"attempts": null}"#, "invalid type: null, expected a number of retries"),
        (r#"{"initial_delay": 500}"#, "`500` is not a duration; a number needs a unit: `500ms` or `500s`"),
        (r#"{"initial_delay": "1 second"}"#, "`1 second` is not a duration; write `1s`"),
        (r#"{"jitter": "some"}"#, "`some` is not `true`, `false`, `full`, `equal` or `decorrelated`"),
        (r#"{"jitter_factor": 1.5}"#, "`jitter_factor` is 1.5; it must be a number from 0 to 1"),
        (r#"{"backoff": "quadratic"}"#, "unknown variant `quadratic`, expected one of `fixed`"),
        (r#"{"backoff": "linear"}"#, "`linear` needs its step"),
        (
            r#"{"backoff": {"exponential": {"base": 0.5}}}"#,
            "`base` is 0.5; it must be a number of at least 1",
        ),
        (r#"{"backoff": {"fibonacci": {"base": 2}}}"#, "unknown field `base`, expected `initial`"),
        (r#"{"backoff": {"custom": {"delays": ["1s", 5]}}}"#, "`5` is not a duration"),
        (r#"{"retry_statuses": [42]}"#, "`42` is not an HTTP status"),
        (r#"{"retry_on": ["teapot"]}"#, "unknown variant `teapot`, expected one of `network`"),
        (r#"{"rules": [{"exit_code": 1}]}"#, "missing field `then`"),
        (r#"{"rules": [{"exit_code": 256, "then": "stop"}]}"#, "`256` is not an exit code from 0 to 255"),
        (r#"{"rules": [{"signal": "FOO", "then": "stop"}]}"#, "`FOO` is not a signal"),
        (r#"{"rules": [{"class": "odd", "then": "stop"}]}"#, "`odd` is not a class of failures"),
        (r#"{"rules": [{"exit_code": [], "then": "stop"}]}"#, "`exit_code` is an empty list"),
        (r#"{"rules": [{"then": "stop", "then": "retry"}]}"#, "duplicate field `then`"),
        (
            r#"{"rules": [{"then": "stop", "retry_config": {}}]}"#,
            "a rule's `retry_config` is only allowed with `then: retry`",
        ),
    ] {
        let actual = refused(json);
        assert!(actual.starts_with(message), "{json}\n  got:      {actual}\n  expected: {message}");
    }
}

#[test]
fn an_empty_retry_on_is_read_as_an_absent_one() {
    let empty = r#"{"attempts": 2, "retry_on": []}"#;
    assert_eq!(read(empty).unwrap(), read(r#"{"attempts": 2}"#).unwrap());
    let in_rule = r#"{"rules": [{"then": "retry", "retry_config": {"retry_on": []}}]}"#;
    assert_eq!(
        read(in_rule).unwrap(),
        read(r#"{"rules": [{"then": "retry", "retry_config": {}}]}"#).unwrap()
    );
    // As an earlier release saved it.
    let saved: Policy = serde_json::from_str(empty).unwrap();
    assert!(!serde_json::to_string(&saved).unwrap().contains("retry_on"));
}

#[test]
fn a_saved_policy_is_restored_exactly() {
    for json in [
        "{}",
        r#"{"attempts": "unlimited", "jitter": true, "jitter_factor": 0.123456789}"#,
        r#"{"backoff": {"exponential": {"base": 1.1}}, "jitter": "decorrelated", "max_delay": "1h30m"}"#,
        r#"{"backoff": {"linear": {"increment": "1ns"}}, "jitter": "equal", "retry_budget": "213000d"}"#,
        r#"{"backoff": {"custom": {"delays": ["1s", "2d"]}}, "jitter": "full", "max_retry_after": "9m"}"#,
        r#"{"retry_on": ["network", {"pattern": "dead(lock|line)"}], "retry_statuses": [429, "5xx"]}"#,
        r#"{"rules": [
            {"exit_code": [75, 111], "signal": ["TERM", 9], "status": "500-503", "then": "retry",
             "retry_config": {"attempts": 9, "backoff": "fixed"}},
            {"class": ["permanent", "timeout", "interrupted"], "stderr": "a.b", "output": "^x", "then": "dead_letter"},
            {"then": "skip"}]}"#,
    ] {
        if cfg!(not(feature = "regex")) && json.contains("pattern") | json.contains("stderr") {
            continue;
        }
        let policy = read(json).unwrap().build().unwrap();
        let saved = serde_json::to_string(&policy).unwrap();
        let restored: Policy = serde_json::from_str(&saved).unwrap();
        assert_eq!(restored, policy, "{saved}");
        let config = read(json).unwrap();
        let saved = serde_json::to_string(&config).unwrap();
        assert_eq!(read(&saved).unwrap(), config, "{saved}");
    }
    let mut policy = Policy::DEFAULT;
    policy.terms.limits.deadline = Some(Duration::from_secs(90));
    let saved = serde_json::to_string(&policy).unwrap();
    assert_eq!(serde_json::from_str::<Policy>(&saved).unwrap(), policy);
}

#[test]
fn a_work_config_becomes_the_same_settings() {
    let waits = |json: &str, retries| {
        let config: WorkConfig = serde_json::from_str(json).unwrap();
        let config = config.retry_config(&WorkDefaults::DEFAULT).unwrap();
        let plan = Schedule::new(&config.build().unwrap(), Seed(0).draws(0, 0, 1));
        let millis = plan.take(retries).map(|planned| planned.delay.drawn.as_millis());
        millis.collect::<Vec<_>>()
    };
    let with = |kind| {
        format!(r#"{{"max_retries": 5, "backoff": 100, "max_backoff": 350, "backoff_type": "{kind}"}}"#)
    };
    assert_eq!(waits(&with("fixed"), 9), [100; 5]);
    assert_eq!(waits(&with("linear"), 9), [100, 200, 300, 350, 350]);
    assert_eq!(waits(&with("exponential"), 9), [100, 200, 350, 350, 350]);
    assert_eq!(waits("{}", 9), [0_u128; 0], "without max_retries there are none");
    let uncapped = r#"{"max_retries": -1, "backoff": 50000, "max_backoff": 0}"#;
    assert_eq!(waits(uncapped, 3), [50_000, 60_000, 60_000]);
    let absent = WorkDefaults::DEFAULT.retry_config().build().unwrap();
    assert_eq!(absent.terms().limits().attempts(), Attempts::AtMost(10));
    assert_eq!(absent.terms().pace().backoff(), &Backoff::DEFAULT);
}

#[test]
fn an_impossible_work_config_is_refused_by_name() {
    let refused = |json| {
        let config: WorkConfig = serde_json::from_str(json).unwrap();
        config.retry_config(&WorkDefaults::DEFAULT).unwrap_err().to_string()
    };
    assert_eq!(
        refused(r#"{"backoff": -1}"#),
        "`backoff` is -1; it must be a number of milliseconds of at least 0"
    );
    assert_eq!(
        refused(r#"{"backoff": 100, "max_backoff": 99}"#),
        "`max_backoff` is 99; it must be a number of at least `backoff`"
    );
    assert_eq!(
        refused(r#"{"max_retries": -2}"#),
        "`max_retries` is -2; it must be a number of at least 0, or -1 for unlimited"
    );
    let unknown = serde_json::from_str::<WorkConfig>(r#"{"backoff_type": "cubic"}"#);
    assert!(unknown.unwrap_err().to_string().contains("`cubic`"));
}
