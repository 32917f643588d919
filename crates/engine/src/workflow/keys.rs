//! Every key of the language, with what stands behind it and what it is for.
//!
//! One table for three readers: the reader of files refuses what is not in it and finds the nearest
//! key to a wrong one, the schema for editors is made from it, and people read its sentences.

use undaunted_policy::{Backoff, ParameterKind, Strategy};

/// What stands behind a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
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
    ListOf(&'static Shape),
    /// A mapping from any names to this.
    MapOf(&'static Shape),
    /// One of these shapes.
    AnyOf(&'static [Shape]),
    /// A mapping with known keys.
    Keys(Table),
}

/// A key of a mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) about: &'static str,
}

macro_rules! keys {
    ($($name:ident: $shape:expr, $about:literal;)*) => {
        &[$(Key { name: stringify!($name), shape: $shape, about: $about },)*]
    };
}

macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident $title:literal $(+ $shared:ident)* {
        $($name:ident: $shape:expr, $about:literal;)*
    })*) => {
        /// The mappings of the language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Table {
            $($(#[$doc])* $table,)*
            /// The parameters of a strategy.
            Strategy(&'static Strategy),
        }

        impl Table {
            pub(crate) fn all() -> impl Iterator<Item = Self> {
                [$(Self::$table,)*].into_iter().chain(strategies().map(Self::Strategy))
            }

            /// What the mapping is called in messages.
            pub(crate) const fn title(self) -> &'static str {
                match self { $(Self::$table => $title,)* Self::Strategy(it) => it.name }
            }

            /// What it may hold.
            pub(crate) fn keys(self) -> impl Iterator<Item = Key> {
                let parts: &'static [&'static [Key]] = match self {
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

const COMMANDS: Shape =
    Shape::AnyOf(&[Shape::ListOf(&Shape::Keys(Table::Command)), Shape::Keys(Table::CommandList)]);
const WORDS_OR_COUNT: Shape = Shape::AnyOf(&[Shape::Count, Shape::Words(&["unlimited"])]);
const SEVERAL_COUNTS: Shape = Shape::AnyOf(&[Shape::Count, Shape::ListOf(&Shape::Count)]);
const SIGNALS: Shape =
    Shape::AnyOf(&[Shape::Count, Shape::Text, Shape::ListOf(&Shape::AnyOf(&[Shape::Count, Shape::Text]))]);
const CLASS: Shape = Shape::Words(&[
    "transient",
    "throttled",
    "permanent",
    "network",
    "timeout",
    "server_error",
    "rate_limit",
    "interrupted",
]);
const BREAKER: Shape = Shape::AnyOf(&[Shape::Flag, Shape::Keys(Table::Breaker)]);
const TEXTS: Shape = Shape::MapOf(&Shape::AnyOf(&[Shape::Text, Shape::Number, Shape::Flag]));

/// What a command does: one of these, or the name of an agent.
pub(super) const ACTIONS: &[Key] = keys! {
    shell: Shape::Text, "A text for the shell.";
    claude: Shape::Text, "A prompt for the agent `claude`.";
    http: Shape::Keys(Table::Http), "An HTTP request.";
    write_file: Shape::Keys(Table::WriteFile), "A file to write.";
    function: Shape::AnyOf(&[Shape::Text, Shape::Keys(Table::Function)]), "A function of the program that runs the job; only a program that embeds it has any.";
};
/// How anything that runs is run.
const RUNNING: &[Key] = keys! {
    id: Shape::Text, "What the command is called.";
    timeout: Shape::Duration, "How long one attempt may take.";
    env: TEXTS, "Environment variables of this command.";
    working_dir: Shape::Text, "The directory it runs in.";
    capture_output: Shape::Text, "The name under which later commands find its output.";
    capture_format: Shape::Words(&["string", "json", "lines", "number", "boolean"]), "How its output is read.";
    output_limit: Shape::Count, "Bytes of output after which an attempt is ended.";
};
/// What becomes of items that fail.
const TOLERANCE: &[Key] = keys! {
    continue_on_failure: Shape::Flag, "Whether a failed item leaves the others running.";
    max_failures: Shape::Count, "Stop at this many failed items.";
    failure_threshold: Shape::Number, "Stop when more than this share of the items has failed.";
    on_item_failure: Shape::Words(&["dlq", "retry", "skip", "stop"]), "What becomes of an item that has failed.";
};
/// What a step waits for.
const COMPLETION: &[Key] = keys! {
    best_effort: Shape::Flag, "Whether fewer than all items will do.";
    best_effort_min_dcs: Shape::Count, "How many have to succeed.";
    best_effort_deadline_seconds: Shape::Number, "How long to wait for them, in seconds (default 300).";
    on_complete: Shape::Words(&["cancel", "leave"]), "What becomes of what still runs then.";
};

tables! {
    /// The file.
    Workflow "a workflow" + TOLERANCE {
        name: Shape::Text, "What the workflow is called.";
        mode: Shape::Words(&["sequence", "mapreduce", "flow"]), "How its parts hang together; a list of commands needs none.";
        commands: COMMANDS, "The commands, one after the other.";
        setup: COMMANDS, "Commands that run once before the map.";
        map: Shape::Keys(Table::Map), "What is done for every item.";
        reduce: COMMANDS, "Commands that run once after the map, with its results.";
        steps: Shape::ListOf(&Shape::Keys(Table::FlowStep)), "The steps of a flow.";
        goals: Shape::ListOf(&Shape::Text), "The steps a flow has to reach.";
        init: Shape::MapOf(&Shape::Anything), "The attributes a flow begins with.";
        shell: Shape::Text, "The shell that runs `shell:` texts (default /bin/sh).";
        agents: Shape::MapOf(&Shape::ListOf(&Shape::Text)), "Programs that take a prompt: a name and its arguments, one of them `{prompt}`.";
        env: TEXTS, "Environment variables of every command.";
        secrets: Shape::MapOf(&Shape::Keys(Table::Secret)), "Environment variables whose values are never recorded.";
        retry_config: Shape::Keys(Table::RetryConfig), "How every command is retried, where nothing closer says otherwise.";
        error_policy: Shape::Keys(Table::ErrorPolicy), "What becomes of failures.";
        retry_budget: Shape::Count, "Retries for the whole job; 0 asks for the operator's default.";
        retry_budget_per_workflow: Shape::Count, "Retries for any one item; 0 asks for the operator's default.";
        deadline: Shape::Duration, "How long the job may take.";
    }
    /// A list of commands with a name.
    CommandList "a list of commands" {
        commands: Shape::ListOf(&Shape::Keys(Table::Command)), "The commands, one after the other.";
    }
    /// One command.
    Command "a command" + ACTIONS + RUNNING {
        on_failure: Shape::AnyOf(&[Shape::Keys(Table::Handler), Shape::ListOf(&Shape::Keys(Table::Command))]), "What runs when the command has stopped being retried.";
        on_success: Shape::AnyOf(&[Shape::Keys(Table::Command), Shape::ListOf(&Shape::Keys(Table::Command))]), "What runs after it has succeeded.";
        retry_config: Shape::Keys(Table::RetryConfig), "How it is retried.";
        breaker: BREAKER, "The breaker it asks before every attempt: `true`, or its settings; none without it.";
        on_interrupt: Shape::Words(&["retry", "stop"]), "What becomes of an attempt that vanished with its process.";
    }
    /// What runs when a command has failed.
    Handler "a failure handler" + ACTIONS + RUNNING {
        commands: Shape::ListOf(&Shape::Keys(Table::Command)), "Several commands, in order; the first failure ends them.";
        max_attempts: Shape::Count, "How often handler and command are tried together.";
        fail_workflow: Shape::Flag, "Whether the command counts as failed even if the handler succeeds.";
        retry_config: Shape::Keys(Table::RetryConfig), "How it is retried; a handler inherits nothing.";
    }
    /// What is done for every item.
    Map "a map" + COMPLETION {
        input: Shape::AnyOf(&[Shape::Text, Shape::Keys(Table::Input)]), "Where the items come from.";
        json_path: Shape::Text, "Which parts of a JSON document are items.";
        filter: Shape::Text, "Which items are taken.";
        sort_by: Shape::Text, "In which order.";
        distinct: Shape::Text, "Of items equal in this field, only the first.";
        offset: Shape::Count, "How many to leave out at the beginning.";
        max_items: Shape::Count, "How many to take at most.";
        max_parallel: Shape::AnyOf(&[Shape::Count, Shape::Text]), "How many run at a time (default 10); a number or `$VARIABLE`.";
        agent_template: COMMANDS, "The commands for one item.";
        agent_timeout_secs: Shape::Number, "How long one item may take, delays included, in seconds.";
        timeout_config: Shape::Keys(Table::TimeoutConfig), "Time limits and retries of the items.";
        error_policy: Shape::Keys(Table::ErrorPolicy), "What becomes of failures.";
    }
    /// Where items come from.
    Input "an input" {
        file: Shape::Text, "A file.";
        format: Shape::Words(&["json", "jsonl", "csv", "tsv", "lines"]), "How it is read (default: by its extension).";
        shell: Shape::Text, "A text for the shell, whose output is read.";
    }
    /// Time limits and retries of items.
    TimeoutConfig "a timeout_config" {
        timeout: Shape::Duration, "How long one attempt may take.";
        agent_timeout_secs: Shape::Number, "How long one item may take, delays included, in seconds.";
        retry_config: Shape::Keys(Table::RetryConfig), "How the commands of an item are retried.";
    }
    /// What becomes of failures.
    ErrorPolicy "an error_policy" + TOLERANCE {
        retry_config: Shape::Keys(Table::RetryConfig), "How commands are retried.";
    }
    /// When to try again.
    RetryConfig "a retry_config" {
        attempts: WORDS_OR_COUNT, "Retries after the first attempt (default 3), or `unlimited`.";
        max_attempts: WORDS_OR_COUNT, "The same as `attempts`.";
        max_retries: WORDS_OR_COUNT, "The same as `attempts`.";
        backoff: Shape::AnyOf(&[Shape::Strategy, Shape::Keys(Table::Backoff)]), "How the delay grows (default exponential with base 2).";
        initial_delay: Shape::Duration, "The first delay (default 1s).";
        max_delay: Shape::Duration, "The cap of every delay, before jitter (default 30s).";
        jitter: Shape::AnyOf(&[Shape::Flag, Shape::Words(&["full", "equal", "decorrelated"])]), "How delays are spread (default false).";
        jitter_factor: Shape::Number, "How far `jitter: true` spreads them, from 0 to 1 (default 0.3).";
        retry_budget: Shape::Duration, "How long all delays together may be.";
        max_retry_after: Shape::Duration, "The longest Retry-After that is honoured (default 5m).";
        retry_on: Shape::ListOf(&Shape::AnyOf(&[Shape::Words(&["network", "timeout", "server_error", "rate_limit"]), Shape::Keys(Table::Pattern)])), "Which failures are retried (default: everything transient).";
        retry_statuses: Shape::Statuses, "HTTP statuses that are retried although they are below 500.";
        rules: Shape::ListOf(&Shape::Keys(Table::Rule)), "What to do about which failure; the first rule that matches decides.";
    }
    /// How a delay grows.
    Backoff "a backoff" {
    }
    /// A pattern to retry on.
    Pattern "a pattern" {
        pattern: Shape::Text, "A regular expression that the error text has to hold.";
    }
    /// One rule.
    Rule "a rule" {
        exit_code: SEVERAL_COUNTS, "One of these exit codes.";
        signal: SIGNALS, "One of these signals, by number or name.";
        status: Shape::Statuses, "One of these HTTP statuses.";
        class: Shape::AnyOf(&[CLASS, Shape::ListOf(&CLASS)]), "One of these classes.";
        stderr: Shape::Text, "This regular expression in its standard error.";
        output: Shape::Text, "This regular expression in its standard output.";
        then: Shape::Words(&["retry", "stop", "skip", "dead_letter", "hold"]), "What to do.";
        retry_config: Shape::Keys(Table::RetryConfig), "How to retry, where it differs from the command's own.";
    }
    /// A circuit breaker.
    Breaker "a breaker" {
        name: Shape::Text, "Commands that name the same breaker share it.";
        failure_threshold: Shape::Count, "Failures in a row that open it (default 5).";
        recovery_timeout: Shape::Duration, "How long it stays open (default 60s).";
        half_open_max_calls: Shape::Count, "Successes that close it again (default 3).";
        when_open: Shape::Words(&["hold", "fail"]), "What becomes of a start while it is open (default hold).";
        max_hold: Shape::Duration, "How long a start may be held.";
    }
    /// An HTTP request.
    Http "an http command" {
        method: Shape::Words(&["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]), "The method (default GET).";
        url: Shape::Text, "The address.";
        headers: TEXTS, "Headers to send.";
        body: Shape::Anything, "What to send: a text as it is, anything else as JSON.";
        expect: Shape::Statuses, "Statuses that count as success (default 200-299).";
        protocol: Shape::Words(&["plain", "argyll"]), "How the answer is read.";
    }
    /// A call of a function.
    Function "a call of a function" {
        name: Shape::Text, "What the function is called.";
        with: Shape::Anything, "What it is given instead of the item.";
    }
    /// A file to write.
    WriteFile "a write_file command" {
        path: Shape::Text, "Where.";
        content: Shape::AnyOf(&[Shape::Text, Shape::Number, Shape::Flag]), "What.";
        create_dirs: Shape::Flag, "Whether missing directories are made.";
        mode: Shape::AnyOf(&[Shape::Text, Shape::Count]), "Its permissions, such as `0644`.";
    }
    /// A value that is never recorded.
    Secret "a secret" {
        env: Shape::Text, "The environment variable it is read from.";
        file: Shape::Text, "The file it is read from.";
    }
    /// A step of a flow.
    FlowStep "a flow step" + COMPLETION {
        id: Shape::Text, "What the step is called.";
        name: Shape::Text, "What people read.";
        r#type: Shape::Words(&["sync", "async", "script", "flow"]), "How it is done.";
        http: Shape::Keys(Table::FlowHttp), "Where it is done.";
        flow: Shape::Keys(Table::FlowGoals), "The flow it is done by.";
        predicate: Shape::Keys(Table::Predicate), "When it is done at all.";
        work_config: Shape::Keys(Table::WorkConfig), "How its items are retried, in milliseconds.";
        memoizable: Shape::Flag, "Whether results may be used again.";
        labels: TEXTS, "Names to find it by.";
        attributes: Shape::MapOf(&Shape::Keys(Table::Attribute)), "What it takes and gives.";
        breaker: BREAKER, "The breaker it asks before every attempt: `true`, or its settings; none without it.";
    }
    /// Where a flow step is done.
    FlowHttp "the http of a flow step" {
        endpoint: Shape::Text, "The address that is called.";
        health_check: Shape::Text, "The address that tells whether it is up.";
        timeout: Shape::Count, "How long a call may take, in milliseconds (default 30000).";
        completion_timeout: Shape::Count, "How long the result of an async step is waited for, in milliseconds (default 24 hours).";
    }
    /// The flow a step is done by.
    FlowGoals "the flow of a flow step" {
        goals: Shape::ListOf(&Shape::Text), "The steps it has to reach.";
    }
    /// When a step is done at all.
    Predicate "a predicate" {
        language: Shape::Text, "The language of the script; CEL is understood.";
        script: Shape::Text, "The condition.";
    }
    /// The retries of a flow step.
    WorkConfig "a work_config" {
        max_retries: Shape::Number, "Retries after the first attempt, -1 for unlimited. Without it there are none.";
        backoff: Shape::Count, "The first delay, in milliseconds.";
        max_backoff: Shape::Count, "The cap, in milliseconds.";
        backoff_type: Shape::Words(&["fixed", "linear", "exponential"]), "How the delay grows.";
        parallelism: Shape::Count, "How many items run at a time.";
    }
    /// What a flow step takes or gives.
    Attribute "an attribute" {
        role: Shape::Words(&["required", "optional", "const", "output"]), "Which way it goes.";
        r#type: Shape::Words(&["string", "number", "boolean", "object", "array", "null", "any"]), "What kind of value it is.";
        default: Shape::Text, "The value where there is none, as JSON text.";
        for_each: Shape::Flag, "Whether every element of it is an item.";
        mapping: Shape::Keys(Table::Mapping), "What it is called on the other side.";
    }
    /// What an attribute is called on the other side.
    Mapping "a mapping" {
        name: Shape::Text, "The name.";
    }
}

impl Table {
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
    fn of_strategies(self) -> impl Iterator<Item = Key> {
        let strategies = strategies().filter(move |_| self == Self::Backoff);
        let strategies = strategies.map(|strategy| Key {
            name: strategy.name,
            shape: Shape::Keys(Self::Strategy(strategy)),
            about: strategy.about,
        });
        let parameters = match self {
            Self::Strategy(strategy) => strategy.parameters,
            _ => &[],
        };
        let parameters = parameters.iter().map(|parameter| Key {
            name: parameter.key,
            shape: match parameter.kind {
                ParameterKind::Span => Shape::Duration,
                ParameterKind::Factor => Shape::Factor,
                ParameterKind::Spans => Shape::ListOf(&Shape::Duration),
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

impl Key {
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
        let listed: Vec<_> = Table::RetryConfig.keys().map(Key::name).collect();
        assert_eq!(listed, RetryConfig::KEYS);
    }

    #[test]
    fn every_key_says_what_it_is_for() {
        for table in Table::all() {
            for key in table.keys() {
                assert!(key.about.ends_with(['.', '…']), "{} {}", table.title(), key.name);
            }
        }
    }
}
