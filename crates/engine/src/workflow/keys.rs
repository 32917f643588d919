//! Every key of the language, with the shape of its value and a description.
//!
//! One table for two uses: the reader of files refuses keys that are not in it and suggests the nearest
//! one, and the schema for editors, with its descriptions, is made from it.

use std::collections::BTreeSet;

use undaunted_policy::{Backoff, ParameterKind, Strategy};

use super::input::InputFormat;
use super::model::{AttributeRole, CaptureFormat, HttpProtocol, OnComplete, OnInterrupt, WorkflowMode};

#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueShape {
    /// Any text; it may contain `${…}`.
    Text,
    Flag,
    /// A whole number, not negative.
    Count,
    Number,
    /// At least 1.
    Factor,
    Duration,
    /// An HTTP status or several: `429`, `500-599`, `5xx`.
    Statuses,
    Anything,
    Words(&'static [&'static str]),
    /// The name of a strategy that needs no parameters.
    Strategy,
    ListOf(&'static ValueShape),
    /// A mapping from any names to this.
    MapOf(&'static ValueShape),
    AnyOf(&'static [ValueShape]),
    Keys(MappingTable),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct MappingKey {
    pub(crate) name: &'static str,
    pub(crate) shape: ValueShape,
    pub(crate) about: &'static str,
}

macro_rules! keys {
    ($($name:ident: $shape:expr, $about:literal;)*) => {
        &[$(MappingKey { name: stringify!($name), shape: $shape, about: $about },)*]
    };
}

macro_rules! tables {
    ($($table:ident $title:literal $(+ $shared:ident)* {
        $($name:ident: $shape:expr, $about:literal;)*
    })*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum MappingTable {
            $($table,)*
            Strategy(&'static Strategy),
        }

        impl MappingTable {
            pub(crate) fn all() -> impl Iterator<Item = Self> {
                [$(Self::$table,)*].into_iter().chain(strategies().map(Self::Strategy))
            }

            pub(crate) const fn title(self) -> &'static str {
                match self { $(Self::$table => $title,)* Self::Strategy(it) => it.name }
            }

            pub(crate) fn keys(self) -> impl Iterator<Item = MappingKey> {
                let parts: &'static [&'static [MappingKey]] = match self {
                    $(Self::$table => &[
                        keys!($($name: $shape, $about;)*),
                        $($shared,)*
                    ],)*
                    Self::Strategy(_) => &[],
                };
                parts.iter().copied().flatten().copied().chain(self.of_strategies())
            }
        }
    };
}

pub(crate) const HTTP_METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// The methods by which a flow step may be called; the first is the default.
pub(crate) const STEP_METHODS: [&str; 5] = ["POST", "GET", "PUT", "PATCH", "DELETE"];
pub(crate) const STEP_TYPES: [&str; 4] = ["sync", "async", "script", "flow"];
pub(crate) const ATTRIBUTE_TYPES: [&str; 7] =
    ["string", "number", "boolean", "object", "array", "null", "any"];
/// Roots of references, which cannot be names of captured outputs.
pub(crate) const RESERVED_NAMES: [&str; 7] = ["item", "item_file", "map", "step", "env", "workflow", "raw"];
/// Keys that a command inside a handler cannot have.
pub(crate) const NOT_IN_HANDLERS: [&str; 4] = ["on_failure", "on_success", "breaker", "on_interrupt"];
pub(crate) const TOLERANCE_KEYS: [&str; 4] =
    ["continue_on_failure", "max_failures", "failure_threshold", "on_item_failure"];

/// Keys of a workflow that a mode does not allow.
pub(crate) fn keys_of_other_modes(mode: WorkflowMode) -> Vec<&'static str> {
    let flow = ["steps", "goals", "init"];
    let map = ["setup", "map", "reduce"];
    match mode {
        WorkflowMode::Sequence => [map, flow].concat(),
        WorkflowMode::MapReduce => [&["commands"], &flow[..]].concat(),
        // The retries of a flow step are set in its `work_config`.
        WorkflowMode::Flow => {
            [&["commands"], &map[..], &["retry_config", "error_policy"], &TOLERANCE_KEYS].concat()
        }
    }
}

/// Keys of commands, which cannot be names of agents; `claude` is an agent already.
pub(crate) fn keys_of_commands() -> BTreeSet<&'static str> {
    let tables = [MappingTable::Command, MappingTable::Handler].into_iter();
    tables.flat_map(MappingTable::keys).map(MappingKey::name).filter(|name| *name != "claude").collect()
}

