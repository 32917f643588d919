//! Every key of the language, with what stands behind it and what it is for.
//!
//! One table for three readers: the reader of files refuses what is not in it and finds the nearest
//! key to a wrong one, the schema for editors is made from it, and people read its sentences.

use undaunted_policy::{Backoff, ParameterKind, Strategy};

/// What stands behind a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueShape {
    /// Any text; `${…}` may stand in it.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number, not negative.
    Count,
    /// Any number.
    Number,
    /// A number of at least 1.
    Factor,
    /// A duration such as `30s`.
    Duration,
    /// An HTTP status or several: `429`, `500-599`, `5xx`.
    Statuses,
    /// Whatever JSON can say.
    Anything,
    /// One of these words.
    Words(&'static [&'static str]),
    /// The name of a strategy that needs no parameters.
    Strategy,
    /// A list.
    ListOf(&'static ValueShape),
    /// A mapping from any names to this.
    MapOf(&'static ValueShape),
    /// One of these shapes.
    AnyOf(&'static [ValueShape]),
    /// A mapping with known keys.
    Keys(MappingTable),
}

/// A key of a mapping.
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
    ($($(#[$doc:meta])* $table:ident $title:literal $(+ $shared:ident)* {
        $($name:ident: $shape:expr, $about:literal;)*
    })*) => {
        /// The mappings of the language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum MappingTable {
            $($(#[$doc])* $table,)*
            /// The parameters of a strategy.
            Strategy(&'static Strategy),
        }

        impl MappingTable {
            pub(crate) fn all() -> impl Iterator<Item = Self> {
                [$(Self::$table,)*].into_iter().chain(strategies().map(Self::Strategy))
            }

            /// What the mapping is called in messages.
            pub(crate) const fn title(self) -> &'static str {
                match self { $(Self::$table => $title,)* Self::Strategy(it) => it.name }
            }

            /// What it may hold.
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

/// What a command does: one of these, or the name of an agent.
pub(super) const ACTIONS: &[MappingKey] = keys! {
    shell: ValueShape::Text, "A text for the shell.";
    claude: ValueShape::Text, "A prompt for the agent `claude`.";
    http: ValueShape::Keys(MappingTable::Http), "An HTTP request.";
    write_file: ValueShape::Keys(MappingTable::WriteFile), "A file to write.";
    function: ValueShape::AnyOf(&[ValueShape::Text, ValueShape::Keys(MappingTable::Function)]), "A function of the program that runs the job; only a program that embeds it has any.";
};
/// How anything that runs is run.
const RUNNING: &[MappingKey] = keys! {
    id: ValueShape::Text, "What the command is called.";
    timeout: ValueShape::Duration, "How long one attempt may take.";
    env: TEXTS, "Environment variables of this command.";
    working_dir: ValueShape::Text, "The directory it runs in.";
    capture_output: ValueShape::Text, "The name under which later commands find its output.";
    capture_format: ValueShape::Words(&["string", "json", "lines", "number", "boolean"]), "How its output is read.";
    output_limit: ValueShape::Count, "Bytes of output after which an attempt is ended.";
};
/// What becomes of items that fail.
const TOLERANCE: &[MappingKey] = keys! {
    continue_on_failure: ValueShape::Flag, "Whether a failed item leaves the others running.";
    max_failures: ValueShape::Count, "Stop at this many failed items.";
    failure_threshold: ValueShape::Number, "Stop when more than this share of the items has failed.";
    on_item_failure: ValueShape::Words(&["dlq", "retry", "skip", "stop"]), "What becomes of an item that has failed.";
};
/// What a step waits for.
const COMPLETION: &[MappingKey] = keys! {
    best_effort: ValueShape::Flag, "Whether fewer than all items will do.";
    best_effort_min_dcs: ValueShape::Count, "How many have to succeed.";
    best_effort_deadline_seconds: ValueShape::Number, "How long to wait for them, in seconds (default 300).";
    on_complete: ValueShape::Words(&["cancel", "leave"]), "What becomes of what still runs then.";
};

tables! {
    /// The file.
    Workflow "a workflow" + TOLERANCE {
        name: ValueShape::Text, "What the workflow is called.";
        mode: ValueShape::Words(&["sequence", "mapreduce", "flow"]), "How its parts hang together; a list of commands needs none.";
        commands: COMMANDS, "The commands, one after the other.";
        setup: COMMANDS, "Commands that run once before the map.";
        map: ValueShape::Keys(MappingTable::Map), "What is done for every item.";
        reduce: COMMANDS, "Commands that run once after the map, with its results.";
        steps: ValueShape::ListOf(&ValueShape::Keys(MappingTable::FlowStep)), "The steps of a flow.";
        goals: ValueShape::ListOf(&ValueShape::Text), "The steps a flow has to reach.";
        init: ValueShape::MapOf(&ValueShape::Anything), "The attributes a flow begins with.";
        shell: ValueShape::Text, "The shell that runs `shell:` texts (default /bin/sh).";
        agents: ValueShape::MapOf(&ValueShape::ListOf(&ValueShape::Text)), "Programs that take a prompt: a name and its arguments, one of them `{prompt}`.";
        env: TEXTS, "Environment variables of every command.";
        secrets: ValueShape::MapOf(&ValueShape::Keys(MappingTable::Secret)), "Environment variables whose values are never recorded.";
        retry_config: ValueShape::Keys(MappingTable::RetryConfig), "How every command is retried, where nothing closer says otherwise.";
        error_policy: ValueShape::Keys(MappingTable::ErrorPolicy), "What becomes of failures.";
        retry_budget: ValueShape::Count, "Retries for the whole job; 0 asks for the operator's default.";
        retry_budget_per_workflow: ValueShape::Count, "Retries for any one item; 0 asks for the operator's default.";
        deadline: ValueShape::Duration, "How long the job may take.";
    }
    /// A list of commands with a name.
    CommandList "a list of commands" {
        commands: ValueShape::ListOf(&ValueShape::Keys(MappingTable::Command)), "The commands, one after the other.";
    }
    /// One command.
    Command "a command" + ACTIONS + RUNNING {
        on_failure: ValueShape::AnyOf(&[ValueShape::Keys(MappingTable::Handler), ValueShape::ListOf(&ValueShape::Keys(MappingTable::Command))]), "What runs when the command has stopped being retried.";
        on_success: ValueShape::AnyOf(&[ValueShape::Keys(MappingTable::Command), ValueShape::ListOf(&ValueShape::Keys(MappingTable::Command))]), "What runs after it has succeeded.";
        retry_config: ValueShape::Keys(MappingTable::RetryConfig), "How it is retried.";
        breaker: BREAKER, "The breaker it asks before every attempt: `true`, or its settings; none without it.";
        on_interrupt: ValueShape::Words(&["retry", "stop"]), "What becomes of an attempt that vanished with its process.";
    }
    /// What runs when a command has failed.
    Handler "a failure handler" + ACTIONS + RUNNING {
        commands: ValueShape::ListOf(&ValueShape::Keys(MappingTable::Command)), "Several commands, in order; the first failure ends them.";
        max_attempts: ValueShape::Count, "How often handler and command are tried together.";
        fail_workflow: ValueShape::Flag, "Whether the command counts as failed even if the handler succeeds.";
        retry_config: ValueShape::Keys(MappingTable::RetryConfig), "How it is retried; a handler inherits nothing.";
    }
    /// What is done for every item.
    Map "a map" + COMPLETION {
        input: ValueShape::AnyOf(&[ValueShape::Text, ValueShape::Keys(MappingTable::Input)]), "Where the items come from.";
        json_path: ValueShape::Text, "Which parts of a JSON document are items.";
        filter: ValueShape::Text, "Which items are taken.";
        sort_by: ValueShape::Text, "In which order.";
        distinct: ValueShape::Text, "Of items equal in this field, only the first.";
        offset: ValueShape::Count, "How many to leave out at the beginning.";
        max_items: ValueShape::Count, "How many to take at most.";
        max_parallel: ValueShape::AnyOf(&[ValueShape::Count, ValueShape::Text]), "How many run at a time (default 10); a number or `$VARIABLE`.";
        agent_template: COMMANDS, "The commands for one item.";
        agent_timeout_secs: ValueShape::Number, "How long one item may take, delays included, in seconds.";
        timeout_config: ValueShape::Keys(MappingTable::TimeoutConfig), "Time limits and retries of the items.";
        error_policy: ValueShape::Keys(MappingTable::ErrorPolicy), "What becomes of failures.";
    }
    /// Where items come from.
    Input "an input" {
        file: ValueShape::Text, "A file.";
        format: ValueShape::Words(&["json", "jsonl", "csv", "tsv", "lines"]), "How it is read (default: by its extension).";
        shell: ValueShape::Text, "A text for the shell, whose output is read.";
    }
    /// Time limits and retries of items.
    TimeoutConfig "a timeout_config" {
        timeout: ValueShape::Duration, "How long one attempt may take.";
        agent_timeout_secs: ValueShape::Number, "How long one item may take, delays included, in seconds.";
        retry_config: ValueShape::Keys(MappingTable::RetryConfig), "How the commands of an item are retried.";
    }
    /// What becomes of failures.
    ErrorPolicy "an error_policy" + TOLERANCE {
        retry_config: ValueShape::Keys(MappingTable::RetryConfig), "How commands are retried.";
    }
    /// When to try again.
    RetryConfig "a retry_config" {
        attempts: WORDS_OR_COUNT, "Retries after the first attempt (default 3), or `unlimited`.";
        max_attempts: WORDS_OR_COUNT, "The same as `attempts`.";
        max_retries: WORDS_OR_COUNT, "The same as `attempts`.";
        backoff: ValueShape::AnyOf(&[ValueShape::Strategy, ValueShape::Keys(MappingTable::Backoff)]), "How the delay grows (default exponential with base 2).";
        initial_delay: ValueShape::Duration, "The first delay (default 1s).";
        max_delay: ValueShape::Duration, "The cap of every delay, before jitter (default 30s).";
        jitter: ValueShape::AnyOf(&[ValueShape::Flag, ValueShape::Words(&["full", "equal", "decorrelated"])]), "How delays are spread (default false).";
        jitter_factor: ValueShape::Number, "How far `jitter: true` spreads them, from 0 to 1 (default 0.3).";
        retry_budget: ValueShape::Duration, "How long all delays together may be.";
        max_retry_after: ValueShape::Duration, "The longest Retry-After that is honoured (default 5m).";
        retry_on: ValueShape::ListOf(&ValueShape::AnyOf(&[ValueShape::Words(&["network", "timeout", "server_error", "rate_limit"]), ValueShape::Keys(MappingTable::Pattern)])), "Which failures are retried (default: everything transient).";
        retry_statuses: ValueShape::Statuses, "HTTP statuses that are retried although they are below 500.";
        rules: ValueShape::ListOf(&ValueShape::Keys(MappingTable::Rule)), "What to do about which failure; the first rule that matches decides.";
    }
    /// How a delay grows.
    Backoff "a backoff" {
    }
    /// A pattern to retry on.
    Pattern "a pattern" {
        pattern: ValueShape::Text, "A regular expression that the error text has to hold.";
    }
    /// One rule.
    Rule "a rule" {
        exit_code: SEVERAL_COUNTS, "One of these exit codes.";
        signal: SIGNALS, "One of these signals, by number or name.";
        status: ValueShape::Statuses, "One of these HTTP statuses.";
        class: ValueShape::AnyOf(&[CLASS, ValueShape::ListOf(&CLASS)]), "One of these classes.";
        stderr: ValueShape::Text, "This regular expression in its standard error.";
        output: ValueShape::Text, "This regular expression in its standard output.";
        then: ValueShape::Words(&["retry", "stop", "skip", "dead_letter", "hold"]), "What to do.";
        retry_config: ValueShape::Keys(MappingTable::RetryConfig), "How to retry, where it differs from the command's own.";
    }
    /// A circuit breaker.
    Breaker "a breaker" {
        name: ValueShape::Text, "Commands that name the same breaker share it.";
        failure_threshold: ValueShape::Count, "Failures in a row that open it (default 5).";
        recovery_timeout: ValueShape::Duration, "How long it stays open (default 60s).";
        half_open_max_calls: ValueShape::Count, "Successes that close it again (default 3).";
        when_open: ValueShape::Words(&["hold", "fail"]), "What becomes of a start while it is open (default hold).";
        max_hold: ValueShape::Duration, "How long a start may be held.";
    }
    /// An HTTP request.
    Http "an http command" {
        method: ValueShape::Words(&["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]), "The method (default GET).";
        url: ValueShape::Text, "The address.";
        headers: TEXTS, "Headers to send.";
        body: ValueShape::Anything, "What to send: a text as it is, anything else as JSON.";
        expect: ValueShape::Statuses, "Statuses that count as success (default 200-299).";
        protocol: ValueShape::Words(&["plain", "argyll"]), "How the answer is read.";
    }
    /// A call of a function.
    Function "a call of a function" {
        name: ValueShape::Text, "What the function is called.";
        with: ValueShape::Anything, "What it is given instead of the item.";
    }
    /// A file to write.
    WriteFile "a write_file command" {
        path: ValueShape::Text, "Where.";
        content: ValueShape::AnyOf(&[ValueShape::Text, ValueShape::Number, ValueShape::Flag]), "What.";
        create_dirs: ValueShape::Flag, "Whether missing directories are made.";
        mode: ValueShape::AnyOf(&[ValueShape::Text, ValueShape::Count]), "Its permissions, such as `0644`.";
    }
    /// A value that is never recorded.
    Secret "a secret" {
        env: ValueShape::Text, "The environment variable it is read from.";
        file: ValueShape::Text, "The file it is read from.";
    }
    /// A step of a flow.
    FlowStep "a flow step" + COMPLETION {
        id: ValueShape::Text, "What the step is called.";
        name: ValueShape::Text, "What people read.";
        r#type: ValueShape::Words(&["sync", "async", "script", "flow"]), "How it is done.";
        http: ValueShape::Keys(MappingTable::FlowHttp), "Where it is done.";
        flow: ValueShape::Keys(MappingTable::FlowGoals), "The flow it is done by.";
        predicate: ValueShape::Keys(MappingTable::Predicate), "When it is done at all.";
        work_config: ValueShape::Keys(MappingTable::WorkConfig), "How its items are retried, in milliseconds.";
        memoizable: ValueShape::Flag, "Whether results may be used again.";
        labels: TEXTS, "Names to find it by.";
        attributes: ValueShape::MapOf(&ValueShape::Keys(MappingTable::Attribute)), "What it takes and gives.";
        breaker: BREAKER, "The breaker it asks before every attempt: `true`, or its settings; none without it.";
    }
    /// Where a flow step is done.
    FlowHttp "the http of a flow step" {
        endpoint: ValueShape::Text, "The address that is called.";
        health_check: ValueShape::Text, "The address that tells whether it is up.";
        timeout: ValueShape::Count, "How long a call may take, in milliseconds (default 30000).";
        completion_timeout: ValueShape::Count, "How long the result of an async step is waited for, in milliseconds (default 24 hours).";
    }
    /// The flow a step is done by.
    FlowGoals "the flow of a flow step" {
        goals: ValueShape::ListOf(&ValueShape::Text), "The steps it has to reach.";
    }
    /// When a step is done at all.
    Predicate "a predicate" {
        language: ValueShape::Text, "The language of the script; CEL is understood.";
        script: ValueShape::Text, "The condition.";
    }
    /// The retries of a flow step.
    WorkConfig "a work_config" {
        max_retries: ValueShape::Number, "Retries after the first attempt, -1 for unlimited. Without it there are none.";
        backoff: ValueShape::Count, "The first delay, in milliseconds.";
        max_backoff: ValueShape::Count, "The cap, in milliseconds.";
        backoff_type: ValueShape::Words(&["fixed", "linear", "exponential"]), "How the delay grows.";
        parallelism: ValueShape::Count, "How many items run at a time.";
    }
    /// What a flow step takes or gives.
    Attribute "an attribute" {
        role: ValueShape::Words(&["required", "optional", "const", "output"]), "Which way it goes.";
        r#type: ValueShape::Words(&["string", "number", "boolean", "object", "array", "null", "any"]), "What kind of value it is.";
        default: ValueShape::Text, "The value where there is none, as JSON text.";
        for_each: ValueShape::Flag, "Whether every element of it is an item.";
        mapping: ValueShape::Keys(MappingTable::Mapping), "What it is called on the other side.";
    }
    /// What an attribute is called on the other side.
    Mapping "a mapping" {
        name: ValueShape::Text, "The name.";
    }
}

impl MappingTable {
    /// Keys that the mapping cannot do without.
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

/// The strategies that may be named without parameters.
pub(crate) fn plain_strategies() -> Vec<&'static str> {
    let plain = strategies().filter(|strategy| strategy.required().next().is_none());
    plain.map(|strategy| strategy.name).collect()
}

impl MappingKey {
    /// The name without the mark that Rust needs for its own words.
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
