//! The retry policy and the breaker of every command, and where each value comes from.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};
use undaunted_engine::view::{rule_in_words, value_in_words};
use undaunted_engine::workflow::{Command, CommandBreaker, ResolvedRetry, Source, Span, StepWork, Workflow};
use undaunted_policy::spelling::format_duration;
use undaunted_policy::{RetryConfig, WhenOpen};

use super::plain;

struct CommandPolicy<'w> {
    step: &'w str,
    command: &'w str,
    span: Option<Span>,
    retry: &'w ResolvedRetry,
    breaker: Option<&'w CommandBreaker>,
}

fn command_policies(workflow: &Workflow) -> Vec<CommandPolicy<'_>> {
    let mut all = Vec::new();
    for step in &workflow.steps {
        if let StepWork::Call(call) = &step.work {
            all.push(CommandPolicy {
                step: &step.name,
                command: &step.name,
                span: None,
                retry: &call.retry,
                breaker: call.breaker.as_ref(),
            });
        }
        for command in &step.commands {
            add(&mut all, &step.name, command);
        }
    }
    all
}

fn add<'w>(all: &mut Vec<CommandPolicy<'w>>, step: &'w str, command: &'w Command) {
    all.push(CommandPolicy {
        step,
        command: &command.id,
        span: Some(command.span),
        retry: &command.retry,
        breaker: command.breaker.as_deref(),
    });
    let handlers = command.on_failure.iter().flat_map(|handler| &handler.commands);
    for inner in handlers.chain(&command.on_success) {
        add(all, step, inner);
    }
}

/// The settings of a policy, including defaults, each with the line that sets it.
fn settings(source: &Source, retry: &ResolvedRetry) -> BTreeMap<String, SettingJson> {
    let config = RetryConfig::from(&retry.policy);
    let Ok(Value::Object(values)) = serde_json::to_value(&config) else {
        return BTreeMap::new();
    };
    let deadline = retry.policy.terms().limits().deadline();
    let deadline = deadline.map(|limit| ("deadline".to_owned(), format_duration(limit).into()));
    let given = values.into_iter().chain(deadline);
    given
        .filter(|(_, value)| !is_empty_list(value))
        .map(|(name, value)| {
            let origin = retry.origin(&name);
            let setting = SettingJson {
                value,
                from: origin.map_or("default", |origin| origin.place.word()),
                line: origin.map(|origin| source.position(origin.span).line),
            };
            (name, setting)
        })
        .collect()
}

#[derive(Serialize)]
struct SettingJson {
    value: Value,
    from: &'static str,
    line: Option<usize>,
}

impl SettingJson {
    fn origin(&self) -> String {
        let line = self.line.map(|line| format!(", line {line}"));
        format!("{}{}", self.from, line.unwrap_or_default())
    }
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

#[derive(Serialize)]
struct CommandJson<'a> {
    step: &'a str,
    command: &'a str,
    line: Option<usize>,
    settings: BTreeMap<String, SettingJson>,
    breaker: Option<Value>,
}

/// A breaker without a name is named after the origin of the request.
fn breaker_json(breaker: &CommandBreaker) -> Value {
    let settings = &breaker.settings;
    json!({
        "name": breaker.name,
        "failure_threshold": settings.failure_threshold,
        "recovery_timeout": format_duration(settings.recovery_timeout),
        "half_open_max_calls": settings.half_open_max_calls,
        "when_open": when_open(settings.when_open),
        "max_hold": settings.max_hold.map(format_duration),
    })
}

pub(super) const fn when_open(when_open: WhenOpen) -> &'static str {
    match when_open {
        WhenOpen::Hold => "hold",
        WhenOpen::Fail => "fail",
    }
}

fn breaker_row(out: &mut impl Write, breaker: &CommandBreaker) -> io::Result<()> {
    let name = plain(breaker.name.as_deref().unwrap_or("(origin of the request)"));
    let settings = &breaker.settings;
    let open = format_duration(settings.recovery_timeout);
    let failures = match settings.failure_threshold {
        1 => "1 failure".to_owned(),
        failures => format!("{failures} failures in a row"),
    };
    let then = match settings.when_open {
        WhenOpen::Hold => "are held",
        WhenOpen::Fail => "fail",
    };
    writeln!(out, "  {:<16} {name:<24} opens for {open} after {failures}; commands {then}", "breaker")
}

pub(crate) fn json(out: &mut impl Write, source: &Source, workflow: &Workflow) -> io::Result<()> {
    let command_policies = command_policies(workflow);
    let commands = command_policies.iter().map(|one| CommandJson {
        step: one.step,
        command: one.command,
        line: one.span.map(|span| source.position(span).line),
        settings: settings(source, one.retry),
        breaker: one.breaker.map(breaker_json),
    });
    let commands: Vec<_> = commands.collect();
    serde_json::to_writer(&mut *out, &BTreeMap::from([("commands", commands)]))?;
    writeln!(out)
}

/// The most important settings first; the others follow by name.
const ORDER: [&str; 8] = [
    "attempts",
    "backoff",
    "initial_delay",
    "max_delay",
    "jitter",
    "jitter_factor",
    "retry_budget",
    "deadline",
];

pub(crate) fn tables(out: &mut impl Write, source: &Source, workflow: &Workflow) -> io::Result<()> {
    for (index, one) in command_policies(workflow).iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let line = one.span.map(|span| source.position(span).line);
        let place = line.map(|line| format!(" (line {line})"));
        let step = if one.step == one.command { String::new() } else { format!("{}/", plain(one.step)) };
        writeln!(out, "{step}{}{}", plain(one.command), place.unwrap_or_default())?;
        let settings = settings(source, one.retry);
        let once = one.retry.policy.terms().limits().attempts().retries() == Some(0);
        if once && one.retry.origins().next().is_none() {
            writeln!(out, "  runs once: no retry settings")?;
        } else {
            rows(out, &settings)?;
        }
        if let Some(breaker) = one.breaker {
            breaker_row(out, breaker)?;
        }
    }
    Ok(())
}

fn rows(out: &mut impl Write, settings: &BTreeMap<String, SettingJson>) -> io::Result<()> {
    let first = ORDER.iter().filter_map(|name| settings.get_key_value(*name));
    let rest = settings.iter().filter(|(name, _)| !ORDER.contains(&name.as_str()));
    for (name, setting) in first.chain(rest) {
        if let ("rules", Value::Array(rules)) = (name.as_str(), &setting.value) {
            table(out, rules, setting, settings)?;
            continue;
        }
        let (value, origin) = (plain(&value_in_words(&setting.value)), setting.origin());
        writeln!(out, "  {name:<16} {value:<24} {origin}")?;
    }
    Ok(())
}

fn table(
    out: &mut impl Write,
    rules: &[Value],
    setting: &SettingJson,
    of_command: &BTreeMap<String, SettingJson>,
) -> io::Result<()> {
    let (name, origin) = ("rules", setting.origin());
    writeln!(out, "  {name:<16} {:<24} {origin}", "first match wins:")?;
    let usual = of_command.iter().map(|(name, setting)| (name.clone(), setting.value.clone()));
    let usual = Value::Object(usual.collect());
    for (number, written) in (1_usize..).zip(rules) {
        writeln!(out, "    {number:>2}  {}", plain(&rule_in_words(written, &usual)))?;
    }
    Ok(())
}