const COMMANDS: ValueShape = ValueShape::AnyOf(&[
    ValueShape::ListOf(&ValueShape::Keys(MappingTable::Command)),
    ValueShape::Keys(MappingTable::CommandList),
]);
const WORDS_OR_COUNT: ValueShape = ValueShape::AnyOf(&[ValueShape::Count, ValueShape::Words(&["unlimited"])]);
const SEVERAL_COUNTS: ValueShape =
    ValueShape::AnyOf(&[ValueShape::Count, ValueShape::ListOf(&ValueShape::Count)]);
const SIGNALS: ValueShape = ValueShape::AnyOf(&[
    ValueShape::Count,
    ValueShape::Text,
    ValueShape::ListOf(&ValueShape::AnyOf(&[ValueShape::Count, ValueShape::Text])),
]);
const CLASS: ValueShape = ValueShape::Words(&[
    "transient",
    "throttled",
    "permanent",
    "network",
    "timeout",
    "server_error",
    "rate_limit",
    "interrupted",
]);
const BREAKER: ValueShape = ValueShape::AnyOf(&[ValueShape::Flag, ValueShape::Keys(MappingTable::Breaker)]);
const TEXTS: ValueShape =
    ValueShape::MapOf(&ValueShape::AnyOf(&[ValueShape::Text, ValueShape::Number, ValueShape::Flag]));

/// The actions of a command; the name of an agent is another.
pub(super) const ACTIONS: &[MappingKey] = keys! {
    shell: ValueShape::Text, "A shell script to run.";
    claude: ValueShape::Text, "A prompt for the agent `claude`.";
    http: ValueShape::Keys(MappingTable::Http), "An HTTP request.";
    write_file: ValueShape::Keys(MappingTable::WriteFile), "A file to write.";
    function: ValueShape::AnyOf(&[ValueShape::Text, ValueShape::Keys(MappingTable::Function)]), "A function of the program that embeds the runner.";
};
/// Keys that commands and handlers share.
const RUNNING: &[MappingKey] = keys! {
    id: ValueShape::Text, "The id of the command.";
    timeout: ValueShape::Duration, "The time limit of one attempt.";
    env: TEXTS, "Environment variables of this command.";
    working_dir: ValueShape::Text, "The working directory.";
    capture_output: ValueShape::Text, "The name under which later commands find its output.";
    capture_format: ValueShape::Words(CaptureFormat::WORDS), "The format of its output.";
    output_limit: ValueShape::Count, "The most bytes of output an attempt may write.";
};
/// How failed items are handled.
const TOLERANCE: &[MappingKey] = keys! {
    continue_on_failure: ValueShape::Flag, "Whether the other items continue when one fails.";
    max_failures: ValueShape::Count, "Stop at this many failed items.";
    failure_threshold: ValueShape::Number, "Stop when more than this share of the items has failed.";
    on_item_failure: ValueShape::Words(&["dlq", "retry", "skip", "stop"]), "What to do with a failed item.";
};
/// When a step is complete.
const COMPLETION: &[MappingKey] = keys! {
    best_effort: ValueShape::Flag, "Whether the step may complete without all items.";
    best_effort_min_dcs: ValueShape::Count, "How many items have to succeed.";
    best_effort_deadline_seconds: ValueShape::Number, "How long to wait for them, in seconds (default 300).";
    on_complete: ValueShape::Words(OnComplete::WORDS), "What to do with attempts that are still running then.";
};

