//! The workflow text of a case.
//!
//! Commands take one line each, so that a shrunk case is read at a glance.

use std::fmt::Write as _;
use std::time::Duration;

use super::command::{CaseBreaker, CaseCommand, CaseFormat, CaseHandler};
use super::flow::{CaseFlow, CaseFlowStep, CaseInputRole, CaseStepKind, CaseWorkBackoff, CaseWorkConfig};
use super::job_case::{CaseMap, CaseShape, JobCase};
use super::retry::{CaseAction, CaseAttempts, CaseBackoff, CaseCondition, CaseJitter, CaseRetry, CaseRule};

impl JobCase {
    pub fn text(&self) -> String {
        let mut text = String::new();
        let deadline = self.deadline.map(|it| format!("deadline: {}", time(it)));
        let pool = self.pool.map(|it| format!("retry_budget: {it}"));
        let share = self.share;
        let share = share.map(|it| format!("retry_budget_per_workflow: {it}"));
        let retry = self.retry.as_ref();
        let retry = retry.map(|it| format!("retry_config: {}", of_retry(it)));
        for line in [deadline, pool, share, retry].into_iter().flatten() {
            let _ = writeln!(text, "{line}");
        }
        match &self.shape {
            CaseShape::List(commands) => self.write_list(&mut text, "", "commands", commands, false),
            CaseShape::Map(map) => self.write_map(&mut text, map),
            CaseShape::Flow(flow) => self.write_flow(&mut text, flow),
        }
        text
    }

    fn write_list(&self, text: &mut String, indent: &str, key: &str, commands: &[CaseCommand], in_map: bool) {
        if commands.is_empty() {
            return;
        }
        let _ = writeln!(text, "{indent}{key}:");
        for command in commands {
            let _ = writeln!(text, "{indent}  - {}", self.of_command(command, in_map));
        }
    }

    fn write_map(&self, text: &mut String, map: &CaseMap) {
        let _ = writeln!(text, "mode: mapreduce");
        self.write_list(text, "", "setup", &map.setup, false);
        let input = if map.items_by_shell { "{shell: items, format: json}" } else { "items.json" };
        let _ = writeln!(text, "map:\n  input: {input}\n  max_parallel: {}", map.width);
        let limit = map.item_deadline.map(|it| it.as_secs());
        let time = [
            limit.map(|it| format!("agent_timeout_secs: {it}")),
            map.timeout_retry.as_ref().map(retry_config),
        ];
        let tolerance = &map.tolerance;
        let policy = [
            tolerance.first_stops.then(|| "continue_on_failure: false".to_owned()),
            tolerance.max_failures.map(|it| format!("max_failures: {it}")),
            tolerance.share_percent.map(|it| format!("failure_threshold: {}", percent(it))),
            tolerance.on_item_failure.map(|it| format!("on_item_failure: {it}")),
            map.policy_retry.as_ref().map(retry_config),
        ];
        for (key, parts) in [("timeout_config", &time[..]), ("error_policy", &policy[..])] {
            let parts: Vec<String> = parts.iter().flatten().cloned().collect();
            if !parts.is_empty() {
                let _ = writeln!(text, "  {key}: {{{}}}", parts.join(", "));
            }
        }
        if let Some(rule) = &map.completion {
            let min = rule.min.map(|it| format!("best_effort_min_dcs: {it}"));
            let deadline = rule.deadline.map(|it| it.as_secs());
            let deadline = deadline.map(|it| format!("best_effort_deadline_seconds: {it}"));
            let leave = rule.leaves.then(|| "on_complete: leave".to_owned());
            let first = Some("best_effort: true".to_owned());
            for line in [first, min, deadline, leave].into_iter().flatten() {
                let _ = writeln!(text, "  {line}");
            }
        }
        self.write_list(text, "  ", "agent_template", &map.commands, true);
        self.write_list(text, "", "reduce", &map.reduce, false);
    }

    fn of_command(&self, command: &CaseCommand, in_map: bool) -> String {
        let name = command.name();
        let mut parts = vec![format!("id: {name}")];
        if let Some(call) = &command.call {
            let method = if call.posts { "POST" } else { "GET" };
            let item = if in_map { "/${item.id}" } else { "" };
            let url = format!("http://place-{}.test/{name}{item}", call.place);
            parts.push(format!("http: {{method: {method}, url: \"{url}\"}}"));
        } else {
            let item = if in_map { " ${item.id}" } else { "" };
            parts.push(format!("shell: \"{name}{item}\""));
        }
        if let Some(limit) = command.timeout {
            parts.push(format!("timeout: {}", time(limit)));
        }
        if let Some(format) = command.capture {
            let word = match format {
                CaseFormat::Text => "string",
                CaseFormat::Number => "number",
                CaseFormat::Json => "json",
            };
            let name = format!("c{}", command.label);
            parts.push(format!("capture_output: {name}, capture_format: {word}"));
        }
        if let Some(breaker) = self.breaker_of(command) {
            parts.push(format!("breaker: {}", self.of_breaker(breaker)));
        } else if command.call.as_ref().is_some_and(|it| is_gated(it.place)) {
            parts.push("breaker: true".to_owned());
        }
        if command.stays_interrupted {
            parts.push("on_interrupt: stop".to_owned());
        }
        parts.extend(command.retry.as_ref().map(retry_config));
        if let Some(handler) = &command.on_failure {
            parts.push(format!("on_failure: {}", self.of_handler(handler, in_map)));
        }
        if !command.on_success.is_empty() {
            let commands = self.of_commands(&command.on_success, in_map);
            parts.push(format!("on_success: [{commands}]"));
        }
        format!("{{{}}}", parts.join(", "))
    }

