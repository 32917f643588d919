//! Breakers: the list, one with its history, and what was done to one.

use std::io::{self, Write};

use serde_json::{Value, json};
use undaunted_engine::breaker::{BreakerRecord, BreakerState};
use undaunted_engine::view::rfc3339;
use undaunted_policy::shape::format_duration;
use undaunted_policy::{Phase, Timestamp, WhenOpen};
use undaunted_store::Version;

use super::duration::short;
use super::words::plain;

/// How many changes of a breaker are shown to people.
const SHOWN: usize = 20;

pub(crate) fn list(
    out: &mut impl Write,
    found: &[(String, BreakerRecord)],
    now: Timestamp,
    as_json: bool,
) -> io::Result<()> {
    if as_json {
        for (name, record) in found {
            writeln!(out, "{}", machine(name, &record.state))?;
        }
        return Ok(());
    }
    if found.is_empty() {
        return writeln!(
            io::stderr(),
            "no breakers yet; a command names one with `breaker: {{name: …}}`"
        );
    }
    let longest = found.iter().map(|(name, _)| plain(name).chars().count());
    let width = longest.max().unwrap_or_default().max("BREAKER".len());
    writeln!(out, "{:<width$}  {:<9}  STANDS", "BREAKER", "STATE")?;
    for (name, record) in found {
        let name = plain(name);
        let word = record.state.word();
        let sentence = sentence(&record.state, now);
        writeln!(out, "{name:<width$}  {word:<9}  {sentence}")?;
    }
    Ok(())
}

pub(crate) fn one(
    out: &mut impl Write,
    name: &str,
    records: &[(Version, BreakerRecord)],
    now: Timestamp,
    as_json: bool,
) -> io::Result<()> {
    let Some((_, last)) = records.last() else {
        return Ok(());
    };
    if as_json {
        let mut shown = machine(name, &last.state);
        let history = records.iter().map(|(version, record)| {
            json!({
                "seq": version.0, "at": rfc3339(record.at), "change": record.change.word(),
                "job": record.job, "state": record.state.word(),
                "failures": record.state.failures(),
                "until": record.state.until().map(rfc3339),
            })
        });
        if let Value::Object(fields) = &mut shown {
            fields.insert("history".to_owned(), history.collect());
        }
        return writeln!(out, "{shown}");
    }
    let settings = &last.state.settings;
    writeln!(
        out,
        "breaker {}: {}",
        plain(name),
        sentence(&last.state, now)
    )?;
    writeln!(
        out,
        "  opens after {} failures in a row, for {}; {} successes close it",
        settings.failure_threshold,
        format_duration(settings.recovery_timeout),
        settings.half_open_max_calls
    )?;
    let longest = settings.max_hold.map(format_duration);
    let longest = longest.map_or_else(String::new, |longest| format!(", at most {longest}"));
    match settings.when_open {
        WhenOpen::Hold => writeln!(out, "  while it is open, what would start is held{longest}")?,
        WhenOpen::Fail => writeln!(out, "  while it is open, what would start fails")?,
    }
    let earlier = records.len().saturating_sub(SHOWN);
    if earlier > 0 {
        writeln!(out, "  {earlier} earlier changes: --json shows them")?;
    }
    for (_, record) in records.iter().skip(earlier) {
        let by = match &record.job {
            Some(job) => format!("job {job}"),
            None => "by hand".to_owned(),
        };
        let until = record.state.until().map(rfc3339);
        let until = until.map_or_else(String::new, |until| format!(", until {until}"));
        writeln!(
            out,
            "  {}  {:<15}  {by}{until}",
            rfc3339(record.at),
            record.change.word()
        )?;
    }
    Ok(())
}

pub(crate) fn changed(
    out: &mut impl Write,
    name: &str,
    state: &BreakerState,
    now: Timestamp,
    as_json: bool,
) -> io::Result<()> {
    if as_json {
        return writeln!(out, "{}", machine(name, state));
    }
    writeln!(out, "breaker {}: {}", plain(name), sentence(state, now))
}

/// How a breaker stands, in words.
pub(crate) fn sentence(state: &BreakerState, now: Timestamp) -> String {
    let settings = &state.settings;
    match state.breaker.phase() {
        Phase::Closed { failures: 0 } => "closed, lets everything through".to_owned(),
        Phase::Closed { failures } => format!(
            "closed, {failures} of {} failures in a row",
            settings.failure_threshold
        ),
        Phase::Open { since, until } if until > now => format!(
            "open since {}, lets one through in {} at {}",
            rfc3339(since),
            short(until.since(now)),
            rfc3339(until)
        ),
        Phase::Open { since, .. } => {
            format!("open since {}, lets the next one through", rfc3339(since))
        }
        Phase::HalfOpen { successes, probing } => {
            let calls = settings.half_open_max_calls;
            let who = match (&state.probe, probing) {
                (Some(probe), true) => format!(", job {} finds out", probe.job),
                _ => ", lets the next one through".to_owned(),
            };
            format!("half open, {successes} of {calls} successes{who}")
        }
    }
}

fn machine(name: &str, state: &BreakerState) -> Value {
    let settings = &state.settings;
    let (since, successes) = match state.breaker.phase() {
        Phase::Closed { .. } => (None, 0),
        Phase::Open { since, .. } => (Some(since), 0),
        Phase::HalfOpen { successes, .. } => (None, successes),
    };
    let when_open = match settings.when_open {
        WhenOpen::Hold => "hold",
        WhenOpen::Fail => "fail",
    };
    json!({
        "breaker": name,
        "state": state.word(),
        "failures": state.failures(),
        "successes": successes,
        "opened_at": since.map(rfc3339),
        "until": state.until().map(rfc3339),
        "probe": state.probe.as_ref().map(|probe| json!({
            "job": probe.job, "since": rfc3339(probe.since),
        })),
        "settings": {
            "failure_threshold": settings.failure_threshold,
            "recovery_timeout": format_duration(settings.recovery_timeout),
            "half_open_max_calls": settings.half_open_max_calls,
            "when_open": when_open,
            "max_hold": settings.max_hold.map(format_duration),
        },
    })
}