tables! {
    Workflow "a workflow" + TOLERANCE {
        name: ValueShape::Text, "The name of the workflow.";
        mode: ValueShape::Words(WorkflowMode::WORDS), "The kind of workflow; a list of commands needs none.";
        commands: COMMANDS, "The commands, run in order.";
        setup: COMMANDS, "Commands that run once before the map.";
        map: ValueShape::Keys(MappingTable::Map), "The work to do for every item.";
        reduce: COMMANDS, "Commands that run once after the map, with its results.";
        steps: ValueShape::ListOf(&ValueShape::Keys(MappingTable::FlowStep)), "The steps of a flow.";
        goals: ValueShape::ListOf(&ValueShape::Text), "The steps that the flow has to reach.";
        init: ValueShape::MapOf(&ValueShape::Anything), "The initial attributes of a flow.";
        shell: ValueShape::Text, "The shell that runs `shell` commands (default /bin/sh).";
        agents: ValueShape::MapOf(&ValueShape::ListOf(&ValueShape::Text)), "Programs that take a prompt: a name and its arguments, one of them `{prompt}`.";
        env: TEXTS, "Environment variables of every command.";
        secrets: ValueShape::MapOf(&ValueShape::Keys(MappingTable::Secret)), "Environment variables whose values are never recorded.";
        retry_config: ValueShape::Keys(MappingTable::RetryConfig), "How commands are retried, unless a closer block overrides it.";
        error_policy: ValueShape::Keys(MappingTable::ErrorPolicy), "How failures are handled.";
        retry_budget: ValueShape::Count, "Retries for the whole job; 0 requests the operator's default.";
        retry_budget_per_workflow: ValueShape::Count, "Retries for any one item; 0 requests the operator's default.";
        deadline: ValueShape::Duration, "The time limit of the job.";
    }
    CommandList "a list of commands" {
        commands: ValueShape::ListOf(&ValueShape::Keys(MappingTable::Command)), "The commands, run in order.";
    }
    Command "a command" + ACTIONS + RUNNING {
        on_failure: ValueShape::AnyOf(&[ValueShape::Keys(MappingTable::Handler), ValueShape::ListOf(&ValueShape::Keys(MappingTable::Command))]), "What to run when the command has failed and is no longer retried.";
        on_success: ValueShape::AnyOf(&[ValueShape::Keys(MappingTable::Command), ValueShape::ListOf(&ValueShape::Keys(MappingTable::Command))]), "What to run after the command has succeeded.";
        retry_config: ValueShape::Keys(MappingTable::RetryConfig), "How it is retried.";
        breaker: BREAKER, "Its circuit breaker: `true`, or the settings (default none).";
        on_interrupt: ValueShape::Words(OnInterrupt::WORDS), "What to do about an attempt whose process was lost.";
    }
    Handler "a failure handler" + ACTIONS + RUNNING {
        commands: ValueShape::ListOf(&ValueShape::Keys(MappingTable::Command)), "Several commands, run in order until one fails.";
        max_attempts: ValueShape::Count, "How many times to run the handler and then the command again.";
        fail_workflow: ValueShape::Flag, "Whether the command counts as failed even if the handler succeeds.";
        retry_config: ValueShape::Keys(MappingTable::RetryConfig), "How it is retried; a handler inherits nothing.";
    }
    Map "a map" + COMPLETION {
        input: ValueShape::AnyOf(&[ValueShape::Text, ValueShape::Keys(MappingTable::Input)]), "Where the items come from.";
        json_path: ValueShape::Text, "The JSONPath of the items in a JSON document.";
        filter: ValueShape::Text, "A condition that selects items.";
        sort_by: ValueShape::Text, "The order of the items.";
        distinct: ValueShape::Text, "Take only the first item for each value of this field.";
        offset: ValueShape::Count, "How many items to skip at the beginning.";
        max_items: ValueShape::Count, "The largest number of items to take.";
        max_parallel: ValueShape::AnyOf(&[ValueShape::Count, ValueShape::Text]), "How many items run at a time (default 10): a number or `$VARIABLE`.";
        agent_template: COMMANDS, "The commands for one item.";
        agent_timeout_secs: ValueShape::Number, "The time limit of one item in seconds, delays included.";
        timeout_config: ValueShape::Keys(MappingTable::TimeoutConfig), "Time limits and retries of the items.";
        error_policy: ValueShape::Keys(MappingTable::ErrorPolicy), "How failures are handled.";
    }
    Input "an input" {
        file: ValueShape::Text, "A file.";
        format: ValueShape::Words(InputFormat::WORDS), "The format (default: by the extension of the file).";
        shell: ValueShape::Text, "A shell script whose output is the input.";
    }
    TimeoutConfig "a timeout_config" {
        timeout: ValueShape::Duration, "The time limit of one attempt.";
        agent_timeout_secs: ValueShape::Number, "The time limit of one item in seconds, delays included.";
        retry_config: ValueShape::Keys(MappingTable::RetryConfig), "How the commands of an item are retried.";
    }
    ErrorPolicy "an error_policy" + TOLERANCE {
        retry_config: ValueShape::Keys(MappingTable::RetryConfig), "How commands are retried.";
    }
    RetryConfig "a retry_config" {
        attempts: WORDS_OR_COUNT, "Retries after the first attempt (default 3), or `unlimited`.";
        max_attempts: WORDS_OR_COUNT, "The same as `attempts`.";
        max_retries: WORDS_OR_COUNT, "The same as `attempts`.";
        backoff: ValueShape::AnyOf(&[ValueShape::Strategy, ValueShape::Keys(MappingTable::Backoff)]), "How the delay grows (default exponential with base 2).";
        initial_delay: ValueShape::Duration, "The first delay (default 1s).";
        max_delay: ValueShape::Duration, "The cap of every delay, before jitter (default 30s).";
        jitter: ValueShape::AnyOf(&[ValueShape::Flag, ValueShape::Words(&["full", "equal", "decorrelated"])]), "How delays are randomized (default false).";
        jitter_factor: ValueShape::Number, "How far `jitter: true` spreads delays, from 0 to 1 (default 0.3).";
        retry_budget: ValueShape::Duration, "The limit on the sum of all delays.";
        max_retry_after: ValueShape::Duration, "The longest Retry-After that is honoured (default 5m).";
        retry_on: ValueShape::ListOf(&ValueShape::AnyOf(&[ValueShape::Words(&["network", "timeout", "server_error", "rate_limit"]), ValueShape::Keys(MappingTable::Pattern)])), "Which failures are retried (default: everything transient).";
        retry_statuses: ValueShape::Statuses, "HTTP statuses that are retried although they are below 500.";
        rules: ValueShape::ListOf(&ValueShape::Keys(MappingTable::Rule)), "Rules for failures; the first that matches decides.";
    }
    Backoff "a backoff" {
    }
    Pattern "a pattern" {
        pattern: ValueShape::Text, "A regular expression to find in the error text.";
    }
    Rule "a rule" {
        exit_code: SEVERAL_COUNTS, "One of these exit codes.";
        signal: SIGNALS, "One of these signals, by number or name.";
        status: ValueShape::Statuses, "One of these HTTP statuses.";
        class: ValueShape::AnyOf(&[CLASS, ValueShape::ListOf(&CLASS)]), "One of these classes.";
        stderr: ValueShape::Text, "A regular expression to find in standard error.";
        output: ValueShape::Text, "A regular expression to find in standard output.";
        then: ValueShape::Words(&["retry", "stop", "skip", "dead_letter", "hold"]), "What to do.";
        retry_config: ValueShape::Keys(MappingTable::RetryConfig), "Retry settings that override those of the command.";
    }
    Breaker "a breaker" {
        name: ValueShape::Text, "Commands that name the same breaker share it.";
        failure_threshold: ValueShape::Count, "Failures in a row that open it (default 5).";
        recovery_timeout: ValueShape::Duration, "How long it stays open (default 60s).";
        half_open_max_calls: ValueShape::Count, "Successes that close it again (default 3).";
        when_open: ValueShape::Words(&["hold", "fail"]), "What to do with a start while the breaker is open (default hold).";
        max_hold: ValueShape::Duration, "The longest time to hold a start.";
    }
    Http "an http command" {
        method: ValueShape::Words(&HTTP_METHODS), "The method (default GET).";
        url: ValueShape::Text, "The URL.";
        headers: TEXTS, "Headers to send.";
        body: ValueShape::Anything, "The body: text as it is, anything else as JSON.";
        expect: ValueShape::Statuses, "Statuses that count as success (default 200-299).";
        protocol: ValueShape::Words(HttpProtocol::WORDS), "How the response is read.";
    }
    Function "a call of a function" {
        name: ValueShape::Text, "The name of the function.";
        with: ValueShape::Anything, "The input of the function, instead of the item.";
    }
    WriteFile "a write_file command" {
        path: ValueShape::Text, "The path of the file.";
        content: ValueShape::AnyOf(&[ValueShape::Text, ValueShape::Number, ValueShape::Flag]), "The content of the file.";
        create_dirs: ValueShape::Flag, "Whether to create missing directories.";
        mode: ValueShape::AnyOf(&[ValueShape::Text, ValueShape::Count]), "Its permissions, such as `0644`.";
    }
    Secret "a secret" {
        env: ValueShape::Text, "The environment variable it is read from.";
        file: ValueShape::Text, "The file it is read from.";
    }
    FlowStep "a flow step" + COMPLETION {
        id: ValueShape::Text, "The id of the step.";
        name: ValueShape::Text, "The name to display.";
        r#type: ValueShape::Words(&STEP_TYPES), "How the step runs.";
        http: ValueShape::Keys(MappingTable::FlowHttp), "The service that runs the step.";
        flow: ValueShape::Keys(MappingTable::FlowGoals), "The flow to run as the step.";
        predicate: ValueShape::Keys(MappingTable::Predicate), "The condition for running the step.";
        work_config: ValueShape::Keys(MappingTable::WorkConfig), "How its items are retried, with delays in milliseconds.";
        memoizable: ValueShape::Flag, "Whether results may be reused.";
        labels: TEXTS, "Labels of the step.";
        attributes: ValueShape::MapOf(&ValueShape::Keys(MappingTable::Attribute)), "Its inputs and outputs.";
        breaker: BREAKER, "Its circuit breaker: `true`, or the settings (default none).";
    }
    FlowHttp "the http of a flow step" {
        endpoint: ValueShape::Text, "The URL to call; `{name}` in its path or query stands for an input.";
        method: ValueShape::Words(&STEP_METHODS), "The method (default POST). A GET has no body.";
        health_check: ValueShape::Text, "The URL of its health check.";
        timeout: ValueShape::Count, "The time limit of a call in milliseconds (default 30000).";
        completion_timeout: ValueShape::Count, "How long to wait for the result of an async step, in milliseconds (default 24 hours).";
    }
    FlowGoals "the flow of a flow step" {
        goals: ValueShape::ListOf(&ValueShape::Text), "The goals of the flow.";
    }
    Predicate "a predicate" {
        language: ValueShape::Text, "The language of the script; only CEL is supported.";
        script: ValueShape::Text, "The condition.";
    }
    WorkConfig "a work_config" {
        max_retries: ValueShape::Number, "Retries after the first attempt, -1 for unlimited. Without it there are none.";
        backoff: ValueShape::Count, "The first delay, in milliseconds.";
        max_backoff: ValueShape::Count, "The cap, in milliseconds.";
        backoff_type: ValueShape::Words(&["fixed", "linear", "exponential"]), "How the delay grows.";
        parallelism: ValueShape::Count, "How many items run at a time.";
    }
    Attribute "an attribute" {
        role: ValueShape::Words(AttributeRole::WORDS), "Whether it is an input, a constant or an output.";
        r#type: ValueShape::Words(&ATTRIBUTE_TYPES), "The type of its value.";
        default: ValueShape::Text, "The default value, as JSON text.";
        for_each: ValueShape::Flag, "Whether every element becomes an item.";
        mapping: ValueShape::Keys(MappingTable::Mapping), "Its name in calls of the step.";
    }
    Mapping "a mapping" {
        name: ValueShape::Text, "The name.";
    }
}