    fn of_commands(&self, commands: &[CaseCommand], in_map: bool) -> String {
        let commands = commands.iter().map(|it| self.of_command(it, in_map));
        commands.collect::<Vec<_>>().join(", ")
    }

    fn of_handler(&self, handler: &CaseHandler, in_map: bool) -> String {
        let mut text = format!("commands: [{}]", self.of_commands(&handler.commands, in_map));
        if handler.rounds > 0 {
            let _ = write!(text, ", max_attempts: {}", handler.rounds);
        }
        if handler.fails {
            text.push_str(", fail_workflow: true");
        }
        format!("{{{text}}}")
    }

    /// The breaker of a command, if its settings are given.
    pub fn breaker_of(&self, command: &CaseCommand) -> Option<&CaseBreaker> {
        match &command.call {
            Some(call) => self.breaker_before(call.place),
            None => command.breaker.and_then(|it| self.breakers.get(it)),
        }
    }

    /// The breaker of an origin, if its settings are given.
    pub fn breaker_before(&self, place: usize) -> Option<&CaseBreaker> {
        let mut breakers = self.breakers.iter();
        breakers.find(|it| it.place == Some(place))
    }

    fn of_breaker(&self, breaker: &CaseBreaker) -> String {
        let number = self.breakers.iter().position(|it| it == breaker);
        let mut parts = Vec::new();
        if breaker.place.is_none() {
            parts.push(format!("name: b{}", number.unwrap_or_default()));
        }
        parts.push(format!("failure_threshold: {}", breaker.threshold));
        parts.push(format!("recovery_timeout: {}", time(breaker.recovery)));
        parts.push(format!("half_open_max_calls: {}", breaker.half_open_calls));
        if breaker.fails {
            parts.push("when_open: fail".to_owned());
        }
        parts.extend(breaker.max_hold.map(|it| format!("max_hold: {}", time(it))));
        format!("{{{}}}", parts.join(", "))
    }

    fn write_flow(&self, text: &mut String, flow: &CaseFlow) {
        let goals: Vec<String> = flow.goals.iter().map(|it| format!("w{it}")).collect();
        let _ = writeln!(text, "mode: flow\ngoals: [{}]", goals.join(", "));
        let init = flow.init.iter();
        let init: Vec<String> = init.map(|(name, all)| format!("{name}: {all:?}")).collect();
        let _ = writeln!(text, "init: {{{}}}\nsteps:", init.join(", "));
        for step in &flow.steps {
            let _ = writeln!(text, "  - {}", self.of_step(step));
        }
    }

    fn of_step(&self, step: &CaseFlowStep) -> String {
        let name = step.name();
        let mut http = vec![format!("endpoint: \"http://place-{}.test/{name}\"", step.place)];
        http.extend(step.timeout.map(|it| format!("timeout: {}", it.as_millis())));
        let kind = match step.kind {
            CaseStepKind::Sync => "sync",
            CaseStepKind::Async(within) => {
                http.push(format!("completion_timeout: {}", within.as_millis()));
                "async"
            }
        };
        let mut parts = vec![format!("id: {name}, type: {kind}"), format!("http: {{{}}}", http.join(", "))];
        let work = step.work.as_ref();
        parts.extend(work.map(|it| format!("work_config: {}", of_work(it))));
        if let Some(breaker) = self.breaker_before(step.place) {
            parts.push(format!("breaker: {}", self.of_breaker(breaker)));
        } else if is_gated(step.place) {
            parts.push("breaker: true".to_owned());
        }
        let takes = step.takes.iter().map(|taken| {
            let role = match taken.role {
                CaseInputRole::Required => "role: required",
                CaseInputRole::Optional => "role: optional, default: '[1]'",
            };
            let each = if taken.each { ", for_each: true" } else { "" };
            format!("{}: {{{role}{each}}}", taken.name)
        });
        let gives = step.gives.iter().map(|it| format!("{it}: {{role: output}}"));
        let attributes: Vec<String> = takes.chain(gives).collect();
        parts.push(format!("attributes: {{{}}}", attributes.join(", ")));
        format!("{{{}}}", parts.join(", "))
    }
}