impl MappingTable {
    pub(crate) fn key(self, name: &str) -> Option<MappingKey> {
        self.keys().find(|key| key.name() == name)
    }

    pub(crate) fn required(self) -> Vec<&'static str> {
        let keys: &[_] = match self {
            Self::Strategy(it) => return it.required().map(|(key, _)| key).collect(),
            Self::Map => &["input", "agent_template"],
            Self::Http => &["url"],
            Self::WriteFile => &["path", "content"],
            Self::Rule => &["then"],
            Self::Pattern => &["pattern"],
            Self::FlowStep => &["id", "type"],
            Self::FlowHttp => &["endpoint"],
            Self::FlowGoals => &["goals"],
            Self::Predicate => &["script"],
            Self::Attribute => &["role"],
            Self::CommandList => &["commands"],
            _ => &[],
        };
        keys.to_vec()
    }

    /// The strategies of a `backoff`, or the parameters of a strategy.
    fn of_strategies(self) -> impl Iterator<Item = MappingKey> {
        let strategies = strategies().filter(move |_| self == Self::Backoff);
        let strategies = strategies.map(|strategy| MappingKey {
            name: strategy.name,
            shape: ValueShape::Keys(Self::Strategy(strategy)),
            about: strategy.about,
        });
        let parameters = match self {
            Self::Strategy(strategy) => strategy.parameters,
            _ => &[],
        };
        let parameters = parameters.iter().map(|parameter| MappingKey {
            name: parameter.key,
            shape: match parameter.kind {
                ParameterKind::Span => ValueShape::Duration,
                ParameterKind::Factor => ValueShape::Factor,
                ParameterKind::Spans => ValueShape::ListOf(&ValueShape::Duration),
            },
            about: parameter.about,
        });
        strategies.chain(parameters)
    }
}

fn strategies() -> impl Iterator<Item = &'static Strategy> {
    Backoff::ALL.iter().map(Backoff::strategy)
}

pub(crate) fn plain_strategies() -> Vec<&'static str> {
    let plain = strategies().filter(|strategy| strategy.required().next().is_none());
    plain.map(|strategy| strategy.name).collect()
}

impl MappingKey {
    /// The name without the `r#` that Rust needs for its keywords.
    pub(crate) fn name(self) -> &'static str {
        self.name.strip_prefix("r#").unwrap_or(self.name)
    }
}

#[cfg(test)]
mod tests {
    use undaunted_policy::RetryConfig;

    use super::*;

    #[test]
    fn the_table_of_a_retry_config_has_the_keys_that_are_read() {
        let listed: Vec<_> = MappingTable::RetryConfig.keys().map(MappingKey::name).collect();
        assert_eq!(listed, RetryConfig::KEYS);
    }

    #[test]
    fn every_key_says_what_it_is_for() {
        for table in MappingTable::all() {
            for key in table.keys() {
                assert!(key.about.ends_with(['.', '…']), "{} {}", table.title(), key.name);
            }
        }
    }
}