fn of_work(work: &CaseWorkConfig) -> String {
    let growth = work.growth.map(|it| match it {
        CaseWorkBackoff::Fixed => "fixed",
        CaseWorkBackoff::Linear => "linear",
        CaseWorkBackoff::Exponential => "exponential",
    });
    let millis = |it: Duration| it.as_millis();
    let parts = [
        work.max_retries.map(|it| format!("max_retries: {it}")),
        work.backoff.map(|it| format!("backoff: {}", millis(it))),
        work.max_backoff.map(|it| format!("max_backoff: {}", millis(it))),
        growth.map(|it| format!("backoff_type: {it}")),
        work.parallelism.map(|it| format!("parallelism: {it}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{{{}}}", parts.join(", "))
}

/// Whether requests to an origin have a breaker with default settings, by `breaker: true`.
pub const fn is_gated(place: usize) -> bool {
    place == 1
}

fn retry_config(retry: &CaseRetry) -> String {
    format!("retry_config: {}", of_retry(retry))
}

fn of_retry(retry: &CaseRetry) -> String {
    let attempts = retry.attempts.map(|it| match it {
        CaseAttempts::Times(times) => format!("attempts: {times}"),
        CaseAttempts::Unlimited => "attempts: unlimited".to_owned(),
    });
    let backoff = retry.backoff.as_ref().map(|it| match it {
        CaseBackoff::Fixed => "backoff: fixed".to_owned(),
        CaseBackoff::Linear(by) => format!("backoff: {{linear: {{increment: {}}}}}", time(*by)),
        CaseBackoff::Exponential(halves) => {
            format!("backoff: {{exponential: {{base: {}}}}}", of_halves(*halves))
        }
        CaseBackoff::Fibonacci => "backoff: fibonacci".to_owned(),
        CaseBackoff::Custom(delays) => {
            let delays: Vec<String> = delays.iter().copied().map(time).collect();
            format!("backoff: {{custom: {{delays: [{}]}}}}", delays.join(", "))
        }
    });
    let jitter = retry.jitter.map(|it| match it {
        CaseJitter::None => "jitter: false".to_owned(),
        CaseJitter::Around(share) => format!("jitter: true, jitter_factor: {}", percent(share)),
        CaseJitter::Full => "jitter: full".to_owned(),
        CaseJitter::Equal => "jitter: equal".to_owned(),
        CaseJitter::Decorrelated => "jitter: decorrelated".to_owned(),
    });
    let kinds: Vec<&str> = retry.retry_on.iter().map(|it| it.word()).collect();
    let rules: Vec<String> = retry.rules.iter().map(of_rule).collect();
    let named = |key: &str, it: Duration| format!("{key}: {}", time(it));
    let parts = [
        attempts,
        backoff,
        retry.initial_delay.map(|it| named("initial_delay", it)),
        retry.max_delay.map(|it| named("max_delay", it)),
        jitter,
        retry.budget.map(|it| named("retry_budget", it)),
        (!kinds.is_empty()).then(|| format!("retry_on: [{}]", kinds.join(", "))),
        (!retry.statuses.is_empty()).then(|| format!("retry_statuses: {:?}", retry.statuses)),
        retry.max_retry_after.map(|it| named("max_retry_after", it)),
        (!rules.is_empty()).then(|| format!("rules: [{}]", rules.join(", "))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{{{}}}", parts.join(", "))
}

fn of_rule(rule: &CaseRule) -> String {
    let when = match rule.when {
        CaseCondition::Always => String::new(),
        CaseCondition::Exit(status) => format!("exit_code: {status}, "),
        CaseCondition::Signal(signal) => format!("signal: {signal}, "),
        CaseCondition::Status(status) => format!("status: {status}, "),
        CaseCondition::Kind(kind) => format!("class: {}, ", kind.word()),
    };
    let then = match &rule.then {
        CaseAction::Retry(None) => "retry".to_owned(),
        CaseAction::Retry(Some(own)) => format!("retry, {}", retry_config(own)),
        CaseAction::Stop => "stop".to_owned(),
        CaseAction::Skip => "skip".to_owned(),
        CaseAction::DeadLetter => "dead_letter".to_owned(),
        CaseAction::Hold => "hold".to_owned(),
    };
    format!("{{{when}then: {then}}}")
}

fn of_halves(halves: u32) -> String {
    let half = if halves.is_multiple_of(2) { "0" } else { "5" };
    format!("{}.{half}", halves.wrapping_div(2))
}

fn percent(share: u32) -> String {
    format!("{}.{:02}", share.wrapping_div(100), share.wrapping_rem(100))
}

fn time(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}
